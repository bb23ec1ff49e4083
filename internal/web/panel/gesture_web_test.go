package panel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"eidetic/internal/tell/report/reporttest"
)

// The lines of a recorded gesture, as docs/scenarios.md has them.
type (
	gestureHead   struct{ Gesture, Width, Height int }
	gestureSample struct {
		T    float64 `json:"t_ms"`
		X, Y float64
	}
)

// recorded reads what the page saves: times grow, and places are within the field.
func recorded(t *testing.T, text string) (head gestureHead, samples []gestureSample) {
	t.Helper()
	lines := json.NewDecoder(strings.NewReader(text))
	lines.DisallowUnknownFields()
	if err := lines.Decode(&head); err != nil {
		t.Fatalf("what the page saves: %v\n%s", err, text)
	}
	for before := 0.0; lines.More(); {
		var s gestureSample
		if err := lines.Decode(&s); err != nil {
			t.Fatalf("what the page saves: %v\n%s", err, text)
		}
		if s.T < before || s.X < 0 || s.Y < 0 || s.X >= float64(head.Width) || s.Y >= float64(head.Height) {
			t.Errorf("sample %d, %+v: want a later one within %+v", len(samples), s, head)
		}
		before = s.T
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		t.Fatalf("what the page saves has no samples: %s", text)
	}
	return head, samples
}

// A gesture that a person makes on the panel's page becomes a file that a step can replay.
func TestGestureInBrowser(t *testing.T) {
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1"})
	b := browsers.New(t)
	for _, width := range []int64{390, 1100} {
		if err := b.View(width, 800, "light"); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(s.URL + "/gesture"); err != nil {
			t.Fatal(err)
		}
		top, err := reporttest.Eval[float64](b, `document.getElementById("pad").getBoundingClientRect().top + document.getElementById("pad").clientTop`)
		if err != nil {
			t.Fatal(err)
		}
		mouse := func(kind input.DispatchMouseEventType, x, y float64) {
			t.Helper()
			_, err := chromedp.Call(b.Context, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: x, Y: top + y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		mouse(input.DispatchMouseEventTypeMousePressed, 100, 200)
		for i := range 20 {
			mouse(input.DispatchMouseEventTypeMouseMoved, 100+float64(5*i), 200-float64(10*i)) // at last above the field
		}
		mouse(input.DispatchMouseEventTypeMouseReleased, 195, 10)
		got, err := reporttest.Eval[string](b, `(() => {
			const save = document.getElementById("save"), name = document.getElementById("name");
			name.value = "../my fling.jsonl";
			name.dispatchEvent(new Event("input"));
			return [save.checkVisibility(), save.download, document.documentElement.scrollWidth <= innerWidth, decodeURIComponent(save.href.split(",").slice(1).join(","))].join("|");
		})()`)
		if err != nil {
			t.Fatal(err)
		}
		said, text, _ := strings.Cut(got, "|{")
		if said != "true|-my fling.jsonl|true" {
			t.Errorf("%d pixels wide: %q; want a file to save, and no way to scroll sideways", width, said)
		}
		head, samples := recorded(t, "{"+text)
		first, last := samples[0], samples[len(samples)-1]
		if n := len(samples); head.Gesture != 1 || n < 5 || n > 22 || first.Y < 195 || first.Y > 205 || last.X-first.X < 90 || last.X-first.X > 100 || last.T == 0 {
			t.Errorf("%+v: %d samples from %+v to %+v; want the gesture that was made", head, n, first, last)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

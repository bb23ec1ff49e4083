package panel

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"eidetic/control/gesture"
	"eidetic/internal/report/reporttest"
)

// A gesture that a person makes on the panel's page becomes a file that a step can replay.
func TestGestureInBrowser(t *testing.T) {
	s := newServer(t, Config{Store: emptyStore(t), Version: "v1"})
	b := reporttest.NewBrowser(t)
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
		recording, err := gesture.ParseRecording(strings.NewReader("{" + text))
		if err != nil {
			t.Fatalf("what the page saves: %v\n%s", err, got)
		}
		first, last := recording.Samples[0], recording.Samples[len(recording.Samples)-1]
		if n := len(recording.Samples); n < 5 || n > 22 || first.Y < 195 || first.Y > 205 || last.X-first.X < 90 || last.X-first.X > 100 || last.After == 0 {
			t.Errorf("%d samples from %+v to %+v; want the gesture that was made", n, first, last)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

package gesture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/control"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestParse(t *testing.T) {
	got, err := Parse(`key Ctrl+L; type "a; \"b\"\n"
# a comment; with a semicolon
wait still 1s; click picture lamp.png in 0%,0%,100%,50% right
click css a[href="/x y"]
scroll -5 at 50%,50% over 400ms; drag 10,20 to 30,40 over 300ms rate 1000; mark half way; wait 500ms`)
	if err != nil {
		t.Fatal(err)
	}
	want := []lab.Step{
		{Key: "Ctrl+L"},
		{Type: "a; \"b\"\n"},
		{Wait: "still 1s"},
		{Click: "picture lamp.png in 0%,0%,100%,50%", Button: "right"},
		{Click: `css a[href="/x y"]`},
		{Scroll: "-5", At: "50%,50%", Over: 400},
		{Drag: "10,20 to 30,40", Over: 300, Rate: 1000},
		{Mark: "half way"},
		{Wait: "500ms"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func TestParseRefusesWithTheStatement(t *testing.T) {
	for text, say := range map[string]string{
		"":                       "no step",
		"klick 1,2":              `step 1, "klick 1,2": "klick" is none of open, click`,
		"key":                    "nothing follows key",
		"key F99":                "there is no key",
		"click here":             "pixels (640,360)",
		"key a; click 5%,200":    "step 2",
		`type "abc`:              "closing quote",
		"wait never":             "is none of still",
		"scroll 0":               "not both 0",
		"drag 1,2 3,4":           "TARGET to TARGET",
		"drag 1,2 to 3,4 rate x": "rate x",
		"click picture ../x.png": "beside the plan",
		"choose a.jpg":           "a step of plans alone",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Parse(%q) = %v; want an error with %q", text, err, say)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`key Ctrl+L; type "x"; wait still`, "click picture a.png tolerance 3\nscroll 1,2 at css x", `open "`, "#\n;;", "pan 1,1 to 2,2 over 1s rate 5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		steps, err := Parse(text)
		if err != nil {
			return
		}
		for _, s := range steps {
			if err := s.Check("step"); err != nil {
				t.Fatalf("Parse(%q) gives a step that Check refuses: %v", text, err)
			}
		}
	})
}

// fake is a controller that only takes notes, at the times of a clock that stands still
// unless it is moved.
type fake struct {
	control.Controller
	now   lab.Time
	took  time.Duration // of each action
	notes []string
	fails int // from which action on they fail, 0 never
}

func (f *fake) note(format string, args ...any) (lab.Event, error) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
	if f.fails > 0 && len(f.notes) >= f.fails {
		return lab.Event{}, errors.New("unplugged")
	}
	e := lab.Event{Earliest: f.now, Latest: f.now.Add(f.took)}
	f.now = e.Latest
	return e, nil
}

func (f *fake) Key(_ context.Context, chord string) (lab.Event, error) {
	return f.note("key %s", chord)
}
func (f *fake) Text(_ context.Context, text string) (lab.Event, error) {
	return f.note("text %s", text)
}
func (f *fake) Move(_ context.Context, x, y int) (lab.Event, error) {
	return f.note("move %d,%d", x, y)
}
func (f *fake) Lift(context.Context) (lab.Event, error) { return f.note("lift") }
func (f *fake) Click(_ context.Context, x, y int, b control.Button) (lab.Event, error) {
	return f.note("click %d,%d %d", x, y, b)
}
func (f *fake) Press(_ context.Context, x, y int, b control.Button) (lab.Event, error) {
	return f.note("press %d,%d %d", x, y, b)
}
func (f *fake) Scroll(_ context.Context, x, y, dx, dy int) (lab.Event, error) {
	return f.note("scroll %d,%d %d,%d", x, y, dx, dy)
}
func (f *fake) Touch(_ context.Context, fingers ...image.Point) (lab.Event, error) {
	text := "touch"
	for _, p := range fingers {
		text += fmt.Sprintf(" %d,%d", p.X, p.Y)
	}
	return f.note("%s", text)
}

// doer is a Doer on a fake, whose waiting moves the clock.
func doer(f *fake) *Doer {
	return &Doer{
		Controller: f, Clock: func() lab.Time { return f.now }, Screen: image.Rect(0, 0, 200, 100),
		Find: func(_ context.Context, t lab.Target) (image.Rectangle, error) {
			if t.CSS != "" || t.Picture != "" {
				return image.Rect(10, 10, 30, 20), nil
			}
			if t.Share {
				t.X = 2 * t.X
			}
			at := image.Pt(int(t.X), int(t.Y))
			return image.Rectangle{at, at.Add(image.Pt(1, 1))}, nil
		},
		Until: func(_ context.Context, at lab.Time) error { f.now = max(f.now, at); return nil },
	}
}

// chooser answers file dialogues, too.
type chooser struct{ *fake }

func (c chooser) ChooseFile(
	ctx context.Context, x, y int, path string, ready func(ctx context.Context) error,
) ([]lab.Event, lab.Event, error) {
	click, _ := c.Click(ctx, x, y, control.Left)
	if err := ready(ctx); err != nil {
		return []lab.Event{click}, lab.Event{}, err
	}
	e, err := c.note("choose %s", path)
	return []lab.Event{click}, e, err
}

// The input of a step that chooses a file is what chooses it, and not what opened the dialogue.
func TestChoose(t *testing.T) {
	step := lab.Step{Choose: "a.jpg", At: "css #file"}
	if _, err := doer(&fake{}).Do(t.Context(), step); !errors.Is(err, errRefused) {
		t.Errorf("Do(without file dialogues) = %v; want %v", err, errRefused)
	}
	f := &fake{took: time.Millisecond}
	d := doer(f)
	d.Controller = chooser{f}
	d.File = func(name string) (string, error) { return "/there/" + name, nil }
	d.Ready = func(context.Context) error { _, err := f.note("ready"); return err }
	log, err := d.Do(t.Context(), step)
	want := []string{"click 19,14 1", "ready", "choose /there/a.jpg"}
	if diff := cmp.Diff(want, f.notes); diff != "" || err != nil {
		t.Error(err, "-want +got\n", diff)
	}
	if span, ok := log.Span(); !ok || span.Earliest != lab.Time(2*time.Millisecond) || len(log.Before) != 1 {
		t.Errorf("Do() = %+v; want the input after the click and ready", log)
	}
}

func TestDo(t *testing.T) {
	for line, want := range map[string]string{
		"click 5,6":                                         "click 5,6 1",
		"click css #pay right":                              "click 19,14 3",
		"move 50%,50%":                                      "move 100,50",
		"type ab":                                           "text ab",
		"scroll 3":                                          "scroll 100,50 0,3",
		"scroll 2 at 1,1 over 10ms":                         "scroll 1,1 0,1 scroll 1,1 0,1",
		"drag 0,0 to 40,0 over 40ms rate 100":               "press 0,0 1 move 10,0 move 20,0 move 30,0 move 40,0 lift",
		"pan 0,0 to 100,0 over 20ms rate 100":               "press 0,0 1 move 25,0 move 100,0 lift",
		"mark here":                                         "",
		"pinch 50%,50% by 2 over 20ms rate 100":             "touch 87,50 113,50 touch 81,50 119,50 touch 75,50 125,50 touch",
		"pinch 50%,50% by 0.5 over 10ms rate 100":           "touch 75,50 125,50 touch 87,50 113,50 touch",
		"rotate 50%,50% by 90 over 10ms rate 100":           "touch 75,50 125,50 touch 100,25 100,75 touch",
		"pan 100,80 to 100,20 fingers 2 over 10ms rate 100": "touch 94,80 106,80 touch 94,20 106,20 touch",
	} {
		steps, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{now: 1e9}
		log, err := doer(f).Do(t.Context(), steps[0])
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if got := strings.Join(f.notes, " "); got != want {
			t.Errorf("%s: %q; want %q", line, got, want)
		}
		if len(log.Events) == 0 {
			t.Errorf("%s: no event is logged", line)
		}
	}
}

// TestLate: a controller that is slower than the schedule completes the gesture, and the error
// says which event was late, by how much, and what was allowed.
func TestLate(t *testing.T) {
	f := &fake{now: 1e9, took: 15 * time.Millisecond}
	log, err := doer(f).Do(t.Context(), lab.Step{Drag: "0,0 to 100,0", Over: 50, Rate: 100, Late: 5})
	var late *LateError
	if !errors.As(err, &late) || late.Event != 2 || late.By != 10*time.Millisecond || late.Bound != 5*time.Millisecond {
		t.Errorf("Do() = %v; want event 3 to be 10 ms late", err)
	}
	if got := f.notes[len(f.notes)-1]; got != "lift" || len(log.Events) != 7 {
		t.Errorf("after %d events the last is %q; want 7, and lift", len(log.Events), got)
	}
	if log.Worst() != 25*time.Millisecond {
		t.Errorf("Worst() = %v; want 25ms", log.Worst())
	}
}

// pasting is a fake whose layout lacks a text.
type pasting struct{ *fake }

func (pasting) PrepareText(_ context.Context, text string) (pasted bool, err error) {
	return text == "日本", nil
}

// TestPastedTextTakesNoTime: what comes at once is refused where it was to take a time, before anything is typed.
func TestPastedTextTakesNoTime(t *testing.T) {
	f := &fake{now: 1e9}
	d := doer(f)
	d.Controller = pasting{f}
	if _, err := d.Do(t.Context(), lab.Step{Type: "日本", Over: 100}); !errors.Is(err, errPastedOver) {
		t.Errorf("Do() of a text over a time = %v; want %v", err, errPastedOver)
	}
	if _, err := d.Do(t.Context(), lab.Step{Type: "日本"}); err != nil {
		t.Errorf("Do() of a text at once = %v; want nil", err)
	}
	if _, err := d.Do(t.Context(), lab.Step{Type: "ab", Over: 10}); err != nil {
		t.Errorf("Do() of keys over a time = %v; want nil", err)
	}
	if got, want := strings.Join(f.notes, " "), "text 日本 text a text b"; got != want {
		t.Errorf("the device got %q; want %q", got, want)
	}
}

// TestFingersAreRefused: a device without a touch screen, and a way that leaves the screen, are refused before a finger
// is down.
func TestFingersAreRefused(t *testing.T) {
	f := &fake{now: 1e9}
	plain := doer(f)
	plain.Controller = struct{ control.Controller }{f}
	for _, s := range []lab.Step{{Pinch: "50%,50% by 2"}, {Rotate: "50%,50% by 90"}, {Pan: "100,80 to 100,20", Fingers: 2}} {
		if _, err := plain.Do(t.Context(), s); !errors.Is(err, errNoTouch) {
			t.Errorf("Do(%+v) without a touch screen = %v; want %v", s, err, errNoTouch)
		}
	}
	if _, err := doer(f).Do(t.Context(), lab.Step{Pinch: "5,5 by 2"}); err == nil || !strings.Contains(err.Error(), "would leave the screen") {
		t.Errorf("Do() at the edge = %v; want an error that says so", err)
	}
	if len(f.notes) > 0 {
		t.Errorf("the device got %q; want nothing", f.notes)
	}
}

// TestFailureLifts: what is held is released where a gesture breaks off.
func TestFailureLifts(t *testing.T) {
	f := &fake{now: 1e9, fails: 3}
	if _, err := doer(f).Do(t.Context(), lab.Step{Drag: "0,0 to 100,0", Over: 50, Rate: 100}); err == nil || !strings.Contains(err.Error(), "unplugged") {
		t.Errorf("Do() = %v; want the controller's error", err)
	}
	if got := f.notes[len(f.notes)-1]; got != "lift" {
		t.Errorf("the last action is %q; want lift", got)
	}
	f = &fake{now: 1e9, fails: 3}
	if _, err := doer(f).Do(t.Context(), lab.Step{Rotate: "50%,50% by 90"}); err == nil || f.notes[len(f.notes)-1] != "touch" {
		t.Errorf("Do() = %v, and the last action is %q; want an error, and the fingers lifted", err, f.notes[len(f.notes)-1])
	}
}

const getevent = `# screen 1000x2000
add device 1: /dev/input/event2
[   100.000000] /dev/input/event2: EV_ABS       ABS_MT_TRACKING_ID   0000002d
[   100.000000] /dev/input/event2: EV_ABS       ABS_MT_POSITION_X    000001f4
[   100.000000] /dev/input/event2: EV_ABS       ABS_MT_POSITION_Y    000003e8
[   100.000000] /dev/input/event2: EV_SYN       SYN_REPORT           00000000
[   100.008000] /dev/input/event2: EV_ABS       ABS_MT_POSITION_Y    000001f4
[   100.008000] /dev/input/event2: EV_SYN       SYN_REPORT           00000000
[   100.016000] /dev/input/event2: EV_ABS       ABS_MT_TRACKING_ID   ffffffff
[   100.016000] /dev/input/event2: EV_SYN       SYN_REPORT           00000000
`

func TestRecording(t *testing.T) {
	g, err := ParseRecording(strings.NewReader(getevent))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ParseRecording(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, again); diff != "" {
		t.Error("-read +read again\n", diff)
	}
	f := &fake{now: 1e9}
	d := doer(f)
	d.Recorded = func(string) (*Recording, error) { return g, nil }
	if _, err := d.Do(t.Context(), lab.Step{Replay: "fling.txt"}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(f.notes, " "), "press 100,50 1 move 100,25 lift"; got != want {
		t.Errorf("replayed on 200×100: %q; want %q", got, want)
	}
}

// TestRecordingOfOthers: what getevent prints is read without labels, and as Windows' shells write it.
func TestRecordingOfOthers(t *testing.T) {
	want, err := ParseRecording(strings.NewReader(getevent))
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.NewReplacer("EV_ABS", "0003", "EV_SYN", "0000", "ABS_MT_TRACKING_ID", "0039", "ABS_MT_POSITION_X", "0035",
		"ABS_MT_POSITION_Y", "0036", "SYN_REPORT", "0000").Replace(getevent)
	for name, text := range map[string]string{
		"numbers": numbers, "old adb": strings.ReplaceAll(getevent, "\n", "\r\r\n"),
		"UTF-16": "\xff\xfe" + strings.Join(strings.Split(getevent, ""), "\x00") + "\x00",
	} {
		got, err := ParseRecording(strings.NewReader(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestRecordingOfPanels: touch screens by the kernel's protocol A, of one finger, and beside other devices are read, and
// so is a tap that is one report.
func TestRecordingOfPanels(t *testing.T) {
	const panel, button = "] /dev/input/event2: ", "] /dev/input/event0: "
	lines := func(of ...string) string { return "# screen 1000x2000\n" + strings.Join(of, "\n") }
	drag := &Recording{1000, 2000, []Sample{{0, 500, 1000}, {8 * time.Millisecond, 500, 500}}}
	for name, c := range map[string]struct {
		text string
		want *Recording
	}{
		"protocol A": {lines("[ 100.000000"+panel+"EV_ABS ABS_MT_POSITION_X 000001f4", "[ 100.000000"+panel+"EV_ABS ABS_MT_POSITION_Y 000003e8",
			"[ 100.000000"+panel+"EV_SYN SYN_MT_REPORT 00000000", "[ 100.000000"+panel+"EV_SYN SYN_REPORT 00000000",
			"[ 100.004000"+button+"EV_KEY KEY_POWER DOWN", "[ 100.004000"+button+"EV_SYN SYN_REPORT 00000000",
			"[ 100.008000"+panel+"0003 0035 000001f4", "[ 100.008000"+panel+"0003 0036 000001f4", "[ 100.008000"+panel+"0000 0002 00000000", "[ 100.008000"+panel+"0000 0000 00000000",
			"[ 100.016000"+panel+"EV_SYN SYN_MT_REPORT 00000000", "[ 100.016000"+panel+"EV_SYN SYN_REPORT 00000000"), drag},
		"one finger": {lines("[ 100.000000] EV_KEY BTN_TOUCH DOWN", "[ 100.000000] EV_ABS ABS_X 000001f4", "[ 100.000000] EV_ABS ABS_Y 000003e8", "[ 100.000000] EV_SYN SYN_REPORT 00000000",
			"[ 100.008000] EV_ABS ABS_Y 000001f4", "[ 100.008000] EV_SYN SYN_REPORT 00000000", "[ 100.016000] EV_KEY BTN_TOUCH UP", "[ 100.016000] EV_SYN SYN_REPORT 00000000"), drag},
		"tap": {lines("[ 100.000000] EV_ABS ABS_MT_TRACKING_ID 00000001", "[ 100.000000] EV_ABS ABS_MT_POSITION_X 00000003", "[ 100.000000] EV_ABS ABS_MT_POSITION_Y 00000005", "[ 100.000000] EV_SYN SYN_REPORT 00000000",
			"[ 100.050000] EV_ABS ABS_MT_TRACKING_ID ffffffff", "[ 100.050000] EV_SYN SYN_REPORT 00000000"),
			&Recording{1000, 2000, []Sample{{0, 3, 5}, {50 * time.Millisecond, 3, 5}}}},
	} {
		got, err := ParseRecording(strings.NewReader(c.text))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := ParseRecording(strings.NewReader("# screen 1x1\nEV_ABS ABS_MT_POSITION_X 00000003\n")); err == nil || !strings.Contains(err.Error(), "getevent -lt") {
		t.Errorf("a text without times: %v; want how to record", err)
	}
}

// TestParseLines: statements may have tabs, and line ends of any machine.
func TestParseLines(t *testing.T) {
	for _, text := range []string{"# a\r\nkey\tEnter\r\nwait still", "# a\rkey Enter\rwait still\r", "key Enter;wait\t still"} {
		steps, err := Parse(text)
		if err != nil || len(steps) != 2 || steps[0].Key != "Enter" || steps[1].Wait != "still" {
			t.Errorf("Parse(%q) = %+v, %v; want key and wait", text, steps, err)
		}
	}
}

func FuzzParseRecording(f *testing.F) {
	f.Add([]byte(getevent))
	f.Add([]byte("{\"gesture\":1,\"width\":10,\"height\":10}\n{\"t_ms\":0,\"x\":1,\"y\":1}\n{\"t_ms\":5,\"x\":2,\"y\":9.5}\n"))
	f.Add([]byte("{\"gesture\":1,\"width\":-1}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		g, err := ParseRecording(bytes.NewReader(text))
		if err != nil {
			return
		}
		screen := image.Rect(0, 0, 100, 50)
		for _, p := range g.fit(screen) {
			if !p.At.In(screen) {
				t.Fatalf("a sample is at %v, outside %v", p.At, screen)
			}
		}
	})
}

package lab

import (
	"errors"
	"image"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestCheckStepsNamesThePlace(t *testing.T) {
	open := Step{Open: "https://shop.test/"}
	for want, steps := range map[string][]Step{
		"steps[0]: the first step opens":          {{Click: "1,1"}},
		"steps[1]: the step does nothing":         {open, {Name: "pay"}},
		"steps[1]: the step has click and key":    {open, {Click: "1,1", Key: "a"}},
		"steps[2].name: \"a\" is the name of":     {open, {Name: "a", Key: "b"}, {Name: "a", Key: "c"}},
		"steps[1].click: target \"there\"":        {open, {Click: "there"}},
		"steps[1].steps[0].wait":                  {open, {Steps: []Step{{Wait: "long"}}}},
		"steps[1].mask[1]: region":                {open, {Key: "a", Mask: []string{"0,0,1,1", "0,0,1"}}},
		"steps[1].end: end \"stil\"":              {open, {Key: "a", End: "stil"}},
		"steps[0].repeat":                         {{Open: "https://shop.test/", Repeat: 2}},
		"steps[1].rate_hz: 5000 is not within":    {open, {Drag: "1,1 to 2,2", Rate: 5000}},
		"steps: 501 steps with all repetitions":   {open, {Repeat: 100, Steps: []Step{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "d"}}}},
		"steps[1].drag: \"1,1\": write TARGET to": {open, {Drag: "1,1"}},
		"steps[1].pings: idle gives no input":     {open, {Idle: "1s", Pings: 3}},
		"steps[1].pings: such a step ends":        {open, {Key: "a", Pings: 3, End: "still 1s"}},
		"steps[1].pings: 201 is not within":       {open, {Key: "a", Pings: 201}},
		"steps[0].pings: the first step":          {{Open: "https://shop.test/", Pings: 2}},
		"steps[1].echo: it is compared with":      {open, {Key: "a", Echo: 3}},
		"steps[1].echo: 201 is not within":        {open, {Key: "a", Pings: 3, Echo: 201}},
		"steps[1].region: it says where pings":    {open, {Key: "a", Region: "0,0,1,1"}},
		"steps[1].window: idle opens no window":   {open, {Idle: "1s", Window: true}},
		"steps[1].idle: \"5\": write a time":      {open, {Idle: "5"}},
		"steps[1].at: name what opens the file":   {open, {Choose: "a.jpg"}},
		"steps[1].choose: \"../a.jpg\" is no":     {open, {Choose: "../a.jpg", At: "1,1"}},
		"steps[1].choose: \"a\\tb\" is no name":   {open, {Choose: "a\tb", At: "1,1"}}, // Tab would leave the dialogue's field
		"steps[1].pings: choose gives no input":   {open, {Choose: "a.jpg", At: "1,1", Pings: 2}},
	} {
		err := CheckSteps(steps)
		var at *FieldError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CheckSteps() = %v; want a *FieldError that begins with %q", err, want)
		}
	}
	deep := Step{Steps: []Step{{Steps: []Step{{Steps: []Step{{Key: "a"}}}}}}}
	if err := CheckSteps([]Step{open, deep}); err == nil || !strings.Contains(err.Error(), "objective, task, detail") {
		t.Errorf("four levels: %v", err)
	}
	if err := CheckSteps([]Step{open, {Name: "a", Key: "b", Repeat: 3, End: "picture x.png and still 30 frames in 0%,0%,50%,50%"}}); err != nil {
		t.Error(err)
	}
}

func TestParseEnd(t *testing.T) {
	e, err := ParseEnd("still 200ms in 1,2,3,4 and picture b.png tolerance 9 and colour #ff8000 and done pay it and network 2s")
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Kinds(); got != "still+picture+colour+done+network" {
		t.Errorf("Kinds() = %q", got)
	}
	if c := e.Conditions; c[0].For.Seconds() != 0.2 || *c[0].Within != (Region{1, 2, 3, 4, false}) || c[1].Target.Tolerance != 9 ||
		c[2].Colour.G != 0x80 || c[3].Name != "pay it" || c[4].For.Seconds() != 2 {
		t.Errorf("ParseEnd() = %+v", c)
	}
	for _, bad := range []string{"", "still 0s", "still 0 frames", "picture", "colour red", "changed now", "red in", "network soon", "still 1s and"} {
		if e, err := ParseEnd(bad); err == nil {
			t.Errorf("ParseEnd(%q) = %+v", bad, e)
		}
	}
}

func TestRegionIn(t *testing.T) {
	content := image.Rect(100, 50, 300, 150)
	for text, want := range map[string]image.Rectangle{
		"10%,10%,50%,50%": image.Rect(120, 60, 220, 110),
		"5,5,10,10":       image.Rect(105, 55, 115, 65),
		"190,0,100,10":    image.Rect(290, 50, 300, 60),
	} {
		r, err := ParseRegion(text)
		if got := r.In(content); err != nil || got != want {
			t.Errorf("%s: %v %v; want %v", text, got, err, want)
		}
	}
}

func FuzzStep(f *testing.F) {
	for _, seed := range []string{"50%,40%", "picture a.png in 1,2,3,4", "css #pay", "still 30 frames in 0%,0%,9%,9% and red", "1,1 to 2,2", "-3,4", "500ms"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		if target, err := ParseTarget(text); err == nil && target.CSS == "" && target.Picture == "" && (target.X < 0 || target.X > MaxSide) {
			t.Errorf("ParseTarget(%q) = %+v", text, target)
		}
		if r, err := ParseRegion(text); err == nil && !r.In(image.Rect(0, 0, 100, 100)).In(image.Rect(0, 0, 100, 100)) {
			t.Errorf("ParseRegion(%q) = %+v", text, r)
		}
		_, _ = ParseEnd(text)
		_, _, _ = ParseWay(text)
		_, _, _ = ParsePinch(text)
		_, _, _ = ParseRotate(text)
		_, _, _ = ParseNotches(text)
		_, _, _ = ParseWait(text)
	})
}

// TestBehindHash: what YAML takes for a comment is asked for with its quotes.
func TestBehindHash(t *testing.T) {
	_, target := ParseTarget("css")
	_, end := ParseEnd("colour")
	for _, err := range []error{target, end} {
		if err == nil || !strings.Contains(err.Error(), "quote it") {
			t.Errorf("an empty selector or colour: %v; want what YAML does with a #", err)
		}
	}
}

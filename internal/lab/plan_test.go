package lab

import (
	"cmp"
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestArms(t *testing.T) {
	p := Plan{Trials: 3, Arm: Arm{Page: "p", Archive: "a"}}
	if d := gocmp.Diff([]NamedArm{{Control, Arm{Page: "p", Archive: "a", Link: NativeLink}}}, p.Arms()); d != "" || p.Total() != 3 {
		t.Errorf("Total() = %d, want 3; Arms() (-want +got):\n%s", p.Total(), d)
	}
	for _, c := range []struct{ treatment, want Arm }{
		{Arm{}, Arm{Page: "p", Archive: "a", Link: NativeLink}},
		{Arm{Link: "3g"}, Arm{Page: "p", Archive: "a", Link: "3g"}},
		{Arm{Match: "strict"}, Arm{Page: "p", Archive: "a", Link: NativeLink, Match: "strict"}},
		{Arm{Page: "q"}, Arm{Page: "q", Link: NativeLink}}, // the control's recording is of another page
		{Arm{Page: "q", Archive: "b"}, Arm{Page: "q", Archive: "b", Link: NativeLink}},
	} {
		p.Treatment = &c.treatment
		arms := p.Arms()
		if d := gocmp.Diff(NamedArm{Treatment, c.want}, arms[1]); d != "" || p.Total() != 6 {
			t.Errorf("the arm of %+v (-want +got):\n%s", c.treatment, d)
		}
		if d := gocmp.Diff(arms, p.WithArms(arms).Arms()); d != "" {
			t.Errorf("WithArms(%+v) has other arms (-want +got):\n%s", c.treatment, d)
		}
	}
}

// TestArmsOfApps: another app does not stand for the page of the control's, nor replay what that was recorded with; one
// that opens the control's page does both.
func TestArmsOfApps(t *testing.T) {
	a, b := &App{Command: "/opt/a"}, &App{Package: "org.example.b/.Main"}
	for _, c := range []struct{ control, treatment, want Arm }{
		{Arm{App: a, Archive: "x"}, Arm{App: b}, Arm{Page: "app:org.example.b", App: b}},
		{Arm{App: a, Archive: "x"}, Arm{Link: "3g"}, Arm{Page: "app:a", App: a, Archive: "x", Link: "3g"}},
		{Arm{App: a, Page: "https://p.test/", Archive: "x"}, Arm{App: b}, Arm{Page: "https://p.test/", App: b, Archive: "x"}},
	} {
		p := Plan{Arm: c.control, Treatment: &c.treatment}
		c.want.State, c.want.Link = StateAppCold, cmp.Or(c.want.Link, NativeLink)
		arms := p.Arms()
		if d := gocmp.Diff(NamedArm{Treatment, c.want}, arms[1]); d != "" {
			t.Errorf("the treatment of %+v and %+v (-want +got):\n%s", c.control, c.treatment, d)
		}
		if d := gocmp.Diff(arms, p.WithArms(arms).Arms()); d != "" {
			t.Errorf("WithArms(%+v) has other arms (-want +got):\n%s", c.treatment, d)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, 0.0167: 16700 * time.Microsecond, 1e300: math.MaxInt64, -1e300: math.MinInt64,
		math.Inf(1): math.MaxInt64,
	} {
		if got := seconds(s); got != want {
			t.Errorf("seconds(%v) = %v, want %v", s, got, want)
		}
	}
	if got := seconds(math.NaN()); got != 0 {
		t.Errorf("seconds(NaN) = %v, want 0", got)
	}
}

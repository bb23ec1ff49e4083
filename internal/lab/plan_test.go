package lab

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArms(t *testing.T) {
	p := Plan{Trials: 3, Arm: Arm{Page: "p", Archive: "a"}}
	if d := cmp.Diff([]NamedArm{{Control, Arm{Page: "p", Archive: "a", Link: NativeLink}}}, p.Arms()); d != "" || p.Total() != 3 {
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
		if d := cmp.Diff(NamedArm{Treatment, c.want}, arms[1]); d != "" || p.Total() != 6 {
			t.Errorf("the arm of %+v (-want +got):\n%s", c.treatment, d)
		}
		if d := cmp.Diff(arms, p.WithArms(arms).Arms()); d != "" {
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

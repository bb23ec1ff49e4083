package lab

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	if err := Wait(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("Wait() = %v; want nil", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait() with a context that is done = %v; want its error", err)
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "käse": "käse", "käsebrot": "käse…"} {
		if got := Clip(text, 4); got != want {
			t.Errorf("Clip(%q, 4) = %q; want %q", text, got, want)
		}
	}
}

package redact

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A log has hosts and paths, and no secret of an address, wherever that stands.
func TestLog(t *testing.T) {
	const page = "https://ada:hush@shop.test/cart?token=hush#hush"
	var b bytes.Buffer
	log := slog.New(Log(slog.NewTextHandler(&b, nil)))
	err := fmt.Errorf("%s: %w", page, errors.New("no such host"))
	log.With("page", page).WithGroup("run").Error("the page "+page+" cannot be recorded", "err", err, "n", 3, slog.Group("of", "page", page))
	text := b.String()
	if strings.Contains(text, "hush") || strings.Count(text, "https://removed@shop.test/cart?[removed]") != 4 {
		t.Errorf("the log has %q; want four addresses without their secrets", text)
	}
	for _, want := range []string{"no such host", "run.n=3", "run.of.page="} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has %q; want %q", text, want)
		}
	}
}

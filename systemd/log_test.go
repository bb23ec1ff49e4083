package systemd

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

type entry struct {
	Message  string
	Priority journal.Priority
	Fields   map[string]string
}

func TestJournalFields(t *testing.T) {
	var got []entry
	h := NewJournalHandler(func(m string, p journal.Priority, f map[string]string) error {
		got = append(got, entry{m, p, f})
		return nil
	}, slog.LevelInfo)
	log := slog.New(h)
	log.Debug("not sent")
	log.With("device", "phone 1").WithGroup("link").Warn("queue full", "drops", 3, slog.Group("down", "rate", "5M"))
	log.Error("cannot", "message", "a\nb", "9lives", true, "_hidden", "", slog.Attr{})
	want := []entry{
		{`queue full device="phone 1" link.drops=3 link.down.rate=5M`, journal.PriWarning,
			map[string]string{"DEVICE": "phone 1", "LINK_DROPS": "3", "LINK_DOWN_RATE": "5M"}},
		{`cannot message="a\nb" 9lives=true _hidden=""`, journal.PriErr,
			map[string]string{"FIELD_MESSAGE": "a\nb", "FIELD_9LIVES": "true", "HIDDEN": ""}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
}

// With must not leak attributes into its parent, whatever the order of use.
func TestJournalHandlersAreIndependent(t *testing.T) {
	var fields map[string]string
	h := NewJournalHandler(func(_ string, _ journal.Priority, f map[string]string) error {
		fields = f
		return nil
	}, slog.LevelInfo)
	parent := slog.New(h).With("a", 1)
	parent.With("b", 2).Info("x", "c", 3)
	parent.Info("y")
	if d := cmp.Diff(map[string]string{"A": "1"}, fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

func TestJournalErrorsAreReturned(t *testing.T) {
	broken := errors.New("no journal")
	h := NewJournalHandler(func(string, journal.Priority, map[string]string) error { return broken }, slog.LevelInfo)
	if err := h.Handle(t.Context(), slog.Record{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestLoggerOutsideTheJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "")
	var out strings.Builder
	Logger(&out, slog.LevelInfo).Info("hello", "n", 1)
	if !strings.Contains(out.String(), "msg=hello n=1") {
		t.Errorf("got %q", out.String())
	}
}

func FuzzFieldName(f *testing.F) {
	for _, s := range []string{"", "a", "_a", "9", "MESSAGE", "net.device", strings.Repeat("x", 100), "é€"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		defer testlab.Input(t)()
		name := fieldName(key)
		if name == "" || len(name) > maxFieldName || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" ||
			name[0] == '_' || '0' <= name[0] && name[0] <= '9' {
			t.Errorf("fieldName(%q) = %q, which the journal refuses", key, name)
		}
	})
}

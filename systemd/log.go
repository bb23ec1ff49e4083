package systemd

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
)

// Logger returns a logger for a service: to the journal with fields when
// standard error is connected to it, and otherwise as text to w.
func Logger(w io.Writer, level slog.Leveler) *slog.Logger {
	if ok, err := journal.StderrIsJournalStream(); ok && err == nil {
		return slog.New(NewJournalHandler(journal.Send, level))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// Send delivers one journal entry; journal.Send is the real one.
type Send func(message string, priority journal.Priority, fields map[string]string) error

// JournalHandler is a slog.Handler that writes journal entries: the level
// becomes PRIORITY, and each attribute a field of its own, so that
// "journalctl DEVICE=phone TRIAL=7" finds it. Groups are prefixes.
type JournalHandler struct {
	send   Send
	level  slog.Leveler
	prefix string
	fields map[string]string
	text   string // the attributes of With, as they are shown in the message
}

// NewJournalHandler returns a handler for entries of at least level.
func NewJournalHandler(send Send, level slog.Leveler) *JournalHandler {
	return &JournalHandler{send: send, level: level}
}

// Enabled implements slog.Handler.
func (h *JournalHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// Handle implements slog.Handler. The message repeats the attributes as
// key=value, because journalctl does not show fields by default.
func (h *JournalHandler) Handle(_ context.Context, r slog.Record) error {
	next := h.clone()
	r.Attrs(func(a slog.Attr) bool {
		next.add(h.prefix, a)
		return true
	})
	return h.send(r.Message+next.text, priority(r.Level), next.fields)
}

// WithAttrs implements slog.Handler.
func (h *JournalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := h.clone()
	for _, a := range attrs {
		next.add(h.prefix, a)
	}
	return next
}

// WithGroup implements slog.Handler.
func (h *JournalHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := h.clone()
	next.prefix += name + "."
	return next
}

func (h *JournalHandler) clone() *JournalHandler {
	next := *h
	next.fields = make(map[string]string, len(h.fields)+4)
	for k, v := range h.fields {
		next.fields[k] = v
	}
	return &next
}

func (h *JournalHandler) add(prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range value.Group() {
			h.add(prefix, inner)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	text := value.String()
	h.fields[fieldName(prefix+a.Key)] = text
	if strings.ContainsAny(text, " \t\n\"=") || text == "" {
		text = `"` + strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(text) + `"`
	}
	h.text += " " + prefix + a.Key + "=" + text
}

// maxFieldName is the journal's own limit.
const maxFieldName = 64

// fieldName makes a name that the journal accepts: upper-case letters, digits
// and underscores, not beginning with an underscore or a digit.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key)
	name = strings.TrimLeft(name, "_")
	// MESSAGE and PRIORITY are ours, and a name must not begin with a digit.
	if name == "" || name == "MESSAGE" || name == "PRIORITY" || '0' <= name[0] && name[0] <= '9' {
		name = "FIELD_" + name
	}
	return name[:min(len(name), maxFieldName)]
}

func priority(level slog.Level) journal.Priority {
	switch {
	case level >= slog.LevelError:
		return journal.PriErr
	case level >= slog.LevelWarn:
		return journal.PriWarning
	case level >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}

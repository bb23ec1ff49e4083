package redact

import (
	"context"
	"log/slog"
)

// Log returns a handler for a log that others may read: it removes users, queries and fragments of the URLs in messages
// and attributes before h gets them.
func Log(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (l logHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, New().Addresses(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(cleanAttr(a))
		return true
	})
	return l.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{l.Handler.WithAttrs(cleanAttrs(attrs))}
}

// WithGroup implements slog.Handler.
func (l logHandler) WithGroup(name string) slog.Handler { return logHandler{l.Handler.WithGroup(name)} }

func cleanAttrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = cleanAttr(a)
	}
	return clean
}

func cleanAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(cleanAttrs(v.Group())...)
	case slog.KindString, slog.KindAny:
		text := v.String()
		if clean := New().Addresses(text); clean != text {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}

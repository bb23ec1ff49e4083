package lab

import (
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Removed stands where a secret was.
const Removed = "[removed]"

// Secret is a text that lets somebody in: a token, a password, a key, the value of a cookie. However it is printed,
// logged or encoded, also within other values, [Removed] is what comes out; only [Secret.Reveal] gives the text, so
// that each place where it leaves is found by that word. It can be compared, and the zero value is no secret.
type Secret struct {
	text unique.Handle[string] // fmt prints fields that are not exported, too: a handle prints as an address
}

// NewSecret keeps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.text.Value()
}

// IsZero says whether there is none.
func (s Secret) IsZero() bool { return s == Secret{} }

// Equal is for go-cmp.
func (s Secret) Equal(t Secret) bool { return s == t }

// String implements fmt.Stringer, without the text.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return Removed
}

// Format implements fmt.Formatter: no verb shows the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, and thereby JSON and YAML, without the text. A value whose encoding is
// how the secret gets where it is needed reveals it in a MarshalJSON of its own.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

package x11

import (
	"bytes"
	"encoding/binary"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// authority builds an entry of an Xauthority file.
func authority(family uint16, fields ...string) []byte {
	b := binary.BigEndian.AppendUint16(nil, family)
	for _, f := range fields {
		b = binary.BigEndian.AppendUint16(b, uint16(len(f)))
		b = append(b, f...)
	}
	return b
}

func TestCookie(t *testing.T) {
	const cookie, name = "0123456789abcdef", "MIT-MAGIC-COOKIE-1"
	other := authority(256, "elsewhere", "1", name, cookie)
	for _, c := range []struct {
		label string
		file  []byte
		want  string
	}{
		{"empty", nil, ""},
		{"local", authority(256, "box", "1", name, cookie), cookie},
		{"any host", authority(65535, "", "1", name, cookie), cookie},
		{"any number", authority(65535, "", "", name, cookie), cookie},
		{"second entry", append(bytes.Clone(other), authority(256, "box", "1", name, cookie)...), cookie},
		{"other host", other, ""},
		{"other number", authority(256, "box", "2", name, cookie), ""},
		{"other method", authority(256, "box", "1", "XDM-AUTHORIZATION-1", cookie), ""},
		{"cut off", authority(256, "box", "1", name, cookie)[:30], ""},
	} {
		if got := string(parseCookie(c.file, "box", "1")); got != c.want {
			t.Errorf("%s: %q, want %q", c.label, got, c.want)
		}
	}
}

func FuzzCookie(f *testing.F) {
	f.Add(authority(256, "box", "1", "MIT-MAGIC-COOKIE-1", "0123456789abcdef"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		if c := parseCookie(b, "box", "1"); c != nil && len(c) != 16 {
			t.Errorf("a cookie of %d bytes", len(c))
		}
	})
}

// FuzzScreen feeds the server's set-up, which could be anything that listens there.
func FuzzScreen(f *testing.F) {
	f.Add(make([]byte, 120))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		w := &wire{}
		_ = w.screen(b)
	})
}

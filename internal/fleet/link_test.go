package fleet

import (
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestLink(t *testing.T) {
	pin, code := strings.Repeat("3b", 32), "AbCdEfGhIjKlMnOpQrSt-_"
	for _, host := range []string{"192.0.2.7:8443", "[2001:db8::7]:8443", "head.example.org:443", "head:1"} {
		want := Link{host, code, pin}
		if got, err := ParseLink(" " + want.String() + "\n"); err != nil || got != want {
			t.Errorf("ParseLink(%q) = %+v, %v; want %+v, nil", want, got, err, want)
		}
	}
	good := Link{"head:8443", code, pin}.String()
	for _, bad := range []string{
		"", "https" + strings.TrimPrefix(good, linkScheme), strings.Replace(good, "head:8443", "head", 1), strings.Replace(good, ":8443", ":0", 1),
		strings.Replace(good, ":8443", ":08443", 1), strings.Replace(good, ":8443", ":99999", 1), strings.Replace(good, "head:", "user@head:", 1),
		strings.Replace(good, "head:", "he ad:", 1), strings.Replace(good, code, "short", 1), strings.Replace(good, code, code+"/x", 1), good[:len(good)-1], good + "0",
		good + "&pin=" + pin, good + "#x", strings.ReplaceAll(good, "3b", "3B"), strings.Replace(good, "?pin=", "?PIN=", 1),
		strings.Replace(good, "head:", "..:", 1), strings.Replace(good, code, strings.Repeat("a", 2000), 1),
	} {
		got, err := ParseLink(bad)
		if err == nil {
			t.Errorf("ParseLink(%q) = %+v; want an error", bad, got)
		} else if strings.Contains(err.Error(), code) {
			t.Errorf("ParseLink(%q) = %v; want an error without the code", bad, err)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(Link{"192.0.2.7:8443", "AbCdEfGhIjKlMnOpQrSt", strings.Repeat("3b", 32)}.String())
	f.Add(Link{"[::1]:1", "AbCdEfGhIjKlMnOpQrSt", strings.Repeat("0", 64)}.String())
	f.Add("eidetic-head://h:1/%41AbCdEfGhIjKlMnOp?pin=")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		if l, err := ParseLink(text); err == nil {
			if l.String() != strings.TrimSpace(text) || !IsDigest(l.Pin) || CheckHost(l.Host) != nil {
				t.Errorf("ParseLink(%q) = %+v", text, l)
			}
		}
	})
}

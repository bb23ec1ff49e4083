package redact

import (
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestText(t *testing.T) {
	r := New("k2m7vq3xw5p4tz6a", "abc")
	for in, want := range map[string]string{
		"the token k2m7vq3xw5p4tz6a is right":                               "the token [removed] is right",
		"GET https://user:pw@x.test/a?key=1#frag done":                      "GET https://[removed]x.test/a?[removed] done",
		"Authorization: Bearer abcdefgh":                                    "Authorization: Bearer [removed]",
		`"Cookie":"sid=1; b=2"`:                                             `"Cookie":"[removed]"`,
		"eid_mfrggzdfmztwq2lknnwg23tpob":                                    "eid_[removed]",
		"password=hunter22 next":                                            "password=[removed] next",
		"WIFI:T:WPA;S:lab;P:four-words;;":                                   "WIFI:T:WPA;S:lab;P:[removed];;",
		"-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----": "-----BEGIN EC PRIVATE KEY-----[removed]",
		"abc run 20261121-091400-demo took 3.5 s":                           "abc run 20261121-091400-demo took 3.5 s",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := New().JSON(map[string]any{
		"plan": map[string]any{"users": []any{map[string]any{"cookies": []any{"sid=1"}, "name": "ann"}}, "page": "https://x.test/?k=v"},
	})
	for _, gone := range []string{"sid=1", "k=v"} {
		if strings.Contains(string(got), gone) {
			t.Errorf("%q is still in %s", gone, got)
		}
	}
	if err != nil || !strings.Contains(string(got), `"name": "ann"`) {
		t.Errorf("JSON() = %s, %v; want the user's name", got, err)
	}
}

func TestYAML(t *testing.T) {
	if clean, removed, err := YAML([]byte("\ufefftoken: secret\nlog: info\n")); err != nil || len(removed) != 1 || strings.Contains(string(clean), "secret") {
		t.Errorf("YAML() of a text with a byte order mark = %q, %q, %v; want it without its token", clean, removed, err)
	}
	clean, removed, err := YAML([]byte("log: info # hush\ndevices:\n- port: enp2s0\n  password: hunter22\n"))
	if err != nil || strings.Contains(string(clean), "hu") || !strings.Contains(string(clean), "enp2s0") ||
		len(removed) != 1 || removed[0] != "devices[0].password" {
		t.Errorf("YAML() = %q, %q, %v; want the port, no password, no comment, and which field was removed", clean, removed, err)
	}
	if _, _, err := YAML([]byte("password: [hunter22")); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("YAML() of damaged text = %v; want an error without the text", err)
	}
}

func FuzzText(f *testing.F) {
	f.Add("https://u:p@h/?q https://u@h -----BEGIN PRIVATE KEY-----", "secret-1")
	f.Fuzz(func(t *testing.T, text, secret string) {
		defer testlab.Input(t)()
		if len(secret) < shortest || strings.ContainsAny(secret, "[]") || strings.Contains(Removed, secret) {
			return // it may be made of the marks of what was removed
		}
		if got := New(secret).Text(text + secret + text); strings.Contains(got, secret) {
			t.Errorf("Text() = %q; it has the secret %q", got, secret)
		}
	})
}

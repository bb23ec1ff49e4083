package match

import (
	"net/url"
	"testing"
)

// FuzzSplitPlain: what is taken apart quickly is taken apart as by url.Parse.
func FuzzSplitPlain(f *testing.F) {
	for _, raw := range []string{
		"https://www.shop.example/a/b.css?x=1&y=2", "http://a.test/", "https://a.test/?", "https://A.test/", "https://a.test:443/x", "https://a.test",
		"https://a.test/%41?b=%zz", "https://a.test/ä", "https://a.test/a?b#c", "https://u@a.test/", "https://[::1]/", "//a/b", "https://a.test//b?/?",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		origin, path, query, ok := splitPlain(raw)
		if !ok {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || originOf(u) != origin || u.EscapedPath() != path || u.RawQuery != query || u.Fragment != "" {
			t.Errorf("splitPlain(%q) = %q, %q, %q; url.Parse: %+v, %v", raw, origin, path, query, u, err)
		}
	})
}

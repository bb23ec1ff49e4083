package replay

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestDialogueIsLogged: the log says of which answers a browser makes a dialogue.
func TestDialogueIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		status            int
		challenge, header string
		want              bool
	}{
		"Basic":                   {401, "WWW-Authenticate: Basic realm=\"x, y\"", "", true},
		"the second of two":       {401, "WWW-Authenticate: Bearer, Digest nonce=\"1\"", "", true},
		"a scheme of scripts":     {401, "WWW-Authenticate: Bearer realm=\"api\"", "", false},
		"no challenge":            {401, "X-A: b", "", false},
		"not asked for":           {403, "WWW-Authenticate: Basic", "", false},
		"a part of another site":  {401, "WWW-Authenticate: Basic", "cross-site", false},
		"a part of the same site": {401, "WWW-Authenticate: Basic", "same-origin", true},
	} {
		e := &lab.Exchange{ID: "urn:1", Method: "GET", URL: "https://p.test/x", Status: c.status, Response: lab.Message{Header: fields(c.challenge)}}
		var line lab.Served
		s, err := NewSession(archive.New([]*lab.Exchange{e}, nil, nil, archive.CreateOptions{}), Options{
			Clock: func() lab.Time { return 0 }, Log: func(l lab.Served) { line = l },
		})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequest("GET", e.URL, nil)
		if c.header != "" {
			r.Header.Set("Sec-Fetch-Site", c.header)
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		if line.AsksPassword != c.want || line.Status != c.status {
			t.Errorf("%s: logged %+v, want asks_password %v", name, line, c.want)
		}
	}
}

package head

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/rigs/testlab"
)

// FuzzRead reads what boxes say: each kind of body is refused or has what its check promises, and takes no more than it
// may.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"devices":[{"name":"virtual","kind":"virtual","ready":true}],"version":"1"}`, `{"state":"done","files":[{"path":"run.json","bytes":1,"sha256":"x"}]}`,
		`{"trial":1,"of":2}`, `[]`, `{"files":[{},{},{}]}`, strings.Repeat("[", 100), `{"labels":{"a":"b"}}`, "{}x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 16<<10 {
			return
		}
		get := func(into any) bool {
			r := httptest.NewRequest(http.MethodPost, "/fleet/v1/x", strings.NewReader(body))
			return read(httptest.NewRecorder(), r, maxSmall, into) == nil
		}
		testlab.Bounded(t, 32<<20, func() {
			var offer fleet.Offer
			if get(&offer) {
				_ = offer.Check() // it must not panic
			}
			var end fleet.Outcome
			if get(&end) && fleet.CheckFiles(end.Files) == nil {
				for _, file := range end.Files {
					if strings.Contains(file.Path, "..") && strings.HasPrefix(file.Path, "..") || strings.HasPrefix(file.Path, "/") || file.Bytes < 0 {
						t.Errorf("the file %+v is taken", file)
					}
				}
			}
			_ = get(&fleet.Progress{})
		})
	})
}

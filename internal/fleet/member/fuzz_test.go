package member

import (
	"strings"
	"testing"

	"eidetic/internal/base/bounded"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/testlab"
)

// FuzzAssignment reads what heads say: a part whose words become names of files only if they can, and nothing that
// takes more than it may.
func FuzzAssignment(f *testing.F) {
	for _, s := range []string{
		`{"part":"20260101-000000-a.01","token":"x","plan":{"page":"https://a.test/"}}`, `{"part":"../x","token":"x"}`, `{"news":true}`,
		`{"part":"a","token":"b","archives":[{"name":"a","sha256":"b","bytes":-1}]}`, `{"lease_ns":9e99}`, strings.Repeat("{\"plan\":", 60),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		testlab.Bounded(t, 32<<20, func() {
			var a fleet.Assignment
			if bounded.JSON([]byte(text), &a) == nil && checkAssignment(a) == nil && (!store.ValidID(a.Part) || strings.ContainsAny(a.Token, " \r\n")) {
				t.Errorf("the assignment %+v is taken", a)
			}
			var r fleet.Renewal
			_ = bounded.JSON([]byte(text), &r)
		})
	})
}

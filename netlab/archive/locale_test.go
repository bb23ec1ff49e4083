package archive

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// A HAR tells the zone by its times and the languages by what the browser asked for; both survive an
// archive and an export.
func TestLocaleOfImport(t *testing.T) {
	for _, c := range []struct {
		time, languages string
		want            lab.Locale
	}{
		{"2026-01-02T03:04:05.678+02:00", "de-DE,de;q=0.9,en;q=0.8", lab.Locale{Zone: "+02:00", Languages: []string{"de-DE", "de", "en"}}},
		{"2026-01-02T03:04:05.678-0330", "fr", lab.Locale{Zone: "-03:30", Languages: []string{"fr"}}},
		{"2026-01-02T03:04:05.678Z", "*, ;q=1, a b, x", lab.Locale{}},
		{"2026-01-02T03:04:05.678+99:00", "", lab.Locale{}},
	} {
		har := fmt.Sprintf(harHead+`{"startedDateTime":%q,"request":{"method":"GET","url":"https://a.example/","headers":[{"name":"Accept-Language","value":%q}]},`+
			`"response":{"status":200,"content":{"text":"x","mimeType":"text/html"}}}]}}`, c.time, c.languages)
		a, err := OpenReader(bytes.NewReader([]byte(har)), int64(len(har)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if a, err = a.Import(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "a.wacz")
		if err := Save(path, a); err != nil {
			t.Fatal(err)
		}
		kept, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var export bytes.Buffer
		if err := WriteHAR(&export, kept); err != nil {
			t.Fatal(err)
		}
		again, err := OpenReader(bytes.NewReader(export.Bytes()), int64(export.Len()), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range map[string]*Archive{"import": a, "archive": kept, "export": again} {
			if d := cmp.Diff(c.want, a.Locale()); d != "" {
				t.Errorf("%s, %s: Locale() of the %s (-want +got):\n%s", c.time, c.languages, name, d)
			}
		}
	}
}

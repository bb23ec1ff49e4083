package match

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"eidetic/internal/lab"
)

// TestPackedJSON: values of chance inside JSON in Base64 make no difference, and others do.
func TestPackedJSON(t *testing.T) {
	const visit, later = `{"at":1770000000123,"page":"cart"}`, `{"page":"cart","at":1770000999456}`
	const other = `{"at":1770000000123,"page":"home"}`
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	in := func(e *base64.Encoding) func(string) string {
		return func(s string) string { return e.EncodeToString([]byte(s)) }
	}
	standard, bare := base64.StdEncoding, base64.RawStdEncoding
	for name, pack := range map[string]func(string) string{
		"as it is":       func(s string) string { return s },
		"in Base64":      in(standard),
		"without =":      in(bare),
		"for an address": in(base64.RawURLEncoding),
		"in itself": func(s string) string {
			return standard.EncodeToString([]byte(`[{"ctx":"` + standard.EncodeToString([]byte(s)) + `"}]`))
		},
	} {
		for _, where := range []string{"query", "form", "json"} {
			ask := func(text string) *Request {
				packed := pack(text)
				switch where {
				case "query":
					return NewRequest("GET", "https://a.test/e?d="+url.QueryEscape(packed), http.Header{}, nil)
				case "form":
					return NewRequest("POST", "https://a.test/e", form, []byte("d="+url.QueryEscape(packed)))
				}
				quoted := `"` + packed + `"`
				if packed == text {
					quoted = text
				}
				return NewRequest("POST", "https://a.test/e", http.Header{"Content-Type": {"application/json"}}, []byte(`{"d":`+quoted+`}`))
			}
			recorded := ask(visit).normalKey(&Ignored{})
			if got := ask(later).normalKey(&Ignored{}); got != recorded {
				t.Errorf("%s, %s: another time makes it another request:\n%s\n%s", where, name, got, recorded)
			}
			if got := ask(other).normalKey(&Ignored{}); got == recorded {
				t.Errorf("%s, %s: another page is the same request: %s", where, name, got)
			}
		}
	}
	x := NewIndex(&Ignored{rule: func(_, name string) bool { return name == "d.page" }})
	x.Add(NewEntry(&lab.Exchange{ID: "e", Method: "GET", URL: "https://a.test/e?d=" + bare.EncodeToString([]byte(visit)), Status: 200}, ""))
	asked := newTestRequest(t, "https://a.test/e?d="+bare.EncodeToString([]byte(other)))
	if got := x.Find(Normal, NewClient(), asked, http.Header{}); got.Entry == nil {
		t.Errorf("a rule for what is in the JSON: %+v, want the recorded one", got)
	}
}

// TestWordsAreNoJSON: what only begins like JSON in Base64 stays a value of its own.
func TestWordsAreNoJSON(t *testing.T) {
	for _, word := range []string{"eyes", "eyebrow", "W3C-list", "Wyoming", "ey", "e30", "eyJhbGciOi.J9.x", "W10=", "eyJhIjoxfSA7"} {
		if got := nestedFields([]pair{{"d", word}}); len(got) != 1 || got[0] != (pair{"d", word}) && got[0].value != "{}" && got[0].value != "[]" {
			t.Errorf("nestedFields(%q) = %v, want the word", word, got)
		}
	}
}

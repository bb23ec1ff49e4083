package match

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestSimilarity: it is symmetric, between 0 and 1, and 1 for equal requests.
func TestSimilarity(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) *Request {
		url := "https://a.example/" + rapid.StringMatching(`[a-z]{0,3}(/[a-z]{1,3}){0,2}(\?[a-c]=[a-z]{0,3}(&[a-c]=[0-9]{0,3}){0,3})?`).
			Draw(t, "url")
		s := NewRequest(
			"POST",
			url,
			http.Header{"Content-Type": {"application/json"}},
			[]byte(rapid.SampledFrom([]string{"", `{"a":[1,{"b":null}]}`, `{"a":[2]}`, "x"}).Draw(t, "body")),
		)
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		ab, ba := similarity(a, b), similarity(b, a)
		if ab < 0 || ab > 1 || ab-ba > 1e-9 || ba-ab > 1e-9 {
			t.Fatalf("similarity(a, b) = %v, similarity(b, a) = %v; want one value from 0 to 1", ab, ba)
		}
		if got := similarity(a, a); got != 1 {
			t.Fatalf("similarity(a, a) = %v, want 1", got)
		}
		if a.exactKey() == b.exactKey() && a.normalKey(&Ignored{}) != b.normalKey(&Ignored{}) {
			t.Fatalf("requests with the exact key %q have the normal keys %q and %q, want one",
				a.exactKey(), a.normalKey(&Ignored{}), b.normalKey(&Ignored{}))
		}
	})
}

// A body that asks mostly for something else is another question, however alike the address is.
func TestAnotherQuestion(t *testing.T) {
	post := func(body string) *Request {
		s := NewRequest("POST", "https://a.example/graphql", http.Header{"Content-Type": {"application/json"}}, []byte(body))
		return s
	}
	recorded := post(`{"query":"cart","user":"anna","page":"first","size":"twenty"}`)
	for body, alike := range map[string]bool{
		`{"query":"cart","user":"anna","page":"first","size":"thirty"}`:     true,
		`{"query":"zzzz","user":"0000","page":"99999","size":"twenty"}`:     false,
		`{"mutation":"pay","amount":"12","size":"twenty","token":"q8w7e6"}`: false,
	} {
		if got := similarity(recorded, post(body)); (got > 0) != alike {
			t.Errorf("similarity of %s = %v; want more than 0: %v", body, got, alike)
		}
	}
}

// TestBytesAlike: a body without fields is as similar as its bytes are, and loose accepts one that is half alike.
func TestBytesAlike(t *testing.T) {
	const message = "\x0a\x05anna1\x10\x97\x9a\x01\x1a\x04cart"
	h := http.Header{"Content-Type": {"application/grpc-web+proto"}}
	post := func(body string) *Request {
		return NewRequest("POST", "https://a.example/shop.Carts/Get", h, []byte(body))
	}
	for _, c := range []struct {
		name, recorded, asked string
		isAlike               bool
	}{
		{"another number", message, "\x0a\x05anna1\x10\x98\xab\x02\x1a\x04cart", true},
		{"a longer number", message, "\x0a\x05anna1\x10\x97\x9a\x81\x01\x1a\x04cart", true},
		{"another message", message, "\x12\x01\x07", false},
		{"another of the same length", message, "\x12\x05berta\x20\x01\x02\x03\x2a\x05pay??", false},
		{"a long one of which little is kept", strings.Repeat("x", 3*mostCompared), strings.Repeat("x", 3*mostCompared-1) + "y", false},
	} {
		x := NewIndex(&Ignored{})
		x.Add(NewEntry(&lab.Exchange{
			Method: "POST", URL: "https://a.example/shop.Carts/Get", Status: 200,
			Request:  lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: h.Get("Content-Type")}}, Body: []byte(c.recorded)},
			Response: lab.Message{Body: []byte("two shoes, one hat")},
		}, "answer"))
		if m := x.Find(Normal, NewClient(), post(c.asked), h); m.Entry != nil {
			t.Errorf("%s under normal: stage %s; want a miss", c.name, m.Stage)
		}
		if m := x.Find(Loose, NewClient(), post(c.asked), h); (m.Entry != nil) != c.isAlike {
			t.Errorf("%s under loose: stage %s, score %.2f; want an answer: %v", c.name, m.Stage, m.Score, c.isAlike)
		}
	}
}

func FuzzNewRequest(f *testing.F) {
	f.Add("https://a.example/x?a=1&b", "application/json", []byte(`{"a":1}`))
	f.Add("https://a.example/%zz?%zz", "multipart/form-data; boundary=x", []byte("--x\r\n\r\n--x--"))
	f.Fuzz(func(t *testing.T, url, kind string, body []byte) {
		defer testlab.Input(t)()
		s := NewRequest("POST", url, http.Header{"Content-Type": {kind}}, body)
		if len(s.path) > 0 && similarity(s, s) != 1 {
			t.Errorf("similarity(s, s) = %v, want 1", similarity(s, s))
		}
		differences(s, s)
	})
}

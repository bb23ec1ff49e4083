package match

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestCallsOfOneAddress: the policy loose takes no answer to one call for that to another, however alike both are, and
// that to the same call with other values.
func TestCallsOfOneAddress(t *testing.T) {
	const long = `query Products($id:ID!){shop(id:$id){name products{title price image{url width height}}}}`
	other := strings.Replace(long, "Products", "Product", 1)
	const form = "multipart/form-data; boundary=b"
	part := func(text string) string {
		return "--b\r\nContent-Disposition: form-data; name=operations\r\n\r\n" + text + "\r\n--b--\r\n"
	}
	persisted := func(hash string) string {
		return `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat(hash, 32) + `"}},"variables":{"id":1,"first":20}}`
	}
	for name, c := range map[string]struct {
		media, field           string // Content-Type, and "Name: value" of the recorded request
		recorded, same, differ string // "?query" or a body; differ calls something else
		otherField             string // of differ, if it is another
	}{
		"GraphQL": {"", "", `{"operationName":"Products","query":"` + long + `","variables":{"id":1}}`,
			`{"operationName":"Products","query":"` + long + `","variables":{"id":2}}`, `{"operationName":"Product","query":"` + other + `","variables":{"id":1}}`, ""},
		"without operationName": {"", "", `{"query":"` + long + `","variables":{"id":1}}`, `{"query":"` + long + `","variables":{"id":2}}`,
			`{"operationName":null,"query":"` + other + `","variables":{"id":1}}`, ""},
		"a persisted query": {"", "", persisted("ab"), strings.Replace(persisted("ab"), ":20", ":30", 1), persisted("ac"), ""},
		"in the address":    {"", "", `?operationName=List&variables={"id":1}`, `?operationName=List&variables={"id":2}`, `?operationName=Last&variables={"id":1}`, ""},
		"with files": {form, "", part(`{"operationName":"Upload","query":"` + long + `","variables":{"n":1}}`),
			part(`{"operationName":"Upload","query":"` + long + `","variables":{"n":2}}`), part(`{"operationName":"Unload","query":"` + long + `","variables":{"n":1}}`), ""},
		"a batch": {"", "", `[{"operationName":"A","v":1},{"operationName":"B","v":2}]`, `[{"operationName":"A","v":1},{"operationName":"B","v":3}]`,
			`[{"operationName":"A","v":1},{"operationName":"C","v":2}]`, ""},
		"JSON-RPC": {"", "", `{"jsonrpc":"2.0","id":1,"method":"balance","params":[7,"x","y"]}`, `{"jsonrpc":"2.0","id":2,"method":"balance","params":[8,"x","y"]}`,
			`{"jsonrpc":"2.0","id":1,"method":"block","params":[7,"x","y"]}`, ""},
		"AWS": {"application/x-amz-json-1.1", "X-Amz-Target: Service.GetUser", `{"id":"one","of":"pool"}`, `{"id":"two","of":"pool"}`, `{"id":"three","of":"pool"}`,
			"X-Amz-Target: Service.ListUsers"},
	} {
		ask := func(what, field string) (*Request, *lab.Exchange) {
			e := &lab.Exchange{ID: "recorded", Method: "POST", URL: "https://a.test/api", Status: 200}
			e.Request.Header = []lab.HeaderField{{Name: "Content-Type", Value: c.media}}
			if name, value, ok := strings.Cut(field, ": "); ok {
				e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: name, Value: value})
			}
			if strings.HasPrefix(what, "?") {
				e.Method, e.URL = "GET", e.URL+what
			} else {
				e.Request.Body = []byte(what)
			}
			return NewRequest(e.Method, e.URL, &e.Request, e.Request.Body), e
		}
		x := NewIndex(&Ignored{})
		_, e := ask(c.recorded, c.field)
		e.Response.Body = []byte(`{"data":{"price":12}}`)
		x.Add(NewEntry(e, "sum"))
		if same, _ := ask(c.same, c.field); x.Find(Loose, NewClient(), same, http.Header{}).Entry == nil {
			t.Errorf("%s: the same call with other values is a miss, want the recorded one", name)
		}
		differ, _ := ask(c.differ, cmp.Or(c.otherField, c.field))
		if got := x.Find(Loose, NewClient(), differ, http.Header{}); got.Entry != nil {
			t.Errorf("%s: another call gets the answer of score %.2f (%s), want a miss", name, got.Score, got.Differs)
		}
	}
}

// TestBodiesThatWereLeftOut: requests of which the recording lacks the bodies are answered in its order, by the policy
// loose alone; and one that had no body answers none that has one.
func TestBodiesThatWereLeftOut(t *testing.T) {
	x := NewIndex(&Ignored{})
	add := func(id, url string, fields ...lab.HeaderField) {
		e := &lab.Exchange{ID: id, Method: "POST", URL: url, Status: 200}
		e.Request.Header, e.Response.Body = fields, []byte("answer "+id)
		x.Add(NewEntry(e, id))
	}
	add("one", "https://a.test/api?_=1")
	add("two", "https://a.test/api?_=1")
	add("empty", "https://a.test/empty", lab.HeaderField{Name: "content-length", Value: "0"})
	ask := func(p Policy, c *Client, url string) Result {
		return x.Find(p, c, NewRequest("POST", url, http.Header{"Content-Type": {"application/json"}}, []byte(`{"a":1}`)), http.Header{})
	}
	c := NewClient()
	for _, want := range []string{"one", "two", "two"} {
		got := ask(Loose, c, "https://a.test/api?_=2")
		if got.Entry == nil || got.Entry.ID != want || got.Stage != lab.StageFuzzy || got.Score > Threshold || len(got.Differs) == 0 || got.Why == "" {
			t.Errorf("Find() = %+v; want %q by the stage fuzzy, with what differs and why", got, want)
		}
	}
	for _, m := range []Result{ask(Normal, NewClient(), "https://a.test/api?_=2"), ask(Loose, NewClient(), "https://a.test/empty"), ask(Loose, NewClient(), "https://a.test/other")} {
		if m.Entry != nil {
			t.Errorf("Find() = %+v; want a miss", m)
		}
	}
}

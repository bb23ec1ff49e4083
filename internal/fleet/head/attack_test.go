package head

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/lab"
	"eidetic/internal/pin"
	"eidetic/internal/store"
)

// intruder calls a head with a key of its own, or with none, and says what it likes.
type intruder struct {
	t      *testing.T
	base   string
	client *http.Client
}

func newIntruder(t *testing.T, h *testHead, withKey bool) *intruder {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // it does not care who the head is
	if withKey {
		cert, err := pin.LoadOrCreateBox(t.TempDir(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{*cert}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &intruder{t, "https://" + h.at + "/fleet/v1", &http.Client{Transport: transport}}
}

func (i *intruder) call(method, path, token string, body any) (status int, answer string) {
	i.t.Helper()
	text, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			i.t.Fatal(err)
		}
		text = string(encoded)
	}
	r, err := http.NewRequestWithContext(i.t.Context(), method, i.base+path, strings.NewReader(text))
	if err != nil {
		i.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set(fleet.LeaseHeader, token)
	}
	res, err := i.client.Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return res.StatusCode, string(content)
}

func (i *intruder) claim(request string) (a fleet.Assignment) {
	i.t.Helper()
	status, text := i.call(http.MethodPost, "/claims", "", map[string]any{"request": request, "free": []string{"virtual"}})
	if status != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
		i.t.Fatalf("the claim = %d %s; want a part", status, text)
	}
	return a
}

// TestFleetAttacks: who is no box, or another one, gets nothing of a part; a lease that was lost and a link that was used are
// worth nothing; and what is asked for is bounded.
func TestFleetAttacks(t *testing.T) {
	h := newTestHead(t)
	offer := fleet.Offer{Software: "test", Cores: 2, Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
	codes := map[string]string{}
	join := func(i *intruder, name string) (status int, text string) {
		return i.call(http.MethodPost, "/join", "", map[string]any{"code": codes[name], "name": name, "offer": offer})
	}
	owner, other, stranger, nobody := newIntruder(t, h, true), newIntruder(t, h, true), newIntruder(t, h, true), newIntruder(t, h, false)
	for name, i := range map[string]*intruder{"owner": owner, "other": other} {
		made, err := h.Boxes().NewCode(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		link, err := fleet.ParseLink(made.Link)
		if err != nil {
			t.Fatal(err)
		}
		codes[name] = link.Code
		if status, text := join(i, name); status != http.StatusOK {
			t.Fatalf("join = %d %s; want 200", status, text)
		}
	}
	codes["stranger"] = codes["owner"]
	id, err := h.Add(t.Context(), lab.Plan{Name: "secret", Trials: 1, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, store.Once{})
	if err != nil {
		t.Fatal(err)
	}
	a := owner.claim("1")
	archive, part := a.Archives[0].SHA256, "/parts/"+a.Part
	if status, text := owner.call(http.MethodGet, part+"/archives/"+archive, a.Token, nil); status != http.StatusOK || text != "a recording" {
		t.Fatalf("the recording = %d %s; want it", status, text)
	}
	done := map[string]any{"state": store.StateDone, "files": []fleet.File{}}
	named := func(path string) map[string]any {
		return map[string]any{"state": store.StateDone, "files": []fleet.File{{Path: path, Bytes: 11, SHA256: archive}}}
	}
	guess := strings.Repeat("A", len(a.Token))
	for _, c := range []struct {
		what, method, path, token string
		who                       *intruder
		body                      any
		want                      int
	}{
		{"a link that was used", http.MethodPost, "/join", "", stranger, map[string]any{"code": codes["owner"], "name": "stranger", "offer": offer}, http.StatusForbidden},
		{"a link without a key", http.MethodPost, "/join", "", nobody, map[string]any{"code": codes["owner"], "name": "stranger", "offer": offer}, http.StatusForbidden},
		{"a claim of a stranger", http.MethodPost, "/claims", "", stranger, map[string]any{"request": "1", "free": []string{"virtual"}}, http.StatusForbidden},
		{"a claim without a key", http.MethodPost, "/claims", "", nobody, map[string]any{"request": "1", "free": []string{"virtual"}}, http.StatusForbidden},
		{"the recording, by another box with the token", http.MethodGet, part + "/archives/" + archive, a.Token, other, nil, http.StatusConflict},
		{"the recording, without a token", http.MethodGet, part + "/archives/" + archive, "", other, nil, http.StatusConflict},
		{"a file that is no recording of the part", http.MethodGet, part + "/archives/" + strings.Repeat("0", 64), a.Token, owner, nil, http.StatusNotFound},
		{"a renewal by another box with the token", http.MethodPut, part + "/lease", a.Token, other, fleet.Progress{}, http.StatusConflict},
		{"a renewal with a guess", http.MethodPut, part + "/lease", guess, owner, fleet.Progress{}, http.StatusConflict},
		{"the end by another box with the token", http.MethodPost, part + "/end", a.Token, other, done, http.StatusConflict},
		{"the end with a guess", http.MethodPost, part + "/end", guess, owner, done, http.StatusConflict},
		{"giving back another's part", http.MethodPost, part + "/return", a.Token, other, map[string]string{"reason": "x"}, http.StatusConflict},
		{"files of another's part", http.MethodPut, part + "/files", a.Token, other, map[string]any{"files": []fleet.File{}}, http.StatusConflict},
		{"a file outside the run", http.MethodPost, part + "/end", a.Token, owner, named("../../token"), http.StatusUnprocessableEntity},
		{"an absolute file", http.MethodPut, part + "/files", a.Token, owner, named("/etc/passwd"), http.StatusUnprocessableEntity},
		{"a state that there is not", http.MethodPost, part + "/end", a.Token, owner, map[string]any{"state": "won"}, http.StatusUnprocessableEntity},
		{"content that nobody has sent", http.MethodPost, part + "/end", a.Token, owner,
			map[string]any{"state": store.StateDone, "files": []fleet.File{{Path: "run.json", Bytes: 1, SHA256: strings.Repeat("1", 64)}}}, http.StatusUnprocessableEntity},
		{"an upload that nobody wants", http.MethodPatch, "/blobs/" + strings.Repeat("2", 64), "", owner, "x", http.StatusForbidden},
		{"an upload for another's part", http.MethodPatch, "/blobs/" + strings.Repeat("2", 64) + "?part=" + a.Part, a.Token, other, "x", http.StatusConflict},
		{"an update that the box is not told of", http.MethodGet, "/updates/" + archive, "", owner, nil, http.StatusNotFound},
		{"a body that is too long", http.MethodPut, part + "/lease", a.Token, owner, `{"doing":"` + strings.Repeat("x", maxSmall) + `"}`, http.StatusRequestEntityTooLarge},
		{"a body that is no JSON", http.MethodPut, part + "/lease", a.Token, owner, "[[[", http.StatusUnprocessableEntity},
	} {
		if status, text := c.who.call(c.method, c.path, c.token, c.body); status != c.want {
			t.Errorf("%s: %d %.200s; want %d", c.what, status, text, c.want)
		}
	}

	// The owner is silent for longer than its lease, and the other box gets the part.
	for range 12 { // in steps, as the head lives all the time: else all leases would last anew
		h.clock.forward(20 * time.Second)
		if err := h.ledger.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b := other.claim("2")
	if b.Part != a.Part || b.Token == a.Token {
		t.Fatalf("the other box got %s with the token %q; want %s with a new token", b.Part, b.Token, a.Part)
	}
	for _, path := range []string{"/lease", "/files", "/end", "/return"} {
		method := http.MethodPut
		if path == "/end" || path == "/return" {
			method = http.MethodPost
		}
		if status, text := owner.call(method, part+path, a.Token, done); status != http.StatusConflict || !strings.Contains(text, fleet.LostProblem) {
			t.Errorf("%s with a lease that was lost: %d %.200s; want 409, %s", path, status, text, fleet.LostProblem)
		}
	}
	if status, _ := owner.call(http.MethodGet, part+"/archives/"+archive, a.Token, nil); status != http.StatusConflict {
		t.Errorf("the recording with a lease that was lost: %d; want 409", status)
	}
	if r, err := h.ledger.Run(t.Context(), id); err != nil || isEnd(r.State) {
		t.Errorf("the run is %s, %v; want that it goes on", r.State, err)
	}
	if status, text := other.call(http.MethodPost, part+"/end", b.Token, map[string]any{"state": store.StateFailed, "error": "no screen"}); status != http.StatusNoContent {
		t.Errorf("the end by who has the lease: %d %s; want 204", status, text)
	}
}

package fleettest

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/store"
)

// Suite is what boxes rely on, of any head: in go ways to prepare one that is empty, out come failed tests. [Head]
// passes it, and so does the real one.
type Suite struct {
	// Link returns a link with which a box can join, once.
	Link func(t *testing.T) string
	// Add adds a part for a device "virtual". It replays one recording, whose content is Recording.
	Add func(t *testing.T) (part string)
	// Lapse lets all leases run out while the head lives.
	Lapse func(t *testing.T)
	// Cancel stops the run of a part.
	Cancel func(t *testing.T, part string)
	// Left makes the folder of the run that a box leaves of a part.
	Left func(t *testing.T, a fleet.Assignment) (dir string)
	// Want has somebody want a file of a part that has ended, which stayed on its box. It may be called again.
	Want func(t *testing.T, part, path, sha256 string)
	// Has says whether the head has content.
	Has func(t *testing.T, sha256 string) bool
}

// Recording is the content of the recording that parts replay.
const Recording = "a recording"

// caller calls a head with a key of its own, or with none, and says what it likes.
type caller struct {
	t      *testing.T
	link   fleet.Link
	client *http.Client
}

func (s Suite) caller(t *testing.T, withKey bool) *caller {
	t.Helper()
	link, err := fleet.ParseLink(s.Link(t))
	if err != nil {
		t.Fatal(err)
	}
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
	return &caller{t, link, &http.Client{Transport: transport}}
}

func (c *caller) address(path string) string { return "https://" + c.link.Host + "/fleet/v1" + path }

// call makes one call; a text is sent as it is, and anything else as JSON.
func (c *caller) call(method, path, token string, body any) (status int, answer string) {
	c.t.Helper()
	status, answer, err := c.try(method, path, token, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return status, answer
}

func (c *caller) try(method, path, token string, body any) (status int, answer string, err error) {
	text, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, "", err
		}
		text = string(encoded)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.address(path), strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set(fleet.LeaseHeader, token)
	}
	res, err := c.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return res.StatusCode, string(content), err
}

// must makes a call that succeeds with a status, and decodes its answer into out, if it is not nil.
func (c *caller) must(want int, method, path, token string, body, out any) {
	c.t.Helper()
	status, text := c.call(method, path, token, body)
	if status != want {
		c.t.Fatalf("%s %s = %d %.300s; want %d", method, path, status, text, want)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		c.t.Fatalf("%s %s = %.300s: %v", method, path, text, err)
	}
}

// refused makes a call that is answered with a problem.
func (c *caller) refused(what string, want int, method, path, token string, body any) {
	c.t.Helper()
	status, text := c.call(method, path, token, body)
	var p struct {
		Type   string
		Status int
	}
	if status != want || json.Unmarshal([]byte(text), &p) != nil || p.Status != want ||
		(p.Type == fleet.LostProblem) != (want == http.StatusConflict) {
		c.t.Errorf("%s: %d %.300s; want %d, as a problem, whose type says whether the lease is lost", what, status, text, want)
	}
}

func device() fleet.Offer {
	return fleet.Offer{Software: "test", Cores: 2, Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
}

func (c *caller) join(name string) map[string]any {
	return map[string]any{"code": c.link.Code, "name": name, "offer": device()}
}

// joined is a box of the fleet.
func (s Suite) joined(t *testing.T, name string) *caller {
	t.Helper()
	c := s.caller(t, true)
	c.must(http.StatusOK, http.MethodPost, "/join", "", c.join(name), nil)
	return c
}

func wish(request string, wait int) map[string]any {
	return map[string]any{"request": request, "free": []string{"virtual"}, "wait_s": wait}
}

// claim claims a part, which there is.
func (c *caller) claim(request string) (a fleet.Assignment) {
	c.t.Helper()
	c.must(http.StatusOK, http.MethodPost, "/claims", "", wish(request, 0), &a)
	return a
}

// waiting claims until there is an answer.
func (c *caller) waiting(request string) (answer <-chan string) {
	got := make(chan string, 1)
	go func() {
		for { // a slow machine may need more than one
			status, text, err := c.try(http.MethodPost, "/claims", "", wish(request, 30))
			if err != nil {
				text = err.Error()
			}
			if err != nil || status != http.StatusNoContent {
				got <- text
				return
			}
		}
	}()
	return got
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// send uploads content, for a part with the token of its lease or, without them, because somebody wants it.
func (c *caller) send(part, token string, content []byte) error {
	header, to := http.Header{}, c.address("/blobs/"+digestOf(content))
	if part != "" {
		header.Set(fleet.LeaseHeader, token)
		to += "?part=" + part
	}
	return blob.Send(c.t.Context(), c.client, to, header, bytes.NewReader(content), int64(len(content)), blob.Policy{})
}

// lost says that a lease is worth nothing any more.
func (c *caller) lost(what string, a fleet.Assignment) {
	c.t.Helper()
	part := "/parts/" + a.Part
	end := map[string]any{"state": store.StateDone, "files": []fleet.File{}}
	c.refused("a renewal "+what, http.StatusConflict, http.MethodPut, part+"/lease", a.Token, fleet.Progress{})
	c.refused("files "+what, http.StatusConflict, http.MethodPut, part+"/files", a.Token, end)
	c.refused("giving back "+what, http.StatusConflict, http.MethodPost, part+"/return", a.Token, map[string]string{"reason": "x"})
	c.refused("the recording "+what, http.StatusConflict, http.MethodGet, part+"/archives/"+a.Archives[0].SHA256, a.Token, nil)
	var refused *blob.StatusError
	err := c.send(a.Part, a.Token, []byte("x "+what))
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.Type != fleet.LostProblem {
		c.t.Errorf("an upload %s = %v; want 409, %s", what, err, fleet.LostProblem)
	}
}

// Try tries a head. open makes one that is empty.
func Try(t *testing.T, open func(t *testing.T) Suite) {
	for name, try := range map[string]func(*testing.T, Suite){
		"join": tryJoin, "part": tryPart, "return": tryReturn, "lapse": tryLapse, "cancel": tryCancel, "wait": tryWait, "wanted": tryWanted, "attacks": tryAttacks,
	} {
		t.Run(name, func(t *testing.T) { try(t, open(t)) })
	}
}

// A code admits one box, which may ask again.
func tryJoin(t *testing.T, s Suite) {
	one, other, nobody := s.caller(t, true), s.caller(t, true), s.caller(t, false)
	one.refused("a description before", http.StatusForbidden, http.MethodPut, "/offer", "", device())
	one.refused("a name that is none", http.StatusUnprocessableEntity, http.MethodPost, "/join", "", one.join("Lab 1"))
	nobody.refused("without a key", http.StatusForbidden, http.MethodPost, "/join", "", nobody.join("lab-1"))
	var first, again struct{ ID, Name string }
	one.must(http.StatusOK, http.MethodPost, "/join", "", one.join("lab-1"), &first)
	one.must(http.StatusOK, http.MethodPost, "/join", "", one.join("lab-1"), &again)
	if first.ID == "" || first.Name != "lab-1" || again != first {
		t.Errorf("joined as %+v and again as %+v; want the same box lab-1", first, again)
	}
	used := map[string]any{"code": one.link.Code, "name": "lab-2", "offer": device()}
	one.refused("a code that was used, for another name", http.StatusForbidden, http.MethodPost, "/join", "", used)
	other.refused("a code that was used", http.StatusForbidden, http.MethodPost, "/join", "", used)
	if status, text := other.call(http.MethodPost, "/join", "", other.join("lab-1")); status != http.StatusConflict {
		t.Errorf("a name that is taken: %d %s; want 409", status, text)
	}
	other.must(http.StatusOK, http.MethodPost, "/join", "", other.join("lab-2"), &again)
	if again.ID == first.ID {
		t.Errorf("two boxes have the ID %s", again.ID)
	}
	var told struct {
		Wanted         []fleet.Wanted
		Health, Reason string
		Update         *fleet.Update
	}
	one.must(http.StatusOK, http.MethodPut, "/offer", "", device(), &told)
	if len(told.Wanted) > 0 || told.Health == "" || told.Update != nil {
		t.Errorf("a description is answered with %+v; want its health alone", told)
	}
	bad := device()
	bad.Devices[0].Name = "a/b"
	one.refused("a device with a slash", http.StatusUnprocessableEntity, http.MethodPut, "/offer", "", bad)
}

// A part is claimed, renewed, handed in and ended, and each call may be made again.
func tryPart(t *testing.T, s Suite) {
	one, two := s.joined(t, "lab-1"), s.joined(t, "lab-2")
	one.must(http.StatusNoContent, http.MethodPost, "/claims", "", wish("0", 0), nil)
	id := s.Add(t)
	a := one.claim("1")
	if a.Part != id || a.Run == "" || a.Attempt != 1 || a.Token == "" || a.LeaseFor <= 0 ||
		a.Device != "virtual" || len(a.Archives) != 1 || a.News {
		t.Fatalf("the claim is answered with %+v; want the first attempt of %s on the device", a, id)
	}
	if again := one.claim("1"); again.Part != id || again.Token != a.Token || again.Attempt != 1 {
		t.Errorf("the claim again is answered with %+v; want the same lease", again)
	}
	one.must(http.StatusNoContent, http.MethodPost, "/claims", "", wish("2", 0), nil)
	two.must(http.StatusNoContent, http.MethodPost, "/claims", "", wish("1", 0), nil)
	part := "/parts/" + id
	status, text := one.call(http.MethodGet, part+"/archives/"+a.Archives[0].SHA256, a.Token, nil)
	if status != http.StatusOK || text != Recording ||
		a.Archives[0].SHA256 != digestOf([]byte(Recording)) || a.Archives[0].Bytes != int64(len(Recording)) {
		t.Errorf("the recording %+v = %d %s; want %q", a.Archives[0], status, text, Recording)
	}
	var renewal fleet.Renewal
	one.must(http.StatusOK, http.MethodPut, part+"/lease", a.Token, fleet.Progress{Trial: 1, Of: 2, Doing: "load"}, &renewal)
	if renewal.LeaseFor != a.LeaseFor || renewal.Cancel {
		t.Errorf("renewed for %v, cancelled %v; want %v, and not", renewal.LeaseFor, renewal.Cancel, a.LeaseFor)
	}

	// What the head lacks it says, until it has come; the same content in two files is one.
	trial := []byte("a trial")
	files := []fleet.File{
		{Path: "trials/001/a", SHA256: digestOf(trial), Bytes: int64(len(trial))},
		{Path: "trials/001/b", SHA256: digestOf(trial), Bytes: int64(len(trial))},
		{Path: "trials/001/reel", SHA256: strings.Repeat("1", 64), Bytes: 1, Stays: true},
	}
	list := map[string]any{"files": files}
	var lacks struct{ Missing []string }
	one.must(http.StatusOK, http.MethodPut, part+"/files", a.Token, list, &lacks)
	if !slices.Equal(lacks.Missing, []string{digestOf(trial)}) {
		t.Errorf("missing = %q; want the content that does not stay, once", lacks.Missing)
	}
	done := map[string]any{"state": store.StateDone, "files": files, "trials": 1}
	status, text = one.call(http.MethodPost, part+"/end", a.Token, done)
	if status != http.StatusUnprocessableEntity ||
		json.Unmarshal([]byte(text), &lacks) != nil || !slices.Equal(lacks.Missing, []string{digestOf(trial)}) {
		t.Errorf("the end before the content = %d %s; want 422 with what is missing", status, text)
	}
	for range 2 {
		if err := one.send(id, a.Token, trial); err != nil {
			t.Fatalf("the upload = %v; want nil", err)
		}
	}
	one.must(http.StatusOK, http.MethodPut, part+"/files", a.Token, list, &lacks)
	if len(lacks.Missing) > 0 || !s.Has(t, digestOf(trial)) {
		t.Errorf("missing after the upload = %q; want nothing", lacks.Missing)
	}
	for range 2 {
		one.must(http.StatusNoContent, http.MethodPost, part+"/end", a.Token, done, nil)
	}
	one.lost("after the end", a)
	two.must(http.StatusNoContent, http.MethodPost, "/claims", "", wish("2", 0), nil)
}

// A part that is given back is claimed anew, with another token, by its old box if there is no other.
func tryReturn(t *testing.T, s Suite) {
	one := s.joined(t, "lab-1")
	s.Add(t)
	a := one.claim("1")
	one.must(http.StatusNoContent, http.MethodPost, "/parts/"+a.Part+"/return", a.Token, map[string]string{"reason": "no screen"}, nil)
	one.lost("after it was given back", a)
	if again := one.claim("2"); again.Part != a.Part || again.Attempt != 2 || again.Token == a.Token {
		t.Errorf("the next claim is answered with %+v; want the second attempt", again)
	}
}

// A lease that ran out is worth nothing once another box has the part.
func tryLapse(t *testing.T, s Suite) {
	one, two := s.joined(t, "lab-1"), s.joined(t, "lab-2")
	s.Add(t)
	a := one.claim("1")
	s.Lapse(t)
	b := two.claim("1")
	if b.Part != a.Part || b.Attempt != 2 || b.Token == a.Token {
		t.Fatalf("the other box gets %+v; want the second attempt of %s with a new token", b, a.Part)
	}
	one.lost("of a lease that ran out", a)
	one.refused("the end of a lease that ran out", http.StatusConflict, http.MethodPost, "/parts/"+a.Part+"/end", a.Token,
		map[string]any{"state": store.StateDone, "files": []fleet.File{}})
	two.must(http.StatusNoContent, http.MethodPost, "/parts/"+b.Part+"/end", b.Token, map[string]any{"state": store.StateFailed, "error": "no screen"}, nil)
	one.must(http.StatusNoContent, http.MethodPost, "/claims", "", wish("2", 0), nil)
}

// A box hears of a cancelled run when it renews, and ends the part.
func tryCancel(t *testing.T, s Suite) {
	one := s.joined(t, "lab-1")
	s.Add(t)
	a := one.claim("1")
	s.Cancel(t, a.Part)
	var renewal fleet.Renewal
	one.must(http.StatusOK, http.MethodPut, "/parts/"+a.Part+"/lease", a.Token, fleet.Progress{}, &renewal)
	if !renewal.Cancel {
		t.Error("a renewal does not say that the run was cancelled")
	}
	cut := map[string]any{"state": store.StateInterrupted, "files": []fleet.File{}}
	one.must(http.StatusNoContent, http.MethodPost, "/parts/"+a.Part+"/end", a.Token, cut, nil)
}

// A claim that waits is answered when there is a part.
func tryWait(t *testing.T, s Suite) {
	one := s.joined(t, "lab-1")
	got := one.waiting("1")
	// It waits by the time that another call is answered; if not, it is an ordinary claim.
	one.must(http.StatusOK, http.MethodPut, "/offer", "", device(), nil)
	id := s.Add(t)
	var a fleet.Assignment
	if text := <-got; json.Unmarshal([]byte(text), &a) != nil || a.Part != id {
		t.Errorf("the claim that waited is answered with %s; want %s", text, id)
	}
}

// A file that stayed on its box is wanted until it has come: the box is told in the answers to claims and to
// descriptions.
func tryWanted(t *testing.T, s Suite) {
	one := s.joined(t, "lab-1")
	s.Add(t)
	a := one.claim("1")
	reel := []byte("a reel that stayed")
	files := []fleet.File{{Path: "trials/001/reel", SHA256: digestOf(reel), Bytes: int64(len(reel)), Stays: true}}
	dir := s.Left(t, a)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || filepath.ToSlash(name) == files[0].Path {
			return err
		}
		files = append(files, fleet.File{Path: filepath.ToSlash(name), SHA256: digestOf(content), Bytes: int64(len(content))})
		return one.send(a.Part, a.Token, content)
	})
	if err != nil {
		t.Fatal(err)
	}
	done := fleet.Outcome{State: store.StateDone, Files: files, Trials: 1}
	one.must(http.StatusNoContent, http.MethodPost, "/parts/"+a.Part+"/end", a.Token, done, nil)
	one.refused("an upload that nobody wants yet", http.StatusForbidden, http.MethodPatch, "/blobs/"+digestOf(reel), "", string(reel))
	got := one.waiting("2")
	for told := false; !told; {
		s.Want(t, a.Part, files[0].Path, files[0].SHA256) // a claim is told of wishes that are made while it waits
		select {
		case text := <-got:
			var news fleet.Assignment
			if told = true; json.Unmarshal([]byte(text), &news) != nil || !news.News || news.Part != "" {
				t.Errorf("a claim while a file is wanted = %s; want news", text)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	var told struct{ Wanted []fleet.Wanted }
	one.must(http.StatusOK, http.MethodPut, "/offer", "", device(), &told)
	if want := []fleet.Wanted{{Part: a.Part, Path: files[0].Path, SHA256: files[0].SHA256}}; !slices.Equal(told.Wanted, want) {
		t.Errorf("wanted = %+v; want %+v", told.Wanted, want)
	}
	if err := one.send("", "", reel); err != nil {
		t.Errorf("the upload of what is wanted = %v; want nil", err)
	}
	one.must(http.StatusOK, http.MethodPut, "/offer", "", device(), &told)
	if len(told.Wanted) > 0 || !s.Has(t, files[0].SHA256) {
		t.Errorf("wanted after it came = %+v; want nothing", told.Wanted)
	}
}

// Who is no box, or another one, gets nothing of a part, and what is asked for is bounded.
func tryAttacks(t *testing.T, s Suite) {
	owner, other, stranger, nobody := s.joined(t, "owner"), s.joined(t, "other"), s.caller(t, true), s.caller(t, false)
	s.Add(t)
	a := owner.claim("1")
	archive, part := a.Archives[0].SHA256, "/parts/"+a.Part
	done := map[string]any{"state": store.StateDone, "files": []fleet.File{}}
	named := func(path string) map[string]any {
		return map[string]any{"state": store.StateDone, "files": []fleet.File{{Path: path, Bytes: 11, SHA256: archive}}}
	}
	guess := strings.Repeat("A", len(a.Token))
	for _, c := range []struct {
		what, method, path, token string
		who                       *caller
		body                      any
		want                      int
	}{
		{"a claim of a stranger", http.MethodPost, "/claims", "", stranger, wish("1", 0), http.StatusForbidden},
		{"a claim without a key", http.MethodPost, "/claims", "", nobody, wish("1", 0), http.StatusForbidden},
		{"a claim without a name", http.MethodPost, "/claims", "", owner, wish("", 0), http.StatusUnprocessableEntity},
		{"a claim with a long name", http.MethodPost, "/claims", "", owner, wish(strings.Repeat("x", 65), 0), http.StatusUnprocessableEntity},
		{"the recording, by another box with the token", http.MethodGet, part + "/archives/" + archive, a.Token, other, nil, http.StatusConflict},
		{"the recording, without a token", http.MethodGet, part + "/archives/" + archive, "", other, nil, http.StatusConflict},
		{"a file that is no recording of the part", http.MethodGet, part + "/archives/" + strings.Repeat("0", 64), a.Token, owner, nil, http.StatusNotFound},
		{"a part that there is not", http.MethodPut, "/parts/nothing/lease", a.Token, owner, fleet.Progress{}, http.StatusNotFound},
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
			fleet.Outcome{State: store.StateDone, Files: []fleet.File{{Path: "run.json", Bytes: 1, SHA256: strings.Repeat("1", 64)}}},
			http.StatusUnprocessableEntity},
		{"an upload that nobody wants", http.MethodPatch, "/blobs/" + strings.Repeat("2", 64), "", owner, "x", http.StatusForbidden},
		{"an upload for another's part", http.MethodPatch, "/blobs/" + strings.Repeat("2", 64) + "?part=" + a.Part, a.Token, other, "x", http.StatusConflict},
		{"an update that the box is not told of", http.MethodGet, "/updates/" + archive, "", owner, nil, http.StatusNotFound},
		{"a body that is too long", http.MethodPut, part + "/lease", a.Token, owner,
			`{"doing":"` + strings.Repeat("x", 64<<10) + `"}`, http.StatusRequestEntityTooLarge},
		{"a body that is no JSON", http.MethodPut, part + "/lease", a.Token, owner, "[[[", http.StatusUnprocessableEntity},
	} {
		c.who.refused(c.what, c.want, c.method, c.path, c.token, c.body)
	}
	owner.must(http.StatusOK, http.MethodPut, part+"/lease", a.Token, fleet.Progress{}, nil) // nothing of it has touched the lease
}

// Package fleettest has a head of a fleet for tests, in memory: the protocol, and nothing behind it but uploads. It
// loses requests and answers, and answers with hostile ones, as a test asks for.
package fleettest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/keep/pin"
)

// Part is a part of the fake head.
type Part struct {
	ID       string
	Offered  fleet.Assignment // Token, Attempt and Lease are the head's
	Attempt  int
	Box      string // fingerprint of the one that has it
	Token    string
	Expires  time.Time
	Request  string
	Cancel   bool
	Progress fleet.Progress
	Held     []fleet.File // handed in early
	Returns  []string     // why it was given back
	Outcome  *fleet.Outcome
	Ends     int // how often an end was taken, without repetitions
}

// Head is a head in memory. It refuses more than the real one: what no box of ours does, such as a claim without a free
// device. Its fields are read and changed under Lock.
type Head struct {
	sync.Mutex
	Lease   time.Duration
	Parts   []*Part
	Sources map[string][]byte // recordings, by digest
	Offers  map[string]fleet.Offer
	Wanted  []fleet.Wanted
	told    int            // of Wanted, in the answer to a description
	Calls   map[string]int // by method and kind
	Waiting int            // claims that wait for a part
	// Fault is asked for each request: it may drop it, or its answer after it was done. Nil drops nothing.
	Fault func(r *http.Request) Fault
	// Hostile answers in place of the head, where it returns true.
	Hostile func(w http.ResponseWriter, r *http.Request) bool

	store    blob.Store
	uploads  *blob.Uploads
	codes    map[string]string // code: the fingerprint that used it
	names    map[string]string // fingerprint: name
	cert     *tls.Certificate
	listener net.Listener
	server   *http.Server
	changed  chan struct{}
}

// Fault is what becomes of a request.
type Fault int

// The faults.
const (
	NoFault Fault = iota
	DropRequest
	DropAnswer
)

// NewHead returns a head that listens on loopback until the test ends.
func NewHead(t *testing.T) *Head {
	t.Helper()
	cert, err := pin.LoadOrCreate(t.TempDir(), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	store, err := blob.OpenFolder(filepath.Join(folder, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	uploads, err := blob.OpenUploads(blob.UploadsConfig{Store: store, Dir: filepath.Join(folder, "uploads"), Silence: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	h := &Head{
		Lease: time.Minute, store: store, uploads: uploads, Sources: map[string][]byte{},
		Offers: map[string]fleet.Offer{}, Calls: map[string]int{},
		codes: map[string]string{}, names: map[string]string{}, cert: cert, changed: make(chan struct{}),
	}
	h.listener, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*cert}, ClientAuth: tls.RequestClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: nil}
	served := make(chan struct{})
	go func() { _ = h.server.Serve(h.listener); close(served) }()
	t.Cleanup(func() { _ = h.server.Close(); <-served })
	return h
}

// Link returns a link with a new code.
func (h *Head) Link() string {
	h.Lock()
	defer h.Unlock()
	code := rand.Text()
	h.codes[code] = ""
	return fleet.Link{Host: h.listener.Addr().String(), Code: code, Pin: pin.Of(h.cert.Leaf)}.String()
}

// Add adds a part.
func (h *Head) Add(a fleet.Assignment) {
	h.Lock()
	defer h.Unlock()
	h.Parts = append(h.Parts, &Part{ID: a.Part, Offered: a})
	h.tell()
}

// AddSource adds a recording, and returns what an assignment says of it.
func (h *Head) AddSource(name string, content []byte) fleet.ArchiveFile {
	h.Lock()
	defer h.Unlock()
	digest := digestOf(content)
	h.Sources[digest] = content
	return fleet.ArchiveFile{Name: name, SHA256: digest, Bytes: int64(len(content))}
}

// Expire takes a part away from its box, as another one that claims it after its lease does.
func (h *Head) Expire(part string) {
	h.Lock()
	defer h.Unlock()
	p := h.find(part)
	p.Box, p.Token, p.Request = "", "", ""
	h.tell()
}

// Await returns when f is true, which is asked under Lock after each change; it ends the test with the context's end.
func (h *Head) Await(ctx context.Context, t *testing.T, what string, f func() bool) {
	t.Helper()
	for {
		h.Lock()
		ok, changed := f(), h.changed
		h.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			h.Lock()
			defer h.Unlock()
			for _, p := range h.Parts {
				t.Logf("part %s: attempt %d, box %q, outcome %+v, returns %q, progress %+v", p.ID, p.Attempt, p.Box, p.Outcome, p.Returns, p.Progress)
			}
			t.Fatalf("no %s: %v", what, context.Cause(ctx))
		}
	}
}

// Part returns a part; it is called under Lock.
func (h *Head) Part(id string) *Part { return h.find(id) }

func (h *Head) find(id string) *Part {
	for _, p := range h.Parts {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// tell wakes those who wait; it is called under Lock.
func (h *Head) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (h *Head) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := strings.Split(strings.TrimPrefix(r.URL.Path, "/fleet/v1/"), "/")
	kind := words[len(words)-1]
	if words[0] == "blobs" {
		kind = "blobs"
	} else if len(words) == 4 {
		kind = "archives"
	}
	h.Lock()
	h.Calls[r.Method+" "+kind]++
	fault, hostile := h.Fault, h.Hostile
	h.tell()
	h.Unlock()
	if hostile != nil && hostile(w, r) {
		return
	}
	what := NoFault
	if fault != nil {
		what = fault(r)
	}
	switch what {
	case DropRequest:
		panic(http.ErrAbortHandler)
	case DropAnswer:
		h.handle(&nowhere{header: http.Header{}}, r, words, kind)
		panic(http.ErrAbortHandler)
	}
	h.handle(w, r, words, kind)
}

// nowhere takes an answer that is lost.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}

const maxBody, maxSmall = 64 << 20, 64 << 10

func (h *Head) handle(w http.ResponseWriter, r *http.Request, words []string, kind string) {
	if len(r.TLS.PeerCertificates) == 0 {
		problem(w, http.StatusForbidden, "", "show a certificate", nil)
		return
	}
	box := pin.Of(r.TLS.PeerCertificates[0])
	var body []byte
	if kind != "blobs" || r.Method != http.MethodPatch {
		var err error
		limit := int64(maxSmall)
		if kind == "files" || kind == "end" {
			limit = maxBody
		}
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit)); err != nil {
			problem(w, http.StatusRequestEntityTooLarge, "", err.Error(), nil)
			return
		}
	}
	if kind == "join" {
		h.join(w, box, body)
		return
	}
	h.Lock()
	_, known := h.names[box]
	h.Unlock()
	if !known {
		problem(w, http.StatusForbidden, "", "no box of this fleet", nil)
		return
	}
	switch {
	case kind == "offer" && r.Method == http.MethodPut:
		h.offer(w, box, body)
	case kind == "claims" && r.Method == http.MethodPost:
		h.claims(w, r, box, body)
	case kind == "blobs":
		h.blob(w, r, box, words[1])
	case words[0] == "parts" && len(words) >= 3:
		h.part(w, r, box, words, body)
	default:
		problem(w, http.StatusNotFound, "", "there is nothing here", nil)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the box may be gone
}

func problem(w http.ResponseWriter, status int, kind, detail string, missing []string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "status": status, "detail": detail, "missing": missing}) // see answer
}

func lost(w http.ResponseWriter) {
	problem(w, http.StatusConflict, fleet.LostProblem, "another box has it", nil)
}

func (h *Head) join(w http.ResponseWriter, box string, body []byte) {
	var in struct {
		Code, Name string
		Offer      fleet.Offer
	}
	if err := json.Unmarshal(body, &in); err != nil || fleet.CheckBoxName(in.Name) != nil || in.Offer.Check() != nil {
		problem(w, http.StatusUnprocessableEntity, "", "the body is wrong", nil)
		return
	}
	h.Lock()
	defer h.Unlock()
	by, ok := h.codes[in.Code]
	if !ok || by != "" && (by != box || h.names[box] != in.Name) {
		problem(w, http.StatusForbidden, "", "the code is worthless", nil)
		return
	}
	for other, name := range h.names {
		if name == in.Name && other != box {
			problem(w, http.StatusConflict, "", "the name is taken", nil)
			return
		}
	}
	h.codes[in.Code], h.names[box], h.Offers[box] = box, in.Name, in.Offer
	answer(w, map[string]string{"id": box[:12], "name": in.Name, "head": "test"})
}

func (h *Head) offer(w http.ResponseWriter, box string, body []byte) {
	var o fleet.Offer
	if err := json.Unmarshal(body, &o); err != nil || o.Check() != nil {
		problem(w, http.StatusUnprocessableEntity, "", fmt.Sprint(err, o.Check()), nil)
		return
	}
	h.Lock()
	defer h.Unlock()
	h.Offers[box] = o
	h.told = len(h.Wanted)
	h.tell()
	answer(w, map[string]any{"wanted": h.Wanted, "health": fleet.HealthGood, "reason": "", "news": "of a newer head"})
}

func (h *Head) claims(w http.ResponseWriter, r *http.Request, box string, body []byte) {
	var in struct {
		Request string   `json:"request"`
		Free    []string `json:"free"`
		Wait    int      `json:"wait_s"`
	}
	if err := json.Unmarshal(body, &in); err != nil ||
		in.Request == "" || len(in.Request) > 64 || len(in.Free) == 0 || in.Wait < 0 || in.Wait > 30 {
		problem(w, http.StatusUnprocessableEntity, "", "the body is wrong", nil)
		return
	}
	late := time.NewTimer(time.Duration(in.Wait) * time.Second)
	defer late.Stop()
	wait := func(n int) {
		h.Lock()
		defer h.Unlock()
		h.Waiting += n
		h.tell()
	}
	wait(1)
	defer wait(-1)
	for {
		h.Lock()
		a, ok := h.pick(box, in.Request, in.Free)
		if !ok && len(h.Wanted) > h.told {
			a, ok = fleet.Assignment{News: true}, true
		}
		changed := h.changed
		h.Unlock()
		if ok {
			answer(w, a)
			return
		}
		select {
		case <-changed:
			if r.Context().Err() != nil {
				return
			}
		case <-late.C:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (h *Head) pick(box, request string, free []string) (fleet.Assignment, bool) {
	for _, p := range h.Parts {
		if p.Request == request && p.Outcome == nil && p.Box == box {
			return p.assignment(h.Lease), true
		}
	}
	for _, p := range h.Parts {
		if p.Outcome == nil && p.Box == "" && slices.Contains(free, p.Offered.Device) {
			p.Attempt++
			p.Box, p.Request, p.Token = box, request, rand.Text()
			p.Expires = time.Now().Add(h.Lease)
			h.tell()
			return p.assignment(h.Lease), true
		}
	}
	return fleet.Assignment{}, false
}

func (p *Part) assignment(lease time.Duration) fleet.Assignment {
	a := p.Offered
	a.Attempt, a.Token, a.LeaseFor = p.Attempt, p.Token, lease
	return a
}

func (h *Head) part(w http.ResponseWriter, r *http.Request, box string, words []string, body []byte) {
	h.Lock()
	defer h.Unlock()
	p := h.find(words[1])
	if p == nil {
		problem(w, http.StatusNotFound, "", "there is no such part", nil)
		return
	}
	token := r.Header.Get(fleet.LeaseHeader)
	if p.Box != box || p.Token == "" || p.Token != token || p.Outcome != nil && words[2] != "end" {
		lost(w)
		return
	}
	defer h.tell()
	switch r.Method + " " + words[2] {
	case "PUT lease":
		if json.Unmarshal(body, &p.Progress) != nil {
			problem(w, http.StatusUnprocessableEntity, "", "the body is wrong", nil)
			return
		}
		p.Expires = time.Now().Add(h.Lease)
		answer(w, fleet.Renewal{LeaseFor: h.Lease, Cancel: p.Cancel})
	case "PUT files":
		var in struct{ Files []fleet.File }
		if err := json.Unmarshal(body, &in); err != nil || fleet.CheckFiles(in.Files) != nil {
			problem(w, http.StatusUnprocessableEntity, "", fmt.Sprint(err, fleet.CheckFiles(in.Files)), nil)
			return
		}
		missing := h.missing(in.Files)
		if len(missing) == 0 {
			p.Held = in.Files
		}
		answer(w, map[string]any{"missing": missing})
	case "POST end":
		h.end(w, p, body)
	case "POST return":
		var in struct{ Reason string }
		if json.Unmarshal(body, &in) != nil || in.Reason == "" {
			problem(w, http.StatusUnprocessableEntity, "", "the body is wrong", nil)
			return
		}
		p.Returns = append(p.Returns, in.Reason)
		p.Box, p.Token, p.Request = "", "", ""
		w.WriteHeader(http.StatusNoContent)
	case "GET archives":
		content, ok := h.Sources[words[3]]
		if !ok {
			problem(w, http.StatusNotFound, "", "there is no such recording", nil)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	default:
		problem(w, http.StatusMethodNotAllowed, "", "this cannot be done", nil)
	}
}

func (h *Head) end(w http.ResponseWriter, p *Part, body []byte) {
	var o fleet.Outcome
	states := []string{"done", "failed", "interrupted"}
	if err := json.Unmarshal(body, &o); err != nil || fleet.CheckFiles(o.Files) != nil || !slices.Contains(states, o.State) {
		problem(w, http.StatusUnprocessableEntity, "", fmt.Sprint(err, fleet.CheckFiles(o.Files)), nil)
		return
	}
	if missing := h.missing(o.Files); len(missing) > 0 {
		problem(w, http.StatusUnprocessableEntity, "", "files are missing", missing)
		return
	}
	if p.Outcome == nil {
		p.Outcome = &o
		p.Ends++
	}
	w.WriteHeader(http.StatusNoContent)
}

// missing lists the digests of files that do not stay and whose content the head lacks.
func (h *Head) missing(files []fleet.File) []string {
	missing := []string{}
	for _, f := range files {
		if !f.Stays && !h.whole(f.SHA256) && !slices.Contains(missing, f.SHA256) {
			missing = append(missing, f.SHA256)
		}
	}
	return missing
}

func (h *Head) whole(digest string) bool {
	_, has, err := h.store.Has(context.Background(), digest)
	return has && err == nil
}

// Content returns the content of a file that was handed in.
func (h *Head) Content(digest string) ([]byte, error) {
	b, err := h.store.Open(context.Background(), digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return io.ReadAll(b)
}

// blob takes uploads.
func (h *Head) blob(w http.ResponseWriter, r *http.Request, box, digest string) {
	h.Lock()
	may := slices.ContainsFunc(h.Wanted, func(one fleet.Wanted) bool { return one.SHA256 == digest }) ||
		slices.ContainsFunc(h.Parts, func(p *Part) bool {
			return p.ID == r.URL.Query().Get("part") && p.Box == box && p.Outcome == nil &&
				p.Token != "" && p.Token == r.Header.Get(fleet.LeaseHeader)
		})
	h.Unlock()
	switch {
	case !may && r.Header.Get(fleet.LeaseHeader) == "":
		problem(w, http.StatusForbidden, "", "nobody wants this file", nil)
		return
	case !may:
		lost(w)
		return
	}
	h.uploads.Handler(func(*http.Request) string { return box }).ServeHTTP(w, r)
	h.Lock()
	defer h.Unlock()
	if h.whole(digest) {
		h.Wanted = slices.DeleteFunc(h.Wanted, func(one fleet.Wanted) bool { return one.SHA256 == digest })
		h.told = min(h.told, len(h.Wanted))
	}
	h.tell()
}

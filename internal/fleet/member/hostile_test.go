package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
)

// Whatever a head answers to a claim, the box writes no file outside its folders, begins no run of it, and takes an
// honest part afterwards.
func TestFleetHostileAssignments(t *testing.T) {
	bad := func(change func(*fleet.Assignment)) string {
		a := assignment("p", 1)
		a.Token, a.Attempt, a.LeaseFor = "token", 1, 1e9
		change(&a)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	digest := strings.Repeat("ab", 32)
	for name, answer := range map[string]string{
		"a path":           bad(func(a *fleet.Assignment) { a.Part = "../../escaped" }),
		"a hidden file":    bad(func(a *fleet.Assignment) { a.Part = ".hidden" }),
		"a long name":      bad(func(a *fleet.Assignment) { a.Part = strings.Repeat("x", 120) }),
		"no name":          bad(func(a *fleet.Assignment) { a.Part = "" }),
		"no token":         bad(func(a *fleet.Assignment) { a.Token = "" }),
		"a header in it":   bad(func(a *fleet.Assignment) { a.Token = "a\r\nX: y" }),
		"a path as digest": bad(func(a *fleet.Assignment) { a.Archives = []fleet.ArchiveFile{{SHA256: "../../x"}} }),
		"a huge recording": bad(func(a *fleet.Assignment) { a.Archives = []fleet.ArchiveFile{{SHA256: digest, Bytes: 1 << 60}} }),
		"many recordings":  bad(func(a *fleet.Assignment) { a.Archives = make([]fleet.ArchiveFile, maxArchives+1) }),
		"endless":          `{"part":"` + strings.Repeat("x", maxAssignment+10) + `"}`,
		"no JSON":          "<html>",
		"another type":     `{"part":["p"]}`,
		"deep":             strings.Repeat(`{"plan":`, 20_000),
		"nothing":          "",
		"null":             "null",
		"a huge lease":     `{"part":"p","token":"t","lease_ns":1e99}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := fleettest.NewHead(t)
			hits := 0
			h.Hostile = func(w http.ResponseWriter, r *http.Request) bool {
				h.Lock()
				mine := hits < 2 && strings.HasSuffix(r.URL.Path, "/claims")
				if mine {
					hits++
				}
				h.Unlock()
				if mine {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(answer)) // the box may close it early
				}
				return mine
			}
			b := joined(t, h, &simulated{})
			h.Add(assignment("honest", 1))
			checkWhole(t, h, awaitEnd(t, h, "honest"), 1)
			awaitNoParts(t, b.keeper.Dir)
			var runs []string
			err := filepath.WalkDir(filepath.Dir(b.dir), func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return nil // temporary files of the box come and go
				}
				if d.Name() == "escaped.json" || d.Name() == ".hidden.json" {
					t.Errorf("the head had %s written", path)
				}
				if filepath.Base(filepath.Dir(path)) == "runs" {
					runs = append(runs, d.Name())
				}
				return nil
			})
			if err != nil || !slices.Equal(runs, []string{"honest"}) {
				t.Errorf("runs = %q, %v; want the honest one alone", runs, err)
			}
		})
	}
}

// A head that answers claims at once, with nothing or with news that are none, does not have the box ask in a loop.
func TestFleetHeadWithoutPatience(t *testing.T) {
	for name, answer := range map[string]string{"nothing": "", "news": `{"news":true}`} {
		t.Run(name, func(t *testing.T) {
			h := fleettest.NewHead(t)
			h.Hostile = func(w http.ResponseWriter, r *http.Request) bool {
				mine := strings.HasSuffix(r.URL.Path, "/claims")
				switch {
				case mine && answer == "":
					w.WriteHeader(http.StatusNoContent)
				case mine:
					_, _ = w.Write([]byte(answer)) // the box may close it early
				}
				return mine
			}
			joined(t, h, &simulated{describe: 10 * time.Millisecond, first: time.Hour})
			h.Await(limited(t), t, "twenty descriptions beside claims", func() bool {
				return h.Calls["POST claims"] > 0 && h.Calls["PUT offer"] >= 20
			})
			h.Lock()
			defer h.Unlock()
			if n := h.Calls["POST claims"]; n > 5 { // the first descriptions may tell of a device
				t.Errorf("%d claims in a moment; want a pause after each", n)
			}
		})
	}
}

// A head with another certificate than the link's gets nothing, and a redirect is followed nowhere.
func TestFleetOtherCertificate(t *testing.T) {
	h, other := fleettest.NewHead(t), fleettest.NewHead(t)
	link, err := fleet.ParseLink(h.Link())
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := fleet.ParseLink(other.Link())
	if err != nil {
		t.Fatal(err)
	}
	calls := func() int {
		other.Lock()
		defer other.Unlock()
		return other.Calls["POST join"]
	}
	link.Host = wrong.Host
	dir := t.TempDir()
	if _, err := Join(t.Context(), link.String(), "lab-1", fleet.Offer{}, dir); err == nil || !strings.Contains(err.Error(), "another certificate") {
		t.Errorf("Join() of a head with another certificate = %v; want an error that says so", err)
	}
	if n := calls(); n != 0 {
		t.Errorf("the other head got %d calls; want none: the code is a secret", n)
	}
	h.Lock()
	h.Hostile = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://"+wrong.Host+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	h.Unlock()
	if _, err := Join(t.Context(), h.Link(), "lab-1", fleet.Offer{}, dir); err == nil || calls() != 0 {
		t.Errorf("Join() of a head that redirects = %v, %d calls elsewhere; want an error, and none", err, calls())
	}
	if _, err := readIdentity(dir); !errors.Is(err, ErrNotJoined) {
		t.Errorf("readIdentity() = %v; want ErrNotJoined", err)
	}
}

// A used code is worthless to others, a taken name is refused, and the same box may repeat a request whose answer was
// lost.
func TestFleetJoin(t *testing.T) {
	h := fleettest.NewHead(t)
	link, first := h.Link(), t.TempDir()
	h.Lock()
	h.Fault = func(*http.Request) fleettest.Fault { return fleettest.DropAnswer }
	h.Unlock()
	if _, err := Join(t.Context(), link, "lab-1", fleet.Offer{}, first); err == nil {
		t.Error("Join() = nil although the answer was lost")
	}
	h.Lock()
	h.Fault = nil
	h.Unlock()
	if id, err := Join(t.Context(), link, "lab-1", fleet.Offer{}, first); err != nil || id.ID == "" {
		t.Errorf("Join() again = %+v, %v; want the same box", id, err)
	}
	if _, err := Join(t.Context(), link, "lab-2", fleet.Offer{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "refuses the code") {
		t.Errorf("Join() of another box with the code = %v; want a refusal", err)
	}
	if _, err := Join(t.Context(), h.Link(), "lab-1", fleet.Offer{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("Join() with a name that is taken = %v; want a refusal", err)
	}
	if _, err := Join(t.Context(), fleettest.NewHead(t).Link(), "lab-1", fleet.Offer{}, first); !errors.Is(err, ErrJoined) {
		t.Errorf("Join() of another head = %v; want ErrJoined", err)
	}
	if _, err := Join(t.Context(), h.Link(), "Lab 1", fleet.Offer{}, t.TempDir()); err == nil {
		t.Error("Join() with a name that is none = nil")
	}
}

// A claim whose answers are lost gets the same part again, and it is one run.
func TestFleetDuplicatedAssignment(t *testing.T) {
	h := fleettest.NewHead(t)
	lost := 0
	h.Fault = func(r *http.Request) fleettest.Fault {
		h.Lock()
		defer h.Unlock()
		if lost < 5 && strings.HasSuffix(r.URL.Path, "/claims") {
			lost++
			return fleettest.DropAnswer
		}
		return fleettest.NoFault
	}
	h.Add(assignment("p", 2))
	b := joined(t, h, &simulated{})
	got := awaitEnd(t, h, "p")
	checkWhole(t, h, got, 2)
	if got.Attempt != 1 {
		t.Errorf("the part was claimed %d times; want 1", got.Attempt)
	}
	awaitNoParts(t, b.keeper.Dir)
	if b.store.Has("p-2") {
		t.Error("the part has two runs on the box")
	}
}

// A box whose disk takes nothing does not keep a part from the others: it gives the part back before it has begun.
func TestFleetDiskTakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b *box)
		want  string
	}{
		"the lease": {func(t *testing.T, b *box) { // a folder in the place of its file
			if err := os.MkdirAll(filepath.Join(leaseFile(b.keeper.Dir, "p"), "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "cannot keep"},
		"the queue": {func(t *testing.T, b *box) {
			if err := b.jobs.Close(); err != nil {
				t.Fatal(err)
			}
		}, "cannot begin"},
	} {
		t.Run(name, func(t *testing.T) {
			h := fleettest.NewHead(t)
			b := joined(t, h, &simulated{})
			h.Await(limited(t), t, "claim", func() bool { return h.Waiting > 0 })
			c.spoil(t, b)
			h.Add(assignment("p", 1))
			h.Await(limited(t), t, "return", func() bool { return len(h.Part("p").Returns) > 0 })
			h.Lock()
			defer h.Unlock()
			if p := h.Part("p"); len(p.Returns) != 1 || !strings.Contains(p.Returns[0], c.want) || p.Attempt != 1 {
				t.Errorf("the part was given back as %q after %d attempts; want once, with %q", p.Returns, p.Attempt, c.want)
			}
		})
	}
}

// A part whose run had ended when its lease was lost is handed in as it is when it comes back: nothing is measured
// twice.
func TestFleetFinishedRunIsHandedInAgain(t *testing.T) {
	h := fleettest.NewHead(t)
	h.Lease = 30 * 1e6
	trials := 0
	h.Hostile = func(_ http.ResponseWriter, r *http.Request) bool {
		h.Lock()
		defer h.Unlock()
		if p := h.Part("p"); strings.HasSuffix(r.URL.Path, "/end") && p.Attempt == 1 {
			p.Token, p.Box, p.Request = "", "", "" // its lease is over
		}
		return false
	}
	h.Add(assignment("p", 3))
	joined(t, h, &simulated{trial: func(context.Context, string, int) error { trials++; return nil }})
	got := awaitEnd(t, h, "p")
	checkWhole(t, h, got, 3)
	if got.Attempt != 2 || trials != 3 {
		t.Errorf("the part ended in attempt %d after %d trials; want 2, and 3", got.Attempt, trials)
	}
}

// A file that stayed on the box is given when the head wants it, by its digest; what the head makes up it does not get.
func TestFleetWantedFiles(t *testing.T) {
	h := fleettest.NewHead(t)
	b := joined(t, h, &simulated{describe: time.Hour}) // it hears of wishes in the answer to a claim
	a := assignment("p", 2)
	a.Stay = []string{"reel", "[broken"}
	h.Add(a)
	got := awaitEnd(t, h, "p")
	awaitNoParts(t, b.keeper.Dir)
	i := slices.IndexFunc(got.Outcome.Files, func(f fleet.File) bool { return f.Path == "trials/001/reel" })
	if i < 0 || !got.Outcome.Files[i].Stays {
		t.Fatalf("files = %+v; want a reel that stays", got.Outcome.Files)
	}
	reel := got.Outcome.Files[i].SHA256
	if _, err := h.Content(reel); err == nil {
		t.Error("the head has the reel, which was to stay")
	}
	if err := os.WriteFile(filepath.Join(b.dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("secret"))
	hidden := hex.EncodeToString(sum[:])
	h.Lock()
	h.Wanted = []fleet.Wanted{
		{Part: "p", Path: "../../secret", SHA256: hidden}, {Part: "../p", Path: "run.json", SHA256: hidden}, {Part: "..", Path: "secret", SHA256: hidden},
		{Part: "p", Path: "trials/002/reel", SHA256: reel}, {Part: "nothing", Path: "run.json", SHA256: reel}, {Part: "p", Path: "trials/001/reel", SHA256: reel},
	}
	h.Unlock()
	h.Await(limited(t), t, "reel", func() bool { _, err := h.Content(reel); return err == nil })
	if content, err := h.Content(reel); err != nil || string(content) != "reel of p, trial 1" {
		t.Errorf("the reel = %q, %v", content, err)
	}
	if _, err := h.Content(hidden); err == nil {
		t.Error("the head got a file outside the run")
	}
}

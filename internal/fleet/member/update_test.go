package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/rigs/testlab"
)

// updater keeps what it gets.
type updater struct {
	mu     sync.Mutex
	got    []byte
	status UpdateStatus
}

func (u *updater) Update(_ context.Context, bundle io.Reader) error {
	text, err := io.ReadAll(bundle)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got, u.status.Installing = text, true
	return nil
}

func (u *updater) Status() (UpdateStatus, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status, nil
}

// Whatever a head says of an update, the updater gets the bytes with the digest and no others, the head hears why, and
// the box carries out parts afterwards.
func TestFleetUpdateHostileHead(t *testing.T) {
	sum := sha256.Sum256([]byte("bundle"))
	digest := hex.EncodeToString(sum[:])
	told := func(sha256 string, bytes int64) string {
		text, err := json.Marshal(map[string]any{"update": fleet.Update{ID: "u1", Version: "1.1", SHA256: sha256, Bytes: bytes}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		answer, bundle string
		status         UpdateStatus
		installs       bool
		why            string // "": the head hears nothing
	}{
		"good":             {told(digest, 6), "bundle", UpdateStatus{}, true, ""},
		"a path":           {told("../../etc/passwd", 6), "bundle", UpdateStatus{}, false, ""},
		"huge":             {told(digest, 1<<60), "bundle", UpdateStatus{}, false, ""},
		"no bytes":         {told(digest, 0), "", UpdateStatus{}, false, ""},
		"other content":    {told(digest, 6), "virus!", UpdateStatus{}, false, "its SHA-256 is"},
		"longer":           {told(digest, 6), "bundle and more", UpdateStatus{}, false, "more than the 6 bytes"},
		"no such bundle":   {told(digest, 6), "404", UpdateStatus{}, false, "the head answers 404"},
		"no JSON":          {`{"update": [`, "bundle", UpdateStatus{}, false, ""},
		"another type":     {`{"update": {"sha256": 7}}`, "bundle", UpdateStatus{}, false, ""},
		"was given up":     {told(digest, 6), "bundle", UpdateStatus{Last: "1.1", FellBack: true}, false, "did not become healthy"},
		"is there already": {`{"update": {"version": "1.0", "sha256": "` + digest + `", "bytes": 6}}`, "bundle", UpdateStatus{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := fleettest.NewHead(t)
			telling, offers := true, 0
			var heard *fleet.UpdateState
			h.Hostile = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.HasPrefix(r.URL.Path, "/fleet/v1/updates/"):
					if c.bundle == "404" {
						http.Error(w, "{}", http.StatusNotFound)
					} else {
						_, _ = io.WriteString(w, c.bundle) // the box may close it early
					}
					return true
				case !strings.HasSuffix(r.URL.Path, "/offer"):
					return false
				}
				var o fleet.Offer
				if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Check() != nil {
					t.Errorf("the box describes itself as %+v, %v", o, err)
				}
				h.Lock()
				defer h.Unlock()
				if offers++; o.Update != nil {
					heard = o.Update
				}
				if w.Header().Set("Content-Type", "application/json"); telling {
					_, _ = io.WriteString(w, c.answer)
				} else {
					_, _ = io.WriteString(w, "{}")
				}
				return true
			}
			u := &updater{status: c.status}
			u.status.Running = "1.0"
			b, _ := start(t, t.TempDir(), &simulated{updater: u})
			if _, err := b.keeper.Join(t.Context(), h.Link(), "lab-1"); err != nil {
				t.Fatal(err)
			}
			testlab.Await(t, "what becomes of the update", func() bool {
				now, _ := u.Status()
				h.Lock()
				defer h.Unlock()
				return now.Installing || heard != nil || c.why == "" && !c.installs && offers > 3
			})
			now, _ := u.Status()
			if now.Installing != c.installs || c.installs && string(u.got) != "bundle" {
				t.Errorf("installing %v, %q; want %v", now.Installing, u.got, c.installs)
			}
			h.Lock()
			if c.why == "" && heard != nil || c.why != "" && (heard == nil || heard.ID != "u1" || !strings.Contains(heard.Error, c.why)) {
				t.Errorf("the head hears %+v; want %q", heard, c.why)
			}
			telling = false
			h.Unlock()
			if !c.installs { // it waits for parts again
				h.Add(assignment("p", 1))
				checkWhole(t, h, awaitEnd(t, h, "p"), 1)
			}
		})
	}
}

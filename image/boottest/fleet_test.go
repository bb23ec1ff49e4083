package boottest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// headOf is the head of a fleet, in the namespace of a box's uplink.
type headOf struct {
	box     *Box
	address string
	token   string
}

// startHead starts the head that people start, until the test ends, and has the box join it under a name.
func (b *Box) startHead(t *testing.T, name string) *headOf {
	t.Helper()
	dir := t.TempDir()
	program, data := filepath.Join(dir, "appliance"), filepath.Join(dir, "head")
	goTool(t, "build", "-o", program, "./cmd/appliance")
	h := &headOf{box: b, address: Router.Addr().String() + ":8443"}
	cmd := exec.Command(program, "head", "--data", data, "--listen", h.address)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := b.Uplink.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready, cancel := timeout(t)
	defer cancel()
	if _, err := b.Uplink.WaitHealthy(ready, h.address); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		t.Fatal(err)
	}
	h.token = strings.TrimSpace(string(token))
	var code struct{ Link string }
	h.must(t, http.MethodPost, "/api/v1/boxes/codes", "", nil, &code)
	body := fmt.Sprintf(`{"link":%q,"name":%q}`, code.Link, name)
	if status, text := b.REST(t, http.MethodPut, "/api/v1/fleet", "application/json", strings.NewReader(body)); status != http.StatusOK {
		t.Fatalf("the box joins the head: %d %s", status, text)
	}
	return h
}

// must makes a request of the head that succeeds, and decodes its answer.
func (h *headOf) must(t *testing.T, method, path, contentType string, body io.Reader, out any) {
	t.Helper()
	status, text := h.box.ask(t, h.address, h.token, method, path, contentType, body)
	if status/100 != 2 {
		t.Fatalf("%s %s of the head = %d %s", method, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%s %s of the head = %s: %v", method, path, text, err)
	}
}

// fleetBoxes is what the head says of its boxes and of their update.
type fleetBoxes struct {
	Boxes   []struct{ Name, Image, Health, State string }
	Rollout *struct {
		State, Why, Version string
		Boxes               []struct{ Name, State, Why string }
	}
}

// until asks the head for its boxes until f is true of them.
func (h *headOf) until(t *testing.T, what string, f func(fleetBoxes) bool) (all fleetBoxes) {
	t.Helper()
	wait, cancel := timeout(t)
	defer cancel()
	for {
		all = fleetBoxes{}
		if h.must(t, http.MethodGet, "/api/v1/boxes", "", nil, &all); f(all) {
			return all
		}
		select {
		case <-time.After(time.Second):
		case <-wait.Done():
			h.box.Explain(t)
			t.Fatalf("the head never says that %s; it says %+v", what, all)
		}
	}
}

// updateAll has the head update its boxes.
func (h *headOf) updateAll(t *testing.T, bundle string) {
	t.Helper()
	f, err := os.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r struct{ State string }
	if h.must(t, http.MethodPost, "/api/v1/boxes/update", "application/octet-stream", f, &r); r.State != "running" {
		t.Fatalf("the update of the boxes is %s; want it running", r.State)
	}
}

package boottest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
)

// browsersMemory is the memory of a box with browsers, in MiB, as docs/box.md says.
const browsersMemory = 4096

// testBrowsers builds an image with Chromium and boots it. The box says that its virtual device is ready, records a page
// through its uplink, and measures it on that device, over REST.
func testBrowsers(t *testing.T) {
	testlab.NeedRoot(t)
	testlab.NeedProgram(t, "qemu-system-x86_64")
	out := filepath.Join(filepath.Dir(ImagePath(t, testImage)), "browsers") // which keeps Debian's files
	cmd := exec.CommandContext(t.Context(), "go", "run", "./image/build", "--test", "--browsers", "chromium",
		"--version", "0.0.1", "--key", "none", "--out", out)
	cmd.Dir = Root(t)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("the build says:\n%s", text)

	b := NewBox(t, BoxOptions{Image: filepath.Join(out, testImage), Memory: browsersMemory, Disk: 4 << 30})
	t.Logf("healthy %.1f s after power-on", b.On(t).Seconds())
	testMemoryOfFiles(t, b)
	measureByItself(t, b)
}

// testMemoryOfFiles logs what the system's files take of memory, and that a run has as much again.
func testMemoryOfFiles(t *testing.T, b *Box) {
	var total, available int
	if _, err := fmt.Sscan(b.Run(t, "awk '/MemTotal|MemAvailable/ {print $2}' /proc/meminfo"), &total, &available); err != nil {
		t.Fatal(err)
	}
	t.Logf("idle: %d of %d MiB in use; files: %s", (total-available)/1024, total/1024, b.Run(t, "df -m / | tail -n 1"))
	if available < total/2 {
		t.Errorf("%d of %d MiB are available when idle; want half of it or more for runs", available/1024, total/1024)
	}
}

// measureByItself has a box measure a page of the uplink's network on its virtual device.
func measureByItself(t *testing.T, b *Box) {
	before := b.Run(t, "cat /etc/appliance/appliance.yaml")
	b.Run(t, "cat > /etc/appliance/appliance.yaml <<'END'\n"+before+"\nnetwork: {allow_private: true}\nEND\n"+
		"systemctl restart appliance.service")
	b.Healthy(t)
	panel := &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)}
	var devices struct {
		Devices []struct {
			Name, Problem string
			Ready         bool
			Browsers      []string
		}
	}
	if err := json.Unmarshal(panel.Get(t, "/api/v1/devices"), &devices); err != nil {
		t.Fatal(err)
	}
	i := 0
	for i < len(devices.Devices) && devices.Devices[i].Name != "virtual" {
		i++
	}
	if i == len(devices.Devices) || !devices.Devices[i].Ready || !slices.Equal(devices.Devices[i].Browsers, []string{lab.Chromium}) {
		b.Explain(t)
		t.Fatalf("the devices are %+v; want the virtual one, ready, with Chromium", devices.Devices)
	}
	found := doctorOfService(t, panel)
	if !strings.HasPrefix(found["virtual"], "ok chromium; ") || found["sandbox"] != "ok works" {
		t.Errorf("the service's doctor says of the virtual device %q, and of its sandbox %q; want that both work",
			found["virtual"], found["sandbox"])
	}
	t.Logf("doctor: %s", found["virtual"])

	page := servePage(t, b)
	began := time.Now()
	id := panel.Start(t, map[string]any{
		"name": "by itself", "device": "virtual", "page": page, "trials": 1, "still_s": 5, "limit_s": 300, "tolerance_ms": 10000,
		"screen": map[string]any{"rate": 30},
	})
	state := panel.Follow(t, id, Patience, nil)
	run := panel.Run(t, id)
	t.Logf("run %s is %s after %.0f s: %s; the service used at most %s bytes of memory", id, state, time.Since(began).Seconds(), run.Error,
		b.Run(t, "cat /sys/fs/cgroup/appliance.slice/appliance.service/memory.peak"))
	if len(run.Trials) == 0 {
		b.Explain(t)
		t.Fatalf("the run has no trial: %s", run.Error)
	}
	e := run.Environment
	t.Logf("browser %s, screen %s, sandbox %s", e.Browser, e.Screen, e.Sandbox)
	if !strings.HasPrefix(e.Browser, "Chromium") || !strings.Contains(e.Sandbox, "the browser's own, in a user namespace") ||
		!strings.Contains(e.Sandbox, "memory bounded for the run") || run.Archive.SHA256 == "" {
		t.Errorf("browser %q, sandbox %q, recording %q; want Chromium in its own sandbox, memory bounded, and a recording", e.Browser,
			e.Sandbox, run.Archive.SHA256)
	}
	for _, trial := range run.Trials {
		t.Logf("trial %d: valid %v, %q, %d requests, %d frames, %d lost", trial.Number, trial.Valid, trial.Invalid, trial.Requests,
			trial.Frames, trial.FramesLost)
		for _, reason := range trial.Invalid {
			if !storytest.OfSlowMachines(reason) {
				t.Errorf("trial %d is invalid: %s", trial.Number, reason)
			}
		}
		if trial.Misses != 0 || trial.Requests < 2 {
			t.Errorf("trial %d: %d requests, %d of them not recorded; want the page and its picture", trial.Number,
				trial.Requests, trial.Misses)
		}
		if film := panel.Artifact(t, id, fmt.Sprintf("trials/%03d/%s", trial.Number, trial.Files["reel"])); len(film) == 0 {
			t.Errorf("the film of trial %d is empty", trial.Number)
		}
	}
}

// servePage serves a small page in the uplink's namespace until the test ends.
func servePage(t *testing.T, b *Box) (url string) {
	t.Helper()
	var l net.Listener
	err := b.Uplink.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(Router.Addr().String(), "8088"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const dot = `<svg xmlns="http://www.w3.org/2000/svg" width="80" height="80"><rect width="80" height="80" fill="navy"/></svg>`
	s := &http.Server{ReadHeaderTimeout: Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dot.svg" {
			w.Header().Set("Content-Type", "image/svg+xml")
			_, _ = io.WriteString(w, dot) // the browser may have gone
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><title>by itself</title><h1>By itself</h1><img src="/dot.svg">`)
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/"
}

// doctorOfService is what the doctor finds in the service, by the name of the check: as the support bundle has it.
func doctorOfService(t *testing.T, panel *storytest.Panel) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(panel.Get(t, "/api/v1/support")))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("the support bundle has no doctor.json: %v", err)
		}
		if filepath.Base(h.Name) != "doctor.json" {
			continue
		}
		var all []struct {
			Name, Found string
			OK          bool
		}
		if err := json.NewDecoder(r).Decode(&all); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, f := range all {
			found[f.Name] = map[bool]string{true: "ok ", false: "-- "}[f.OK] + f.Found
		}
		return found
	}
}

//go:build soak

package boottest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
)

var (
	cuts = flag.Int("cuts", 20, "how often the power goes")
	seed = flag.Uint64("seed", 0, "of the moments; 0: another one each time")
)

// TestSoakGrabber records from the kernel's virtual grabber on the box, at several sizes and rates.
func TestSoakGrabber(t *testing.T) {
	b := HealthyBox(t)
	for _, mode := range []string{"1920x1080_at_60", "1920x1080_at_30", "1280x720_at_60", "1280x720_at_30", "720x480_at_60", "640x480_at_60"} {
		b.Test(t, "./capture/v4l2", "TestSoakVivid/"+mode)
	}
}

// TestSoak cuts the power at random moments: while the box starts, records a screen, updates,
// or carries out a run over REST, which records a page or replays a recording. After each
// cut, every byte that was complete before must still be there: earlier runs with their
// recordings and videos, archives, configuration and token. A run that was cut off must go on, or
// be interrupted where it cannot, and the same request must succeed when it is sent again.
func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("repeat with: -cuts %d -seed %d", *cuts, *seed)
	s := newSoak(t, rand.New(rand.NewPCG(*seed, 0)))
	for n := range *cuts {
		what := []string{"a run", "updating", "recording a screen", "starting"}[n%4]
		began := time.Now()
		t.Logf("cut %d, while %s, version %s", n+1, what, s.version(t))
		switch what {
		case "starting":
			s.cutStarting()
		case "a run":
			s.cutRunning()
		case "updating":
			s.cutUpdating()
		case "recording a screen":
			s.cutFilming()
		}
		s.check()
		t.Logf(
			"cut %d: everything is intact, %d files of %d runs; it took %.0f s",
			n+1,
			strings.Count(s.whole, "\n"),
			len(s.ended),
			time.Since(began).Seconds(),
		)
		if t.Failed() {
			return
		}
	}
	t.Logf("runs that were cut off: %v; runs that ended: %v", s.interrupted, s.ended)
	if s.recorded == "" {
		t.Error("no run reached a trial, so no cut hit one; want at least one: is this machine too busy?")
	}
}

// soak is a box with a site and a device, and the state that must survive every cut.
type soak struct {
	*Box
	t           *testing.T
	random      *rand.Rand
	panel       *storytest.Panel
	first       string            // version
	ended       map[string]ending // of runs, by ID
	recorded    string            // the run whose recording is replayed; none yet when empty
	interrupted []string
	whole       string // checksums of all complete files
}

// soakPage is small, so that an emulated box completes many runs in an hour: the test is
// about the state that a cut leaves.
const soakPage = "https://" + samplesite.Ads + "/frame"

// ending is how a run ended.
type ending struct {
	state  string
	trials int
}

// stateDir is the service's folder for its state and results.
const stateDir = "/var/lib/appliance/state"

func newSoak(t *testing.T, random *rand.Rand) *soak {
	t.Helper()
	storytest.NeedDevice(t)
	b := NewBox(t, BoxOptions{Disk: 8 << 30})
	roots, leave := startSite(t, b)
	t.Cleanup(leave)
	// Put the configuration on the EFI partition: a configuration in memory only is lost with the power.
	b.putESP(t, "appliance.yaml", "network:\n  trust: |\n    "+strings.ReplaceAll(strings.TrimSpace(roots), "\n", "\n    ")+
		"\ndevices: [{name: laptop, port: enp0s17, rate: 4}]\n")
	b.On(t)
	s := &soak{Box: b, t: t, random: random, first: b.version(t), ended: map[string]ending{}}
	s.panel = &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)}
	useLease(t, b)
	storytest.Plug(t, b.Device, tapName, 800, 500)
	s.panel.AwaitDevice(t)
	s.end(s.ask(false))
	return s
}

// sums returns the checksums of all complete files.
func (s *soak) sums() string {
	s.t.Helper()
	var folders []string
	for id := range s.ended {
		folders = append(folders, "runs/"+id)
	}
	return s.Run(
		s.t,
		fmt.Sprintf(
			"cd %s && { find %s $(ls -d archives 2>/dev/null) -type f ! -name .lock; echo /etc/appliance/token; echo /etc/appliance/appliance.yaml; } | LC_ALL=C sort | xargs sha256sum",
			stateDir,
			strings.Join(folders, " "),
		),
	) + "\n"
}

// moment draws a delay of up to the given number of seconds.
func (s *soak) moment(seconds int) time.Duration {
	d := time.Duration(s.random.IntN(seconds*1000)) * time.Millisecond
	s.t.Logf("the power is cut %v later", d)
	return d
}

// again cuts the power and switches the box on again.
func (s *soak) again() {
	s.t.Helper()
	s.cut(s.t)
	s.On(s.t)
}

// check compares the files with their checksums, and the panel's runs with their states before.
func (s *soak) check() {
	s.t.Helper()
	if got := s.sums(); got != s.whole {
		s.t.Errorf("files differ after the cut; want:\n%s\ngot:\n%s", s.whole, got)
	}
	for _, id := range s.interrupted {
		if run := s.panel.Run(s.t, id); run.State != "interrupted" {
			s.t.Errorf("run %s was cut off; its state is %s, want interrupted", id, run.State)
		}
	}
	for id, before := range s.ended {
		run := s.panel.Run(s.t, id)
		if now := (ending{run.State, len(run.Trials)}); now != before {
			s.t.Errorf("run %s had ended as %v before the cut and is %v after it: %s", id, before, now, run.Error)
		}
	}
	if out := s.Run(s.t, "systemctl --failed --no-legend --plain"); out != "" {
		s.t.Errorf("failed units: %s; want none", out)
	}
}

// cutStarting cuts the power at once, and again while the box starts.
func (s *soak) cutStarting() {
	s.cut(s.t)
	if err := s.Boot(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.pause(s.t, s.moment(25))
	s.again()
}

// cutRunning cuts the power during a run, and sends the same request again.
func (s *soak) cutRunning() {
	replay := s.random.IntN(2) == 0 && s.recorded != ""
	s.panel.AwaitDevice(s.t)
	id := s.ask(replay)
	s.pause(s.t, s.moment(40))
	seen := s.panel.Run(s.t, id)
	s.t.Logf("run %s, a replay: %t, is %s with %d trials", id, replay, seen.State, len(seen.Trials))
	s.again()
	switch run := s.panel.Run(s.t, id); {
	case run.State == "interrupted" && (seen.State == "running" || seen.State == "queued"):
		s.interrupted = append(s.interrupted, id)
	case run.State == "queued" || run.State == "running", run.State == "done" || run.State == "failed":
		s.end(id)
	default:
		s.t.Errorf("run %s was %s and is %s after the cut: %s", id, seen.State, run.State, run.Error)
	}
	s.panel.AwaitDevice(s.t)
	// The next cut may come at once.
	s.end(s.ask(replay))
}

// ask starts a run, which records a page or replays the first recording.
func (s *soak) ask(replay bool) string {
	s.t.Helper()
	request := map[string]any{"name": "soak", "page": soakPage, "trials": 1, "still_s": 4, "limit_s": 60}
	if replay {
		request["archive"], request["link"] = s.recorded, "rtt=50ms,down=8mbit,up=2mbit"
	}
	return s.panel.Start(s.t, request)
}

// end waits for a run to end and adds its files to those that must survive. Whether its
// trial is valid depends on how busy this machine is: on a very busy one, a page may not
// even begin to load within its time limit.
func (s *soak) end(id string) {
	s.t.Helper()
	state := s.panel.Follow(s.t, id, Patience, nil)
	run := s.panel.Run(s.t, id)
	s.t.Logf("run %s is %s with %d trials: %.200s", id, state, len(run.Trials), run.Error)
	if run.State != "done" && run.State != "failed" {
		s.t.Errorf("run %s is over, and its state is %s; want done or failed", id, run.State)
	}
	s.ended[id] = ending{run.State, len(run.Trials)}
	if s.recorded == "" && len(run.Trials) == 1 {
		s.recorded = id
		recording := s.panel.Artifact(s.t, id, "archive.wacz")
		status, text := s.REST(s.t, http.MethodPut, "/api/v1/archives/brought.wacz", "application/octet-stream", bytes.NewReader(recording))
		if status/100 != 2 {
			s.t.Fatalf("upload a recording: %d %s", status, text)
		}
	}
	s.whole = s.sums()
}

// cutUpdating cuts the power during an update, with a working system first and then with broken ones.
func (s *soak) cutUpdating() {
	before := s.version(s.t)
	bundle := "appliance-test-next.update"
	if before != s.first {
		bundle = "appliance-test-bad.update"
	}
	s.install(s.t, ImagePath(s.t, bundle))
	s.pause(s.t, s.moment(20))
	s.again()
	if now := s.version(s.t); now != before && (before != s.first || now != s.first+".1") {
		s.t.Errorf("version %s after the update of version %s was cut off", now, before)
	}
}

// cutFilming cuts the power while a screen is recorded: all but the last seconds must be there.
func (s *soak) cutFilming() {
	held := s.film(s.t)
	s.pause(s.t, s.moment(20))
	s.again()
	s.filmSaved(s.t, held)
	s.Run(s.t, "rm -f "+path.Join(path.Dir(filmPath), "film.reel*"))
}

// install puts an update into the place of updates that the panel has checked, without
// checking it.
func (b *Box) install(t *testing.T, bundle string) {
	t.Helper()
	file := b.Send(t, bundle)
	b.Run(
		t,
		fmt.Sprintf(
			"cd /var/lib/appliance/state/update && rm -f result.json && cp %s part && rm %[1]s && sync part && mv part ready.update && touch /run/appliance/requests/update",
			file,
		),
	)
}

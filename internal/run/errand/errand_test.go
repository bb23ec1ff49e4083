package errand

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/capture/qualify"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/run/seat"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"
)

const filmProcess = "EIDETIC_TEST_FILM_INTO"

func TestMain(m *testing.M) {
	if root := os.Getenv(filmProcess); root != "" {
		filmUntilKilled(root)
	}
	xtest.Main()
	os.Exit(m.Run())
}

// filmUntilKilled begins a film in a store, says so, and goes on.
func filmUntilKilled(root string) {
	s, err := store.Open(context.Background(), root, nil)
	if err == nil {
		k := &Keeper{Store: s, Log: slog.New(slog.DiscardHandler)}
		d := Device{Name: "desk", Seat: synthetic("scroll", root)}
		if _, err = k.Start(d, Request{Do: Film, Length: MostFilm}, "killed"); err == nil {
			tick := time.NewTicker(time.Millisecond)
			for st, _ := k.Of("desk"); st.Frames == 0 && !st.Over(); st, _ = k.Of("desk") {
				<-tick.C
			}
		}
	}
	fmt.Println("filming", err)
	select {}
}

// synthetic is the seat of a device whose screen shows a content.
func synthetic(content, live string) *seat.Seat {
	return &seat.Seat{Live: live, Open: func() (seat.Parts, error) {
		return seat.Parts{Screen: source.Options{Name: "synthetic:" + content, Format: lab.Format{Width: 320, Height: 200, Rate: 60}}}, nil
	}}
}

func newKeeper(t *testing.T) *Keeper {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &Keeper{Store: s, Recordings: folder(t.TempDir()), Software: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	t.Cleanup(func() {
		if err := errors.Join(k.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return k
}

// folder takes recordings in.
type folder string

func (f folder) Begin() (string, error) { return os.MkdirTemp(string(f), ".incoming-") }

func (f folder) Keep(_ context.Context, file, name string) error {
	return os.Rename(file, filepath.Join(string(f), name))
}

// await returns the status of the device's errand when it is as it should be, or over.
func await(t *testing.T, k *Keeper, device string, ok func(Status) bool) Status {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testlab.Hang); ; <-tick.C {
		s, err := k.Of(device)
		if err != nil {
			t.Fatal(err)
		}
		if ok(s) || s.Over() {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the errand is %+v after %v", s, testlab.Hang)
		}
	}
}

func ended(t *testing.T, k *Keeper, device string) Status {
	t.Helper()
	return await(t, k, device, Status.Over)
}

func start(t *testing.T, k *Keeper, d Device, r Request) {
	t.Helper()
	if _, err := k.Start(d, r, "anna"); err != nil {
		t.Fatal(err)
	}
}

// TestFilm: a film with pre-roll waits for its trigger, begins before it, keeps a run waiting, and is a run without a
// plan at the end.
func TestFilm(t *testing.T) {
	t.Parallel()
	testlab.NeedProgram(t, "vpxenc")
	k := newKeeper(t)
	d := Device{Name: "desk", Seat: synthetic("scroll", t.TempDir())}
	start(t, k, d, Request{Do: Film, Length: time.Second, PreRoll: 300 * time.Millisecond, Name: "the crash"})
	if s := await(t, k, "desk", func(s Status) bool { return s.State == Waiting }); s.State != Waiting || s.By != "anna" {
		t.Fatalf("a film with pre-roll is %+v; want it to wait", s)
	}
	if _, err := k.Start(d, Request{Do: Noise}, "ben"); err == nil || !strings.Contains(err.Error(), "the device is being filmed for anna") {
		t.Errorf("a second errand: %v; want what the device does, and for whom", err)
	}
	waits, taken := make(chan string, 1), make(chan error, 1)
	go func() {
		back, err := d.Seat.Take(t.Context(), func(why string) { waits <- why })
		if err == nil {
			back()
		}
		taken <- err
	}()
	if why := <-waits; why != "the device is being filmed for anna" {
		t.Errorf("a run waits because %q", why)
	}
	pause := time.NewTimer(500 * time.Millisecond) // of which the ring keeps the last part
	<-pause.C
	if runs, err := k.Store.Runs(t.Context(), "", 0); err != nil || len(runs) != 0 {
		t.Errorf("the list has %v, %v, before the film is complete", runs, err)
	}
	triggered := time.Now()
	if _, err := k.Trigger("desk"); err != nil {
		t.Fatal(err)
	}
	s := ended(t, k, "desk")
	if s.State != Done || s.Run == "" || s.Note != "" {
		t.Fatalf("the film ended as %+v", s)
	}
	if err := <-taken; err != nil {
		t.Errorf("the run that waited: %v", err)
	}
	run, err := k.Store.Run(s.Run)
	if err != nil || run.Kind != lab.KindFilm || run.Name != "the crash" || run.Plan.Device != "desk" || len(run.Trials) != 1 {
		t.Fatalf("the run is %+v, %v", run, err)
	}
	trial := run.Trials[0]
	dir := filepath.Join(k.Store.Root(), "runs", s.Run, "trials", "001")
	r, err := reel.Open(filepath.Join(dir, trial.Files["reel"]))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() != trial.Frames || trial.StartFrame == 0 || trial.StartTime <= trial.FirstFrame || trial.Capture.Source.Name != "synthetic:scroll" {
		t.Errorf("%d frames in the reel; the trial says %d, starts with frame %d, and is of %+v", r.Len(), trial.Frames, trial.StartFrame, trial.Capture.Source)
	}
	// A busy machine is late with the last frames, and never ends early.
	after := r.Info(r.Len() - 1).Time.Sub(trial.StartTime)
	if went := s.Ended.Sub(triggered); went < time.Second || after <= 0 || after > testlab.Hang {
		t.Errorf("the film ended %v after its trigger, and has %v of that; want a second", went, after)
	}
	for _, role := range []string{"video", "filmstrip"} {
		if info, err := os.Stat(filepath.Join(dir, trial.Files[role])); err != nil || info.Size() == 0 {
			t.Errorf("the %s: %v, %v", role, info, err)
		}
	}
	entries, err := k.Store.Runs(t.Context(), "", 0)
	series, seriesErr := k.Store.Series(t.Context(), "", store.Series{}, 10)
	if err != nil || len(entries) != 1 || entries[0].Kind != lab.KindFilm || seriesErr != nil || len(series) != 0 {
		t.Errorf("listed: %+v, %v; history: %+v, %v; want the film, and no history of it", entries, err, series, seriesErr)
	}
	if err := k.Store.Remove(s.Run); err != nil {
		t.Errorf("removing it: %v", err)
	}
}

// TestEnds: one that is stopped, or whose service ends, leaves nothing; one that is to be kept ends early.
func TestEnds(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	d := Device{Name: "desk", Seat: synthetic("scroll", t.TempDir())}
	begin := func() {
		t.Helper()
		start(t, k, d, Request{Do: Film, Length: MostFilm})
		await(t, k, "desk", func(s Status) bool { return s.Frames > 0 })
	}
	left := func(what string) {
		t.Helper()
		all, err := os.ReadDir(filepath.Join(k.Store.Root(), "runs"))
		if err != nil || len(all) != 0 {
			t.Errorf("%s left %v, %v", what, all, err)
		}
	}
	begin()
	if _, err := k.End("desk", false); err != nil {
		t.Fatal(err)
	}
	if s := ended(t, k, "desk"); s.State != Stopped || s.Run != "" {
		t.Errorf("a film that was cancelled is %+v", s)
	}
	left("a film that was cancelled")
	begin()
	if _, err := k.End("desk", true); err != nil {
		t.Fatal(err)
	}
	s := ended(t, k, "desk")
	if s.State != Done || s.Run == "" || k.Store.Remove(s.Run) != nil {
		t.Errorf("a film that was to be kept is %+v", s)
	}
	if _, err := k.Trigger("desk"); err == nil {
		t.Error("a film that is over was triggered")
	}
	start(t, k, d, Request{Do: Film, PreRoll: time.Second})
	await(t, k, "desk", func(s Status) bool { return s.State == Waiting })
	if _, err := k.End("desk", true); err != nil {
		t.Fatal(err)
	}
	if s := ended(t, k, "desk"); s.State != Failed || !strings.Contains(s.Error, "there was no trigger") {
		t.Errorf("a film without a trigger is %+v", s)
	}
	begin()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if s, _ := k.Of("desk"); s.State != Stopped {
		t.Errorf("a film whose service ends is %+v", s)
	}
	left("the end of the service")
	if _, err := k.Start(d, Request{Do: Noise}, "ben"); !errors.Is(err, errClosed) {
		t.Errorf("an errand after the end: %v", err)
	}
}

// TestKilled: a process that is killed while it films leaves no film in the list, and its rest is removed.
func TestKilled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), filmProcess+"="+root)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = testlab.Start(t, cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "filming <nil>\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	rest, _ := filepath.Glob(filepath.Join(root, "runs", ".new-*"))
	if len(rest) != 1 {
		t.Fatalf("the process left %v; want half a film", rest)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(rest[0], old, old); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if runs, err := s.Runs(t.Context(), "", 0); err != nil || len(runs) != 0 {
		t.Errorf("the list has %v, %v", runs, err)
	}
	if all, err := os.ReadDir(filepath.Join(root, "runs")); err != nil || len(all) != 0 {
		t.Errorf("the folder has %v, %v", all, err)
	}
}

// TestRefuses: what cannot be carried out is refused before the device is taken.
func TestRefuses(t *testing.T) {
	k := newKeeper(t)
	d := Device{Name: "desk", Seat: synthetic("static", t.TempDir())}
	for _, r := range []Request{
		{Do: "dance"}, {Do: Film, Length: time.Hour}, {Do: Film, Length: time.Millisecond}, {Do: Film, PreRoll: time.Hour}, {Do: Film, PreRoll: -1},
		{Do: Record, PreRoll: 1}, {Do: Noise, Length: time.Second},
	} {
		var refused *RefusedError
		if _, err := k.Start(d, r, "anna"); !errors.As(err, &refused) {
			t.Errorf("Start(%+v) = %v; want it refused", r, err)
		}
	}
	back, err := d.Seat.Take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer back()
	k.Room = func() error { return errors.New("the disk is full") }
	born := Device{Name: "virtual", Seat: &seat.Seat{}}
	for _, c := range []struct {
		d    Device
		do   string
		want string
	}{
		{d, Noise, "a run uses the device"}, {d, Film, "the disk is full"}, {d, Record, "a network in runs only"}, {d, Qualify, "no screen of this machine"},
		{born, Film, "a screen while a run uses it"}, {born, Noise, "a screen while a run uses it"},
	} {
		if _, err := k.Start(c.d, Request{Do: c.do}, "anna"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v; want %q", c.do, c.d.Name, err, c.want)
		}
	}
	if _, err := k.Of("desk"); !errors.Is(err, ErrNone) {
		t.Errorf("Of() of a device of which nothing was asked = %v", err)
	}
}

// TestNoise: a screen with noise tells its floor, an exact one that it has none, and one that moves is no still screen.
func TestNoise(t *testing.T) {
	t.Parallel()
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "320x200x24")
	k := newKeeper(t)
	cases := []struct {
		name, source, through string
		ok                    func(Status) bool
	}{
		{"exact", "x11:" + server.Display, "", func(s Status) bool { return s.Noise != nil && s.Noise.Exact() && s.Noise.Sees == "1 pixel by 1 of 255" }},
		{"noisy", "x11:" + server.Display, "noise=2", func(s Status) bool { return s.Noise != nil && s.Noise.Pixel >= 2 && !s.Noise.TooNoisy }},
		{"mjpeg", "x11:" + server.Display, "noise=2,mjpeg=80", func(s Status) bool { return s.Noise != nil && !s.Noise.Exact() }},
		{"small", "synthetic:static", "", func(s Status) bool { return s.Noise != nil && s.Noise.Exact() && strings.Contains(s.Note, "left out") }},
		{"moving", "synthetic:noise", "", func(s Status) bool { return s.State == Failed && strings.Contains(s.Error, "did not stand still") }},
	}
	for _, c := range cases {
		place := &seat.Seat{Live: t.TempDir(), Open: func() (seat.Parts, error) {
			small := lab.Format{Width: 320, Height: 200, Rate: 60}
			return seat.Parts{Screen: source.Options{Name: c.source, Through: c.through, Format: small}}, nil
		}}
		start(t, k, Device{Name: c.name, Seat: place}, Request{Do: Noise})
	}
	for _, c := range cases { // all at once: each takes a second
		if s := ended(t, k, c.name); !c.ok(s) {
			t.Errorf("%s: %+v, noise %+v", c.name, s, s.Noise)
		}
	}
}

// TestQualification: a grabber that is its own screen is qualified, and the report has its numbers and pictures.
func TestQualification(t *testing.T) {
	t.Parallel()
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "320x200x24")
	k := newKeeper(t)
	place := &seat.Seat{Live: t.TempDir(), Open: func() (seat.Parts, error) {
		return seat.Parts{Screen: source.Options{Name: "x11:" + server.Display}}, nil
	}}
	start(t, k, Device{Name: "desk", Seat: place, Display: server.Display}, Request{Do: Qualify, Length: time.Second})
	s := ended(t, k, "desk")
	if s.State != Done || s.Run == "" {
		t.Fatalf("the qualification ended as %+v", s)
	}
	dir := filepath.Join(k.Store.Root(), "runs", s.Run)
	text, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(text), "every pixel is as it was shown") || !strings.Contains(string(text), s.Note) {
		t.Errorf("the report: %s, %v", text, err)
	}
	var r qualify.Report
	data, err := os.ReadFile(filepath.Join(dir, reportData))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || !r.Fidelity.Lossless || r.Shown < 2 {
		t.Errorf("the numbers: %+v, %v", r, err)
	}
	for _, name := range []string{shownFile, arrivedFile, differentFile} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(f)
		if err != nil || img.Bounds().Dx() != 320 {
			t.Errorf("%s: %v, %v", name, img.Bounds(), err)
		}
		_ = f.Close()
	}
	run, err := k.Store.Run(s.Run)
	if err != nil || run.Kind != lab.KindQualification || len(run.Trials) != 0 {
		t.Errorf("the run is %+v, %v", run, err)
	}
}

// TestQualificationByBrowser: without a display of this machine that the grabber sees, the device's own browser shows the
// pictures, on a page of the box, as soon as that has the grabber's size.
func TestQualificationByBrowser(t *testing.T) {
	t.Parallel()
	const width, height = 800, 600 // of the page; Chromium has a pixel more or less without a window manager
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", fmt.Sprintf("%dx%dx24", width, height))
	browser := testlab.NeedProgram(t, "firefox-esr", "firefox")
	k := newKeeper(t)
	place := &seat.Seat{Live: t.TempDir(), Open: func() (seat.Parts, error) {
		return seat.Parts{Screen: source.Options{Name: "x11:" + server.Display}}, nil
	}}
	d := Device{Name: "desk", Seat: place, Pictures: &Pictures{}}
	box := httptest.NewServer(d.Pictures.Before(http.NotFoundHandler()))
	defer box.Close()
	get := func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(box.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if status, text := get("/pictures/next?width=800&height=600&shown=0"); status != http.StatusNotFound || !strings.Contains(text, "begin one") {
		t.Errorf("without a qualification the page gets %d %q", status, text)
	}
	start(t, k, d, Request{Do: Qualify, Length: time.Second})
	if s := await(t, k, "desk", func(s Status) bool { return strings.Contains(s.Doing, "http://box.test/pictures") }); s.State != Waiting {
		t.Fatalf("before anybody opened the page the qualification is %+v", s)
	}
	if _, err := k.Trigger("desk"); err == nil {
		t.Error("a qualification has a trigger")
	}
	get("/pictures/next?width=640&height=480&shown=0")
	if s := await(t, k, "desk", func(s Status) bool { return strings.Contains(s.Doing, "640 × 480") }); s.State != Waiting {
		t.Fatalf("with a page of another size the qualification is %+v", s)
	}
	for _, bad := range []string{"", "?width=1&height=1", "?width=-1&height=1&shown=0", "?width=99999&height=1&shown=0", "?width=1&height=1&shown=x"} {
		if status, _ := get("/pictures/next" + bad); status != http.StatusBadRequest {
			t.Errorf("%q: %d; want 400", bad, status)
		}
	}
	xtest.Browser(t, server.Display, browser, box.URL+PicturesPath)
	s := ended(t, k, "desk")
	if s.State != Done || s.Run == "" {
		t.Fatalf("the qualification ended as %+v", s)
	}
	text, err := os.ReadFile(filepath.Join(k.Store.Root(), "runs", s.Run, "report.html"))
	if err != nil || !strings.Contains(string(text), "every pixel is as it was shown") {
		t.Errorf("the report: %s, %v", text, err)
	}
}

// TestRecord: what a device asks its network for becomes a recording when somebody says stop, and none if nobody asked
// for anything.
func TestRecord(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer origin.Close()
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	network, err := netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("127.0.0.1"), ProxyAddr: "127.0.0.1:0", CA: authority, Clock: lab.Monotonic,
		Upstream: &proxy.UpstreamConfig{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, origin.Listener.Addr().String())
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	k := newKeeper(t)
	held := 0
	d := Device{Name: "a desk/2", Seat: &seat.Seat{}, Hold: func() (*netlab.Network, func(), error) {
		held++
		return network, func() { held-- }, nil
	}}
	start(t, k, d, Request{Do: Record})
	working := func(s Status) bool { return s.State == Working && s.Doing == "recording" }
	await(t, k, d.Name, working)
	through := &url.URL{Scheme: "http", Host: network.Addrs().Proxy.String()}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through), DisableKeepAlives: true}}
	answer, err := client.Get("http://203.0.113.1/page")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(answer.Body); err != nil || string(b) != "hello" {
		t.Fatalf("the device got %s: %q, %v", answer.Status, b, err)
	}
	_ = answer.Body.Close()
	if _, err := k.End(d.Name, true); err != nil {
		t.Fatal(err)
	}
	s := ended(t, k, d.Name)
	if s.State != Done || s.Requests != 1 || !strings.HasSuffix(s.Recording, "-a-desk-2.wacz") || held != 0 {
		t.Fatalf("the recording ended as %+v, and the network is held %d times", s, held)
	}
	a, err := archive.Open(filepath.Join(string(k.Recordings.(folder)), s.Recording))
	if err != nil || a.Info().Exchanges != 1 {
		t.Errorf("the recording: %+v, %v", a, err)
	}
	start(t, k, d, Request{Do: Record})
	await(t, k, d.Name, working)
	if _, err := k.End(d.Name, true); err != nil {
		t.Fatal(err)
	}
	if s := ended(t, k, d.Name); s.State != Failed || !strings.Contains(s.Error, "nothing is kept") {
		t.Errorf("a recording of nothing ended as %+v", s)
	}
	all, err := os.ReadDir(string(k.Recordings.(folder)))
	if err != nil || len(all) != 1 {
		t.Errorf("the recordings are %v, %v; want the first alone", all, err)
	}
}

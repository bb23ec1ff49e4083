package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/control/ch9329"
	"eidetic/control/ch9329/chiptest"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/netlab/nstest"
)

// village is a box between a device and a site, each in a network namespace.
type village struct {
	box, device, site *nstest.Namespace
	data, config      string
	origin            *exec.Cmd
	service           *exec.Cmd
	panel             *storytest.Panel
}

// boxAddress is the box's on its uplink.
const boxAddress = "203.0.113.2"

func newVillage(t *testing.T) *village { return newVillageOf(t, "{name: laptop, port: dev0}") }

// newVillageOf has a device of that configuration.
func newVillageOf(t *testing.T, device string) *village {
	t.Helper()
	v := &village{box: nstest.Here(t), device: nstest.New(t), site: nstest.New(t), data: t.TempDir()}
	nstest.Veth(t, v.box, "up0", v.site, "eth0")
	nstest.Veth(t, v.box, "dev0", v.device, "eth0")
	// The site is behind a router: what is in the box's own network is closed to pages.
	v.box.Address(t, "up0", boxAddress+"/30")
	v.site.Address(t, "eth0", "203.0.113.1/24")
	v.box.Default(t, "203.0.113.1")
	for address := range addresses() {
		v.site.Address(t, "eth0", address+"/24")
	}
	roots := filepath.Join(v.data, "origins.pem")
	v.origin = appliance(t, "site", "--ca-out", roots)
	v.start(t, v.site, v.origin, "ready")
	v.config = filepath.Join(v.data, "box.yaml")
	text := fmt.Sprintf("panel: {listen: '%s:8080'}\nnetwork: {resolver: '%s', trust: %s}\ndevices: [%s]\n",
		boxAddress, samplesite.Resolver(), roots, device)
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v.serve(t)
	return v
}

func addresses() map[string]bool {
	all := map[string]bool{samplesite.Resolver().Addr().String(): true}
	for _, a := range samplesite.Hosts() {
		all[a.String()] = true
	}
	return all
}

// start runs a command in a namespace, waits for a line that begins with
// ready, and ends it with the test.
func (v *village) start(t *testing.T, at *nstest.Namespace, cmd *exec.Cmd, ready string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := at.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended, which is what is wanted
		_ = cmd.Wait()
		read.Close()
	})
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ready) {
			return
		}
	}
	t.Fatalf("%v ended without saying %q", cmd.Args, ready)
}

// serve starts the box's service and finds its token, as a person does.
func (v *village) serve(t *testing.T) {
	t.Helper()
	v.service = appliance(t, "serve", "--config", v.config, "--data", v.data)
	v.start(t, v.box, v.service, "The panel is at")
	token, err := os.ReadFile(filepath.Join(v.data, "token"))
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = v.site.Do(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	v.panel = &storytest.Panel{
		URL: "https://" + boxAddress + ":8080", Token: strings.TrimSpace(string(token)),
		Client: &http.Client{Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate is the box's own; other tests pin it
		}},
	}
}

// leave takes the site away: nobody is there any more who could be asked.
func (v *village) leave(t *testing.T) {
	t.Helper()
	_ = v.origin.Process.Kill()
	_ = v.origin.Wait() // killed
}

// TestStory is the box's main job, as its user meets it: over REST alone, with
// a device that is plugged in, and a box that is killed in the middle of a run.
func TestStory(t *testing.T) {
	testlab.Long(t, "the booted box tells the same story")
	needLab(t)
	storytest.NeedDevice(t)
	if !nstest.Inside(t) {
		return
	}
	v := newVillage(t)
	laptop := storytest.Plug(t, v.device, "eth0", 1024, 600)
	story := storytest.Story{
		Panel: v.panel, Page: samplesite.Home, Leave: func() { v.leave(t) },
		Trials: 2, Still: 1500 * time.Millisecond, Limit: time.Minute, Patience: 3 * testlab.Hang,
	}
	recorded, _ := story.Tell(t)
	if dir := os.Getenv("PANEL_SHOTS"); dir != "" {
		takePictures(t, v.panel, dir)
	}

	// Killed in its second trial: the service that follows goes on with the run, whose first
	// trial stays, and then does the run that waited.
	request := map[string]any{"page": samplesite.Home, "archive": recorded, "trials": 3}
	cut := v.panel.Start(t, request)
	// It is a journey, whose keys and mouse are a serial chip's.
	request["trials"], request["controls"] = 1, map[string]any{"ch9329": serialCable(t, laptop), "screen": "1920x1080"}
	request["steps"] = []map[string]any{{"open": samplesite.Home}, {"move": "30%,40%"}, {"name": "select", "key": "Ctrl+A"}}
	waits := v.panel.Start(t, request)
	v.panel.Follow(t, cut, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial == 2 })
	if err := v.service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = v.service.Wait() // killed
	v.serve(t)
	v.panel.Follow(t, cut, 3*testlab.Hang, nil)
	run := v.panel.Run(t, cut)
	if run.State != "done" && !slices.ContainsFunc(run.Trials, slowed) || len(run.Trials) < 3 || run.Trials[0].Misses != 0 ||
		len(run.Resumed) != 1 || run.Resumed[0].Trials != 1 {
		t.Fatalf("the run that was cut is %s with %d trials, resumed %+v: %s", run.State, len(run.Trials), run.Resumed, run.Error)
	}
	if run.Trials[0].Files["video"] == "" && slowed(run.Trials[0]) {
		t.Logf("the first trial has no video: %q", run.Trials[0].Invalid)
	} else if film := v.panel.Artifact(t, cut, "trials/001/evidence.webm"); len(film) < 20_000 {
		t.Errorf("the first trial's video has %d bytes", len(film))
	}
	v.panel.Follow(t, waits, 3*testlab.Hang, nil)
	run = v.panel.Run(t, waits)
	if len(run.Trials) < 1 || run.Trials[0].Misses != 0 || run.Trials[0].Ended != lab.EndSteps && !slowed(run.Trials[0]) {
		t.Fatalf("the run that waited is %s with %d trials: %s", run.State, len(run.Trials), run.Error)
	}
	if got := run.Trials[0].Capture.Source; !strings.HasPrefix(run.Environment.Controls, "ch9329:") || got == nil ||
		!strings.HasPrefix(got.Name, "rfb:") || got.Width != 1024 {
		t.Errorf("the run names the controls %q and the screen %+v; want the serial chip and VNC", run.Environment.Controls, got)
	}
}

// serialCable is a CH9329 between the box and the laptop; the file of its serial port is returned.
func serialCable(t *testing.T, laptop *storytest.Device) string {
	t.Helper()
	chip := chiptest.New(t, ch9329.Fast, hidtest.NewHost(t, laptop.Display(), ""))
	file := fmt.Sprintf("/dev/ttyUSB-story-%d", os.Getpid())
	if err := os.Symlink(chip.Path, file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	return file
}

// takePictures shows the panel, and the laptop's page, to a browser, and keeps what they look like for the documentation
// (make pictures).
func takePictures(t *testing.T, p *storytest.Panel, dir string) {
	t.Helper()
	b := reporttest.NewBrowser(t)
	err := errors.Join(b.TakeAny(), b.View(1100, 760, "light"), b.Open(p.URL+"/"))
	if err == nil {
		_, err = reporttest.Eval[bool](b, fmt.Sprintf(`(async () => {
			await fetch("/api/v1/session", {method: "POST", body: %q});
			location.reload();
			return true;
		})()`, p.Token))
	}
	for _, page := range []struct {
		name, path, ready string
		tall              int64
	}{
		{"panel", "/", `document.querySelectorAll("#devices li").length && document.querySelectorAll(".run").length`, 760},
		{"device", "/device?name=laptop", `document.querySelector("#ready a") && !document.getElementById("screen").hidden`, 1400},
	} {
		var shot []byte
		if err == nil {
			err = errors.Join(b.View(1100, page.tall, "light"), b.Open(p.URL+page.path))
		}
		if err == nil {
			_, err = reporttest.Eval[bool](b, `new Promise(yes => { const ask = () => `+page.ready+` ? yes(true) : setTimeout(ask, 50); ask(); })`)
		}
		if err == nil {
			shot, err = b.Shot()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, page.name+".png"), shot, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

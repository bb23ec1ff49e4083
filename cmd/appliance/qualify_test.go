package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/qualify"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/rigs/testlab"
)

// TestQualify: the command on a screen that is its own grabber. A busy machine
// may lose frames, so both verdicts are in order; altered pixels are not.
func TestQualify(t *testing.T) {
	server := rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "320x200")
	args := []string{"capture", "qualify", "--screen", server.Display, "--duration", "1s", "--show-rate", "10"}
	got := finishCmd(t, appliance(t, append(args, "--source", "rfb:"+server.Address, "--json")...))
	var r qualify.Report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v: %q %q", err, got.out, got.err)
	}
	if !r.Fidelity.Lossless || r.Shown < 2 || r.Good != (got.status == exitGood) || !r.Good && got.status != exitFailed {
		t.Errorf("status %d, said %q, %+v", got.status, got.err, r)
	}
	got = finishCmd(t, appliance(t, append(args, "--source", "x11:"+server.Display)...))
	if !strings.Contains(got.out, "lossless: every pixel is as it was shown") {
		t.Errorf("status %d, said %q %q", got.status, got.out, got.err)
	}
	got = finishCmd(t, appliance(t, append(args, "--source", "synthetic:load", "--size", "640x480")...))
	if got.status != exitCannot || !strings.Contains(got.err, "set the screen to the grabber's size") {
		t.Errorf("another size: status %d, said %q", got.status, got.err)
	}
}

// TestFilmVNC: the short form of the command, a password from a file.
func TestFilmVNC(t *testing.T) {
	server := rfbtest.New(t, rfbtest.Config{Password: "sesame"})
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte("sesame\r\nnothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"capture", "--source", "rfb:" + server.Addr(), "--duration", "300ms", "--json", "--out"}
	got := finishCmd(t, appliance(t, append(args, filepath.Join(dir, "a.reel"), "--password-file", file)...))
	if !strings.Contains(got.out, `"frames"`) {
		t.Errorf("status %d, said %q %q", got.status, got.out, got.err)
	}
	got = finishCmd(t, appliance(t, append(args, filepath.Join(dir, "b.reel"))...))
	if got.status != exitCannot || !strings.Contains(got.err, "asks for a password") {
		t.Errorf("without a password: status %d, said %q", got.status, got.err)
	}
}

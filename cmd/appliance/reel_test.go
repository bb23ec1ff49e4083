package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// invoke runs the command line and returns its status and output.
func invoke(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(context.Background(), args, &streams{strings.NewReader(""), &out, &errs})
	return status, out.String(), errs.String()
}

func TestCaptureAndReelCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "screen.reel")
	if status, _, errs := invoke(t, "capture", "--source", "synthetic:load", "--size", "320x200", "--out", file, "--duration", "300ms"); status != exitGood {
		t.Fatalf("capture: status %d: %s", status, errs)
	}
	status, out, errs := invoke(t, "reel", "info", "--json", file)
	var info struct {
		Frames, Lost int
		Format       struct{ Width int }
	}
	if err := json.Unmarshal([]byte(out), &info); err != nil || status != exitGood || info.Frames < 10 || info.Lost != 0 ||
		info.Format.Width != 320 {
		t.Errorf("info: status %d, %v: %s%s", status, err, out, errs)
	}
	if status, out, _ := invoke(t, "reel", "verify", file); status != exitGood || !strings.Contains(out, "0 lost") {
		t.Errorf("verify: status %d: %s", status, out)
	}
	if status, out, _ := invoke(t, "reel", "frames", "--changed", file); status != exitGood || !strings.Contains(out, "320x200+0+0") {
		t.Errorf("frames: status %d: %s", status, out)
	}
	if status, _, errs := invoke(t, "reel", "export", file, "--out", filepath.Join(dir, "f.png"), "--frame", "3"); status != exitGood {
		t.Errorf("export: status %d: %s", status, errs)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	damaged := filepath.Join(dir, "damaged.reel")
	if err := os.WriteFile(damaged, content, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"analyze", damaged}, {"analyze", file, damaged}, {"reel", "export", damaged, "--out", filepath.Join(dir, "damaged.y4m")}} {
		status, _, errs := invoke(t, args...)
		if want := damaged + " is damaged"; status != exitUsage || !strings.Contains(errs, want) || !strings.Contains(errs, "reel recover") {
			t.Errorf("%v: status %d: %s; want %q, and what helps", args, status, errs, want)
		}
	}

	film := filepath.Join(dir, "film.y4m")
	if err := os.WriteFile(film, []byte("YUV4MPEG2 W4 H2 F30:1\n"+strings.Repeat("FRAME\nabcdefghUuVv", 500)), 0o644); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "film.reel")
	if status, out, errs := invoke(t, "capture", "--source", "file:"+film, "--out", copied); status != exitGood ||
		!strings.Contains(out, "500 frames") {
		t.Errorf("capture of a film: status %d: %s%s", status, out, errs)
	}
	for _, args := range [][]string{{"--heat"}, {"--strip"}, {"--beside", file}, {"--difference", file, "--frame", "2"}, {"--timestamps", "--start", "1"}, {"--crop", "100x50+10+10"}} {
		out := filepath.Join(dir, "export.png")
		if status, _, errs := invoke(t, append([]string{"reel", "export", file, "--out", out}, args...)...); status != exitGood {
			t.Errorf("export %v: status %d: %s", args, status, errs)
		}
	}

	// A film that goes out as Y4M and comes in again is the same, sample by sample.
	again, back := filepath.Join(dir, "again.y4m"), filepath.Join(dir, "again.reel")
	if status, _, errs := invoke(t, "reel", "export", copied, "--out", again); status != exitGood {
		t.Errorf("export of Y4M: status %d: %s", status, errs)
	}
	if status, _, errs := invoke(t, "capture", "--source", "file:"+again, "--out", back); status != exitGood {
		t.Errorf("capture of it: status %d: %s", status, errs)
	}
	_, first, _ := invoke(t, "reel", "frames", copied)
	if _, second, _ := invoke(t, "reel", "frames", back); first != second ||
		!strings.Contains(first, "1x1+0+0") && !strings.Contains(first, "4x2+0+0") {
		t.Errorf("the film was\n%.300s\nand is\n%.300s", first, second)
	}

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.reel")
	if err := os.WriteFile(cut, data[:len(data)*2/3], 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := invoke(t, "reel", "verify", cut); status != exitFailed || !strings.Contains(out, "byte ") {
		t.Errorf("verify of a cut-off reel: status %d: %s%s", status, out, errs)
	}
	saved := filepath.Join(dir, "saved.reel")
	if status, _, errs := invoke(t, "reel", "recover", cut, "--out", saved); status != exitGood {
		t.Errorf("recover: status %d: %s", status, errs)
	}
	if status, _, _ := invoke(t, "reel", "verify", saved); status != exitGood {
		t.Errorf("verify of the saved reel: status %d", status)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"reel", "info", "nothing"}, exitUsage, "no such file"},
		{[]string{"reel", "info", os.Args[0]}, exitUsage, "this is not a reel"},
		{[]string{"reel", "recover", cut, "--out", saved}, exitUsage, "file exists"},
		{[]string{"reel", "export", file, "--out", "x.gif"}, exitUsage, "must end in .webm, .y4m or .png"},
		{[]string{"reel", "export", file, "--out", "x.png", "--crop", "1"}, exitUsage, "WIDTHxHEIGHT+X+Y"},
		{[]string{"reel", "export", file, "--out", "x.png", "--beside", file, "--difference", file}, exitUsage, "choose one"},
		{[]string{"reel", "export", file, "--out", "x.png", "--start", "9999"}, exitUsage, "--start 9999"},
		{[]string{"reel", "export", file, "--out", "x.png", "--difference", copied}, exitUsage, "pictures of"},
		{[]string{"capture", "--source", "x11::59999", "--out", "x.reel"}, exitCannot, "connect to display :59999"},
		{[]string{"reel", "export", file, "--out", "x.png", "--frame", "9999"}, exitUsage, "frame 9999 is not among"},
		{[]string{"capture", "--source", "pipe:1", "--out", "x.reel"}, exitUsage, "--source: a source must be"},
	} {
		if status, _, errs := invoke(t, c.args...); status != c.status || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, errs)
		}
	}
}

func TestCaptureIntoMemoryAndBehindAPreRoll(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full.reel")
	status, out, errs := invoke(t, "capture", "--source", "synthetic:noise", "--size", "320x200", "--memory", "1", "--out", full)
	if status != exitFailed || !strings.Contains(errs, "memory set aside for the recording is full") ||
		!strings.Contains(out, "frames in") {
		t.Errorf("full memory: status %d: %s%s", status, out, errs)
	}
	if status, out, errs := invoke(t, "reel", "verify", full); status != exitGood {
		t.Errorf("the reel from memory: status %d: %s%s", status, out, errs)
	}

	kept := filepath.Join(dir, "kept.reel")
	args := []string{
		"capture",
		"--source",
		"synthetic:scroll",
		"--size",
		"320x200",
		"--duration",
		"400ms",
		"--pre-roll",
		"5s",
		"--out",
		kept,
	}
	if status, _, errs := invoke(t, args...); status != exitFailed || !strings.Contains(errs, "there was no trigger") {
		t.Errorf("without a trigger: status %d: %s", status, errs)
	}
	var o, e bytes.Buffer
	if status := run(context.Background(), args, &streams{strings.NewReader("\n"), &o, &e}); status != exitGood ||
		!strings.Contains(e.String(), "recording") {
		t.Errorf("with a trigger: status %d: %s%s", status, o.String(), e.String())
	}
	if status, out, _ := invoke(t, "reel", "verify", kept); status != exitGood {
		t.Errorf("the reel with a pre-roll: status %d: %s", status, out)
	}
}

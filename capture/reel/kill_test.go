package reel_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

var killFormat = lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 60}

// TestMain is the child of TestKilledWriterLosesNothing when its variable is set.
func TestMain(m *testing.M) {
	if path := os.Getenv("EIDETIC_TEST_WRITE_REEL"); path != "" {
		fmt.Fprintln(os.Stderr, writeForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever writes frames and says after each how many there are.
func writeForever(path string) error {
	src, err := synthetic.New(synthetic.Options{Format: killFormat, Content: synthetic.Scroll})
	if err != nil {
		return err
	}
	w, err := reel.Create(path, reel.Header{Format: killFormat})
	if err != nil {
		return err
	}
	for {
		f, err := src.Next(context.Background())
		if err != nil {
			return err
		}
		if err := w.WriteFrame(f); err != nil {
			return err
		}
		fmt.Println(w.Frames())
	}
}

func TestKilledWriterLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "killed.reel")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "EIDETIC_TEST_WRITE_REEL="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	written := 0
	for lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &written); err != nil {
			t.Fatal(err)
		}
		if written == 200 {
			if err := child.Process.Kill(); err != nil { // SIGKILL
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // "signal: killed"

	saved := filepath.Join(t.TempDir(), "saved.reel")
	report, err := reel.Recover(path, saved)
	if err != nil {
		t.Fatal(err)
	}
	if report.Frames < written || len(report.Damage) != 1 {
		t.Errorf("%d frames were written, %d saved: %v", written, report.Frames, report.Damage)
	}
	r, err := reel.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	src, err := synthetic.New(synthetic.Options{Format: killFormat, Content: synthetic.Scroll})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Len() {
		want, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Pixels(i)
		if err != nil || !bytes.Equal(got, want.Pix) {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	if report, err := reel.Verify(saved); err != nil || !report.Good() {
		t.Errorf("the saved reel: %+v, %v", report, err)
	}
}

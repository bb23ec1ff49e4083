package samplesite

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestSuiteVideos: each video has as many pictures a second as its name says, for 2 s.
func TestSuiteVideos(t *testing.T) {
	probe := testlab.NeedProgram(t, "ffprobe")
	c := start(t, Options{Think: noThink}).client(t)
	for _, rate := range []int{24, 30, 60} {
		resp, body := ask(t, c, "GET", fmt.Sprintf("%svideo-%d.webm", Suite, rate), nil)
		cmd := exec.CommandContext(t.Context(), probe, "-v", "error", "-count_frames",
			"-show_entries", "stream=codec_name,avg_frame_rate,nb_read_frames", "-of", "csv=p=0", "-")
		cmd.Stdin = bytes.NewReader(body)
		out, err := cmd.CombinedOutput()
		kind, got, want := resp.Header.Get("Content-Type"), strings.TrimSpace(string(out)), fmt.Sprintf("vp8,%d/1,%d", rate, 2*rate)
		if err != nil || got != want || kind != "video/webm" {
			t.Errorf("video of %d: %s, %s, %v; want %s, video/webm", rate, got, kind, err, want)
		}
	}
}

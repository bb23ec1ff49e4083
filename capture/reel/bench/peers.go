package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"eidetic/internal/lab"
)

// codecs are those lossless codecs of ffmpeg that are fast enough for live pictures.
var codecs = []struct {
	name string
	args []string
	yuv  bool // can do YUYV without changing it
}{
	{"utvideo", []string{"-c:v", "utvideo", "-pred", "median"}, true},
	{"magicyuv", []string{"-c:v", "magicyuv"}, true},
	{"ffvhuff", []string{"-c:v", "ffvhuff"}, true},
	{"ffv1", []string{"-c:v", "ffv1"}, true},
	{"qtrle", []string{"-c:v", "qtrle"}, false},
	{"x264", []string{"-c:v", "libx264rgb", "-preset", "ultrafast", "-qp", "0"}, false},
}

// patience bounds the runs of one codec on one class: a slow codec runs once.
const patience = 2 * time.Second

// ffmpeg encodes the frames with each codec, on one thread, from a raw file in
// memory to a file in memory. The time is the processor time of the command, less
// that of one that only reads, so that starting and reading do not count
// against it; of three runs, or of as many as begin within patience, the best.
func ffmpeg(f lab.Format, pix [][]byte) ([]measured, error) {
	program, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, fmt.Errorf("ffmpeg is missing (apt-get install ffmpeg), or use -peers=false")
	}
	dir, err := os.MkdirTemp("/dev/shm", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	raw := filepath.Join(dir, "raw")
	file, err := os.Create(raw)
	if err != nil {
		return nil, err
	}
	for _, p := range pix {
		if _, err := file.Write(p); err != nil {
			file.Close()
			return nil, err
		}
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	format := map[lab.PixelFormat]string{lab.BGRX: "bgr0", lab.YUYV: "yuyv422"}[f.Pixels]
	input := []string{"-v", "error", "-threads", "1", "-f", "rawvideo", "-pix_fmt", format,
		"-s", fmt.Sprintf("%dx%d", f.Width, f.Height), "-r", "60", "-i", raw}
	encode := func(out string, args ...string) (time.Duration, error) {
		all := append(append([]string{}, input...), args...)
		all = append(all, "-threads", "1", "-y", filepath.Join(dir, out))
		best, begun := time.Hour, time.Now()
		for n := 0; n == 0 || n < 3 && time.Since(begun) < patience; n++ {
			cmd := exec.Command(program, all...)
			if b, err := cmd.CombinedOutput(); err != nil {
				return 0, fmt.Errorf("ffmpeg %v: %w: %s", args, err, b)
			}
			best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		return best, nil
	}
	base, err := encode("null", "-f", "null", "-c:v", "copy")
	if err != nil {
		return nil, err
	}
	var list []measured
	for _, c := range codecs {
		if f.Pixels != lab.BGRX && !c.yuv {
			continue
		}
		took, err := encode("out.mkv", append(c.args, "-f", "matroska")...)
		if err != nil {
			took, err = encode("out.mov", append(c.args, "-f", "mov")...)
		}
		if err != nil {
			return nil, err
		}
		var size int64
		for _, name := range []string{"out.mkv", "out.mov"} {
			if st, err := os.Stat(filepath.Join(dir, name)); err == nil {
				size = max(size, st.Size())
				os.Remove(filepath.Join(dir, name))
			}
		}
		bytes := float64(len(pix) * f.FrameSize())
		list = append(list, measured{codec: c.name, threads: 1, speed: bytes / 1e6 / max(1e-3, (took-base).Seconds()),
			ratio: bytes / float64(size)})
	}
	return list, nil
}

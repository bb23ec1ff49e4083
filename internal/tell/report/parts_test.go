package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"eidetic/internal/lab"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{1512.4, "ms", "1\u202f512"}, {0, "ms", "0"}, {-0.0001, "", "0.000"}, {-1234567, "", "−1\u202f234\u202f567"},
		{33.4, "ms", "33"}, {4.25, "ms", "4.25"}, {21.55, "frames/s", "21.6"}, {0.69, "", "0.69"}, {0.012, "", "0.012"},
		{math.NaN(), "ms", "–"}, {math.Inf(1), "ms", "–"},
	} {
		if got := number(c.v, c.unit); got != c.want {
			t.Errorf("number(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestCurveDropsOnlyRepeats(t *testing.T) {
	trial := &lab.Trial{
		Number: 1, StartFrame: 10, FrameTimes: []float64{0, 16, 33, 50, 66},
		LoadHistogram: []float64{5, 5, 80, 80, 80}, VisualProgress: []float64{0, 0, 70, 100, 100},
	}
	got, ok := curveOf(trial)
	want := curve{Number: 1, Frames: []int{10, 12, 13, 14}, Times: []float64{0, 33, 50, 66}, Load: []float64{5, 80, 80, 80},
		Visual: []float64{0, 70, 100, 100}}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Error(diff)
	}
}

// at evaluates a step function.
func (s steps) at(x float64) float64 {
	v := s.Values[0]
	for i, from := range s.Times {
		if from <= x {
			v = s.Values[i]
		}
	}
	return v
}

func TestMedianCurve(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var curves []steps
		for range rapid.IntRange(1, 6).Draw(r, "curves") {
			var c steps
			at := 0.0
			for range rapid.IntRange(1, 12).Draw(r, "steps") {
				c.Times = append(c.Times, at)
				c.Values = append(c.Values, float64(rapid.IntRange(0, 100).Draw(r, "value")))
				at += float64(rapid.IntRange(1, 20).Draw(r, "gap"))
			}
			curves = append(curves, c)
		}
		got := medianCurve(curves)
		for x := 0.0; x < 260; x++ {
			var v []float64
			for _, c := range curves {
				v = insert(v, c.at(x))
			}
			want := round3((v[(len(v)-1)/2] + v[len(v)/2]) / 2)
			if got.at(x) != want {
				r.Fatalf("value at %v = %v; want %v", x, got.at(x), want)
			}
		}
	})
}

func TestReach(t *testing.T) {
	s := steps{Times: []float64{0, 10, 20, 30}, Values: []float64{0, 60, 40, 90}}
	for level, want := range map[float64]float64{50: 30, 40: 10, 90: 30} {
		if got, ok := s.reach(level); !ok || got != want {
			t.Errorf("reach(%v) = %v, %v, want %v", level, got, ok, want)
		}
	}
	if _, ok := s.reach(91); ok {
		t.Error("reach(91) = true; want false")
	}
}

func TestNiceScale(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(r, "low")
		high := low + rapid.Float64Range(0, 1e6).Draw(r, "width")
		from, to, ticks := niceScale(low, high)
		if !(from <= low && to >= high && from < to) || len(ticks) < 2 || len(ticks) > 12 {
			r.Fatalf("niceScale(%v, %v) = %v, %v, %v", low, high, from, to, ticks)
		}
	})
}

// Artifacts outside the trial's folder, or that are not regular files, are not linked.
func TestArtifactsStayInside(t *testing.T) {
	dir := t.TempDir()
	trial := filepath.Join(dir, "trials", "001")
	if err := os.MkdirAll(filepath.Join(trial, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(trial, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(trial, "a #?.webm"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"link", "folder", "../../../etc/passwd", "/etc/passwd", "missing", ""} {
		if a := artifactOf(root, &lab.Trial{Number: 1, Files: map[string]string{"video": name}}, "video"); a != nil {
			t.Errorf("%q is linked as %s", name, a.URL)
		}
	}
	a := artifactOf(root, &lab.Trial{Number: 1, Files: map[string]string{"video": "a #?.webm"}}, "video")
	if a == nil || a.URL != "trials/001/a%20%23%3F.webm" {
		t.Errorf("got %+v", a)
	}
}

func TestReplayLogDamage(t *testing.T) {
	dir := t.TempDir()
	trial := filepath.Join(dir, "trials", "001")
	if err := os.MkdirAll(trial, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const good = `{"time_ns":1000000,"method":"GET","url":"https://a/","stage":"exact","score":1,"status":200}` + "\n"
	for _, c := range []struct {
		name, content, note string
		rows                int
	}{
		{"whole", good + good, "", 2},
		{"cut off", good + `{"time_ns":`, "cut off", 1},
		{"damaged", good + "{]\n" + good, "damaged after 1 requests: line 2", 1},
		{"empty", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(trial, "replay.jsonl"), []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			var x texts
			log := serves(root, &lab.Trial{Number: 1, Files: map[string]string{"replay": "replay.jsonl"}}, 0, &x)
			if len(log.Rows) != c.rows || !strings.Contains(log.Note, c.note) || (c.note == "") != (log.Note == "") {
				t.Errorf("%d rows, note %q", len(log.Rows), log.Note)
			}
		})
	}
}

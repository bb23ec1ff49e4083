// Package reporttest generates runs for tests and for looking at reports: a realistic page
// load with its series, logs and pictures. Its input is a seed and a size; its output is
// a lab.Run and the artifacts of its trials. Only tests import it.
package reporttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/verdict"
)

// hosts of the page that the runs pretend to load.
func hosts() []string {
	return []string{"www.shop.example", "cdn.shop.example", "api.shop.example", "tags.adnet.example"}
}

// Run makes a run of n trials. If n is five or more, the last trial is invalid: it lost
// frames, and one request missed the archive.
func Run(seed uint64, n int) *lab.Run {
	rng := rand.New(rand.NewPCG(seed, 1))
	run := &lab.Run{
		ID: "20261121-091400-demo", Name: "demo", Wall: time.Date(2026, 11, 21, 9, 14, 0, 0, time.UTC), Elapsed: 141.2, State: "done",
		Page: "https://www.shop.example/",
		Archive: lab.ArchiveInfo{
			File: "shop.wacz", SHA256: hex.EncodeToString(make([]byte, 32)), Exchanges: 62, Bytes: 1_571_204, BodyBytes: 1_498_331,
			Hosts: hosts(), Protocols: []string{"h2", "http/1.1"},
		},
		Link: lab.Link{Name: "4g", BackEnd: "conn", RTT: 60 * time.Millisecond, Down: 9e6, Up: 3e6,
			Queue: lab.LinkQueue{Time: 100 * time.Millisecond}},
		Plan: lab.Plan{Trials: n, Timing: "recorded", Still: 1.5, Limit: 60, Seed: 1,
			Arm: lab.Arm{Page: "https://www.shop.example/", Link: "4g"}},
		Environment: lab.Environment{
			Appliance: "v0.1.0 (1a2b3c4)", Browser: "Chromium 142.0.7444.59", Screen: "1280×720 at 60 Hz, Xvfb, read by MIT-SHM",
			Host:    lab.Host{Kernel: "Linux 6.1.0-41-amd64", Processor: "AMD EPYC 7763", Cores: 2, MemoryBytes: 8 << 30},
			Network: &lab.NetworkState{CongestionControl: "cubic", Connections: 12},
		},
	}
	for i := 1; i <= n; i++ {
		t := Trial(rng, i)
		if n >= 5 && i == n {
			t.Valid, t.FramesLost, t.Misses = false, 14, 1
			t.Invalid = []string{"14 frames were lost between the screen and the recorder: the machine was too busy",
				"1 request missed the archive: GET https://tags.adnet.example/pixel?cb=81231"}
		}
		run.Trials = append(run.Trials, t)
	}
	run.Summary = Summarise(run.Trials)
	return run
}

// Compared makes a run with pairs of trials: a control on the link lte, and a treatment on
// 3g that is that much slower, in ms. The first trial is one of the treatment.
func Compared(seed uint64, pairs int, slower float64) *lab.Run {
	run := Run(seed, 0)
	run.ID, run.Name, run.Link.Name = "20261121-101400-links", "links", "lte"
	run.Plan.Trials, run.Plan.Link, run.Plan.Treatment = pairs, "lte", &lab.Arm{Page: run.Page, Link: "3g"}
	rng := rand.New(rand.NewPCG(seed, 3))
	for i := range 2 * pairs {
		t := delayed(rng, i+1, 0)
		if i%4 == 0 || i%4 == 3 {
			t = delayed(rng, i+1, slower)
			t.Arm = lab.Treatment
		}
		t.Block = 1 + i/10
		run.Trials = append(run.Trials, t)
	}
	Compare(run)
	return run
}

// Compare recomputes the summary and the comparison of a run.
func Compare(run *lab.Run) {
	run.Summary = nil
	for _, arm := range []string{lab.Control, lab.Treatment} {
		var trials []*lab.Trial
		for _, t := range run.Trials {
			if t.Arm == arm {
				trials = append(trials, t)
			}
		}
		for _, s := range Summarise(trials) {
			s.Arm = arm
			run.Summary = append(run.Summary, s)
		}
	}
	run.Comparison = verdict.Of(run, 1)
}

// Trial makes one trial.
func Trial(rng *rand.Rand, n int) *lab.Trial { return delayed(rng, n, 0) }

// delayed makes a trial that is slower than others by delay ms.
func delayed(rng *rand.Rand, n int, delay float64) *lab.Trial {
	const frame = 1000.0 / 60
	sum := sha256.Sum256([]byte("final"))
	t := &lab.Trial{
		Number: n, Arm: lab.Control, Page: "https://www.shop.example/", Wall: time.Date(2026, 11, 21, 9, 14+n, 0, 0, time.UTC),
		Ended: lab.EndStable, Valid: true, Requests: 62, FirstFrame: lab.Time(1e12), StartFrame: 68 + n,
		StartTime: lab.Time(1e12 + 1_150_000_000),
		ContentW:  1280, ContentH: 633, ContentY: 87, FinalFrame: hex.EncodeToString(sum[:]),
		Capture: &lab.CaptureState{Rate: 59.998, Jitter: 0.412, Scheduling: "SCHED_FIFO"}, Files: map[string]string{},
	}
	noise := rng.NormFloat64() * 22
	paint, hero := 510+noise+delay/2, 1320+noise*1.4+rng.ExpFloat64()*30+delay
	quantise := func(ms float64) float64 { return math.Ceil(ms/frame) * frame }
	steps := []struct{ at, load, visual float64 }{
		{
			quantise(paint),
			41.2,
			38.5,
		}, {quantise(paint + 130), 52.8, 61}, {quantise(paint + 330), 61.4, 74}, {quantise(paint + 470), 68.1, 80.2},
		{quantise(hero - 210), 74.0, 86.9}, {quantise(hero), 97.6, 98.1},
	}
	end := quantise(hero + 240)
	frames := int((end + 1500) / frame)
	si := 0.0
	for i := range frames {
		at := float64(i) * frame
		load, visual := 22.4, 0.0
		for _, s := range steps {
			if at >= s.at-0.001 {
				load, visual = s.load, s.visual
			}
		}
		if at > hero && at < end { // the animation, until it ends
			load += 1.2 * math.Sin(at/40)
		}
		if at >= end-0.001 {
			load, visual = 100, 100
		}
		t.FrameTimes = append(t.FrameTimes, at)
		t.LoadHistogram = append(t.LoadHistogram, load)
		t.VisualProgress = append(t.VisualProgress, visual)
		si += (1 - visual/100) * frame
	}
	t.Frames = t.StartFrame + frames
	first := metric.FirstChange.Measure(steps[0].at, []int{t.StartFrame, t.StartFrame + int(paint/frame) + 1})
	low, high := steps[0].at-frame, steps[0].at
	first.Low, first.High = &low, &high
	t.Measurements = []lab.Measurement{
		metric.TimeToStable.Measure(quantise(hero), []int{t.StartFrame, t.StartFrame + int(hero/frame)}),
		first,
		metric.SpeedIndex.Measure(si, nil),
		metric.LastChange.Measure(end, nil),
		metric.UniqueRate.Measure(21+rng.Float64()*2, nil),
	}
	at := func(ms float64) lab.Time { return t.StartTime.Add(time.Duration(ms * 1e6)) }
	t.Events = []lab.Event{
		{Name: "sync", Detail: "the whole content area was green", Earliest: at(-160), Latest: at(-143)},
		{Name: "navigate", Detail: "Return on the synchronisation page, which leads to https://www.shop.example/", Earliest: at(-0.4),
			Latest: at(0)},
		{Name: "end", Detail: "stable", Earliest: at(end + 1490), Latest: at(end + 1490)},
	}
	t.Spans = []*lab.Span{{Name: "Load the shop", Level: "objective", Start: at(0), End: at(end), Children: []*lab.Span{
		{Name: "Read the document", Level: "task", Start: at(60), End: at(410),
			Children: []*lab.Span{{Name: "HTML parser", Level: "detail", Start: at(180), End: at(400)}}},
		{Name: "Lay out and paint", Level: "task", Start: at(430), End: at(paint + 60)},
		{Name: "Hero image", Level: "task", Start: at(hero - 600), End: at(hero)},
	}}}
	return t
}

// Summarise computes a summary of the valid trials, like package stats.
func Summarise(trials []*lab.Trial) []lab.Summary {
	var out []lab.Summary
	for _, m := range []metric.ID{metric.FirstChange, metric.LastChange, metric.SpeedIndex, metric.TimeToStable, metric.UniqueRate} {
		var v []float64
		for _, t := range trials {
			if t.Valid {
				v = append(v, m.In(t))
			}
		}
		if len(v) == 0 {
			continue
		}
		sort.Float64s(v)
		n := len(v)
		q := func(p float64) float64 { return v[int(math.Round(p*float64(n-1)))] }
		s := lab.Summary{
			Metric: m.String(), Unit: m.Entry().Unit, Arm: lab.Control, N: n, Median: (v[(n-1)/2] + v[n/2]) / 2,
			Min: v[0], Max: v[n-1], Q1: q(.25), Q3: q(.75), Low: v[min(1, n-1)*b2i(n > 8)], High: v[n-1-b2i(n > 8)],
		}
		if n < 6 {
			s.Warnings = []string{fmt.Sprintf("n = %d is too small for a 95 %% interval", n)}
		}
		out = append(out, s)
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Requests makes the replay log of a trial.
func Requests(t *lab.Trial, n int) []lab.Served {
	rng, hosts := rand.New(rand.NewPCG(uint64(t.Number), 2)), hosts()
	var out []lab.Served
	for i := range n {
		start := 40.0
		if i > 0 {
			start = 180 + float64(i*i%97)*9 + rng.Float64()*20
		}
		host, path, protocol := hosts[1], fmt.Sprintf("/img/product-%02d.webp", i), "h2"
		method, stage, score, status := "GET", lab.StageExact, 1.0, 200
		var differs []string
		switch {
		case i == 0:
			host, path = hosts[0], "/"
		case i%11 == 3:
			host, path, method, stage = hosts[2], "/v1/price", "POST", lab.StageSequence
		case i%13 == 5:
			host, path, stage, score = hosts[3], fmt.Sprintf("/pixel?cb=%d", 81000+rng.IntN(999)), lab.StageFuzzy, 0.93
			differs, protocol = []string{"query cb: 77120 → 81231"}, "http/1.1"
		case i%9 == 2:
			path = fmt.Sprintf("/assets/app-%d.3f9a1c.js", i)
		}
		if !t.Valid && i == n-1 {
			stage, score, status, differs = lab.StageMiss, 0, 404, []string{"nothing was near enough"}
		}
		first := 62 + rng.Float64()*40
		length := int64(800 + rng.IntN(48_000))
		out = append(out, lab.Served{
			Time: t.StartTime.Add(time.Duration(start * 1e6)), Client: "10.77.0.2", Method: method, URL: "https://" + host + path,
			Protocol: protocol,
			Stage:    stage, Score: score, Exchange: fmt.Sprintf("urn:uuid:00000000-0000-4000-8000-%012d", i), Differs: differs, Status: status,
			Bytes:     length,
			FirstByte: time.Duration(first * 1e6), Duration: time.Duration((first + float64(length)/1125*1.3) * 1e6),
		})
	}
	return out
}

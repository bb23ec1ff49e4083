package storytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Story is the input of the test.
type Story struct {
	Panel *Panel
	// Page is the URL under test, on a site that the box reaches by its uplink.
	Page string
	// Leave shuts the site down for good.
	Leave func()
	// State is that in which the plans ask for their trials to begin; "" asks for none.
	State string
	// Trials is the number of trials of the replay. Still and Limit are those of the plan;
	// Patience bounds each run.
	Trials   int
	Still    time.Duration
	Limit    time.Duration
	Patience time.Duration
}

// link is that of the replay: a packet that crosses it takes at least half of linkRTT.
const (
	link    = "rtt=100ms,down=4mbit,up=1mbit"
	linkRTT = 100 * time.Millisecond
	// roundTrips is the least number before a page can show anything: name, TCP, TLS, request,
	// of which the name may be cached.
	roundTrips = 3
)

// Tell runs the test and returns the IDs of the two runs.
func (s Story) Tell(t testing.TB) (recorded, replayed string) {
	t.Helper()
	p := s.Panel
	device := p.AwaitDevice(t)
	p.AwaitSetUp(t)
	recorded = p.Start(t, s.Plan(map[string]any{"name": "record", "device": device, "trials": 1}))
	p.Follow(t, recorded, s.Patience, nil)
	first := p.Run(t, recorded)
	s.Check(t, first, 1)
	if first.Archive.Exchanges < 40 {
		t.Errorf("the recording has %d exchanges, want about 60, as the page requests", first.Archive.Exchanges)
	}

	s.Leave()
	replayed = p.Start(t, s.Plan(map[string]any{"name": "replay", "device": device, "archive": recorded, "link": link, "trials": s.Trials}))
	p.Follow(t, replayed, s.Patience, nil)
	second := p.Run(t, replayed)
	s.Check(t, second, s.Trials)
	picture := stillPicture(first)
	for _, trial := range second.Trials {
		if got, measured := trial.Value(metric.FirstChange.String()); (measured || trial.Valid) &&
			got < float64(roundTrips*linkRTT/time.Millisecond) {
			t.Errorf(
				"trial %d: first visual change after %.0f ms, which is impossible over a link with an RTT of %v",
				trial.Number,
				got,
				linkRTT,
			)
		}
		s.evidence(t, replayed, trial)
		// The final picture depends only on the recording.
		if trial.Ended == lab.EndStable && (trial.FinalFrame == "" || trial.FinalFrame != picture && picture != "") {
			t.Errorf("trial %d ends with the picture %.12s, want that of the other run, %.12s", trial.Number, trial.FinalFrame, picture)
		}
	}
	var report struct {
		Schema string
		Trials []struct {
			Number, Misses int
			Metrics        map[string]float64
		}
	}
	if err := json.Unmarshal(p.Artifact(t, replayed, "report.json"), &report); err != nil || report.Schema != "eidetic/report/2" ||
		len(report.Trials) != len(second.Trials) {
		t.Errorf("report.json: %+v, %v", report, err)
	}
	if page := p.Get(t, "/runs/"+replayed+"/report.html"); !bytes.Contains(page, []byte("<!doctype html>")) &&
		!bytes.Contains(page, []byte("<!DOCTYPE html>")) {
		t.Errorf("the report is not an HTML page: %.100s", page)
	}
	return recorded, replayed
}

// Plan adds to a plan what all of the story's have.
func (s Story) Plan(plan map[string]any) map[string]any {
	plan["page"], plan["still_s"], plan["limit_s"] = s.Page, s.Still.Seconds(), s.Limit.Seconds()
	plan["tolerance_ms"] = 10000 // nothing is measured, and other tests run beside it
	if s.State != "" {
		plan["state"] = s.State
	}
	return plan
}

// Check checks what must hold for a run on any machine: no request was missed, and an
// invalid trial has only reasons that a slow machine causes.
func (s Story) Check(t testing.TB, run *lab.Run, trials int) {
	t.Helper()
	if len(run.Trials) < trials { // invalid trials are repeated
		t.Fatalf("run %s is %s with %d trials, want %d or more: %s", run.ID, run.State, len(run.Trials), trials, run.Error)
	}
	valid := 0
	for _, trial := range run.Trials {
		// A trial that was cut off, whose reason is checked below, has made fewer requests.
		if trial.Misses != 0 || trial.Requests < 40 && trial.Ended == lab.EndStable {
			t.Errorf("run %s, trial %d: %d requests, %d of them not in the archive", run.ID, trial.Number, trial.Requests, trial.Misses)
		}
		if trial.Valid {
			valid++
		}
		t.Logf("run %s, trial %d: ended by %s, %d frames, %d lost, metrics %v, invalid because %q",
			run.ID, trial.Number, trial.Ended, trial.Frames, trial.FramesLost, headline(trial), trial.Invalid)
		for _, reason := range trial.Invalid {
			if !OfSlowMachines(reason) {
				t.Errorf("run %s, trial %d is invalid: %s", run.ID, trial.Number, reason)
			}
		}
		if trial.Valid != (len(trial.Invalid) == 0) {
			t.Errorf(
				"run %s, trial %d: valid is %t, but its reasons to be invalid are %q",
				run.ID,
				trial.Number,
				trial.Valid,
				trial.Invalid,
			)
		}
	}
	if want := map[bool]string{true: "done", false: "failed"}[valid > 0]; run.State != want {
		t.Errorf("run %s is %s with %d valid trials, want %s: %s", run.ID, run.State, valid, want, run.Error)
	}
}

// stillPicture returns the final picture of the first trial that came to rest.
func stillPicture(run *lab.Run) string {
	for _, trial := range run.Trials {
		if trial.Ended == lab.EndStable {
			return trial.FinalFrame
		}
	}
	return ""
}

// OfSlowMachines reports whether a busy machine can cause a trial's reason.
func OfSlowMachines(reason string) bool {
	for _, words := range []string{
		"frames were lost", "(tolerance ", lab.Superseded, "the kernel dropped", "the source of the pictures was interrupted",
		"did not come to rest within the plan's time limit", "the wall clock stepped",
		"the machine was busy with other work beside it", "stayed down for up to",
	} {
		if strings.Contains(reason, words) {
			return true
		}
	}
	return false
}

func headline(trial *lab.Trial) string {
	var all []string
	for _, m := range []metric.ID{metric.FirstChange, metric.SpeedIndex, metric.LastChange} {
		all = append(all, fmt.Sprintf("%s %.0f", m, m.In(trial)))
	}
	return strings.Join(all, ", ")
}

// evidence fetches and checks the files of a trial.
func (s Story) evidence(t testing.TB, run string, trial *lab.Trial) {
	t.Helper()
	served := 0
	for _, line := range s.Panel.replayLog(t, run, trial) {
		switch line.Stage {
		case lab.StageBox:
		case lab.StageMiss:
			t.Errorf("run %s, trial %d: no answer was in the archive for %s %s", run, trial.Number, line.Method, line.URL)
		default:
			served++
		}
	}
	if served != trial.Requests {
		t.Errorf("run %s, trial %d: the replay log has %d requests, want %d as in the trial", run, trial.Number, served, trial.Requests)
	}
	if trial.Files["video"] == "" && !trial.Valid {
		return // the source of the frames was interrupted
	}
	film := s.Panel.Artifact(t, run, fmt.Sprintf("trials/%03d/%s", trial.Number, trial.Files["video"]))
	if ebml := []byte{0x1a, 0x45, 0xdf, 0xa3}; !bytes.HasPrefix(film, ebml) || !bytes.Contains(film[:64], []byte("webm")) ||
		len(film) < 20_000 {
		t.Errorf("run %s, trial %d: the video of %d bytes is not WebM", run, trial.Number, len(film))
	}
	if !trial.Valid {
		return // the trial may have ended before there was anything to measure
	}
	if metric.SpeedIndex.In(trial) <= 0 || metric.LastChange.In(trial) <= metric.FirstChange.In(trial) {
		t.Errorf("run %s, trial %d: metrics %v", run, trial.Number, headline(trial))
	}
}

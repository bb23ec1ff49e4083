package report

import (
	"fmt"
	"io"
	"os"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// maxLines bounds the lines of one trial's replay log in the report. Further lines are
// counted; replay.jsonl has them all.
const maxLines = 5000

// texts numbers distinct texts, so that a URL that every trial requests is in the report
// once.
type texts struct {
	List  []string
	index map[string]int
}

func (x *texts) number(s string) int {
	if i, ok := x.index[s]; ok {
		return i
	}
	if x.index == nil {
		x.index = map[string]int{}
	}
	x.index[s] = len(x.List)
	x.List = append(x.List, s)
	return len(x.List) - 1
}

// replayLog is a trial's replay log for the page's script.
type replayLog struct {
	Number int `json:"n"`
	// Rows hold, in order: start in ms, first byte in ms, duration in ms,
	// status, bytes, score, flags (1 aborted), and the numbers of the texts of
	// method, URL, protocol, stage, and note.
	Rows [][12]float64 `json:"rows"`
	More int           `json:"more,omitempty"`
	Note string        `json:"note,omitempty"`
}

// serves reads and condenses the replay log of a trial. If the log is missing or damaged,
// Note says so, and the report is written nevertheless.
func serves(files *os.Root, t *lab.Trial, zero lab.Time, x *texts) replayLog {
	log := replayLog{Number: t.Number, Rows: [][12]float64{}}
	name, ok := t.Files["replay"]
	if !ok {
		return log
	}
	f, err := openArtifact(files, t.Number, name)
	if err != nil {
		log.Note = "The replay log could not be read: " + err.Error()
		return log
	}
	defer f.Close()
	served, err := store.DecodeServed(io.LimitReader(f, maxLogBytes), maxLines)
	switch {
	case err != nil:
		log.Note = fmt.Sprintf("%s is damaged after %d requests: %v", name, len(served.Lines), err)
	case served.Cut:
		log.Note = "The last line of " + name + " is cut off: the writer was stopped."
	}
	log.More = served.More
	for _, s := range served.Lines {
		var aborted float64
		if s.Aborted {
			aborted = 1
		}
		log.Rows = append(log.Rows, [12]float64{
			round3(millis(s.Time, zero)), round3(s.FirstByte.Seconds() * 1e3), round3(s.Duration.Seconds() * 1e3),
			float64(s.Status), float64(s.Bytes), round3(s.Score), aborted,
			float64(x.number(s.Method)), float64(x.number(s.URL)), float64(x.number(s.Protocol)),
			float64(x.number(string(s.Stage))), float64(x.number(noteOf(s))),
		})
	}
	return log
}

// maxLogBytes bounds how much of a replay log is read.
const maxLogBytes = 64 << 20

func noteOf(s lab.Served) string {
	note := ""
	add := func(text string) {
		if note != "" {
			note += "; "
		}
		note += text
	}
	if s.Error != "" {
		add(s.Error)
	}
	if s.Aborted {
		add("the device went away before the last byte")
	}
	for _, d := range s.Differs {
		add(d)
	}
	if s.Why != "" {
		add(s.Why)
	}
	switch {
	case s.RunnerUp == "":
	case s.Stage == lab.StageMiss:
		add("nearest: " + s.RunnerUp)
	default:
		add("next best: " + s.RunnerUp)
	}
	if s.Rule != "" {
		add("if what differs means nothing: appliance archive edit archive.wacz " + s.Rule)
	}
	if s.Filled {
		add("answered from what this run fetched")
	}
	const most = 600
	if r := []rune(note); len(r) > most {
		note = string(r[:most]) + "…"
	}
	return note
}

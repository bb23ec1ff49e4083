package export

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/timeline"
)

// trials are those that a document of timelines is about: the one that was asked for, or all.
func (s *Source) trials() ([]*lab.Trial, error) {
	if s.Trial == 0 {
		return s.Run.Trials, nil
	}
	for _, t := range s.Run.Trials {
		if t.Number == s.Trial {
			return []*lab.Trial{t}, nil
		}
	}
	return nil, fmt.Errorf("the run has no trial %d: it has %d", s.Trial, len(s.Run.Trials))
}

func (s *Source) timelines() (list []*trace.Timeline, err error) {
	trials, err := s.trials()
	if err != nil {
		return nil, err
	}
	reader := timeline.NewReader(s.Files)
	for _, t := range trials {
		list = append(list, reader.Of(t))
	}
	return list, nil
}

// Trace writes the trials' timelines in Chrome's Trace Event Format.
func Trace(w io.Writer, s *Source) error {
	list, err := s.timelines()
	if err != nil {
		return err
	}
	return trace.Chrome(w, list)
}

// Spans writes a table of steps, measures and annotated intervals of each arm as CSV.
func Spans(w io.Writer, s *Source) error {
	trials, err := s.trials()
	if err != nil {
		return err
	}
	reader := timeline.NewReader(s.Files)
	type group struct{ cell, arm string }
	byArm := map[group][]*trace.Timeline{}
	for _, t := range trials {
		if t.Valid || s.Trial != 0 {
			of := group{t.Cell, t.Arm}
			byArm[of] = append(byArm[of], reader.Of(t))
		}
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{
		"run", "arm", "kind", "row", "name", "depth", "trials", "count", "total_ms", "self_ms", "min_ms", "mean_ms", "max_ms",
		metric.ProcessorTime.String(),
	}
	counted := trace.CountMetrics()
	head = append(head, metric.Names(counted)...)
	many := s.Run.Plan.IsMany()
	if many {
		head = append(head, "page_name", "user")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, c := range s.Run.Plan.Cells() {
		for _, arm := range []string{lab.Control, lab.Treatment} {
			for _, r := range trace.Spans(byArm[group{c.Name, arm}]) {
				line := []string{
					cell(s.Run.ID), arm, r.Kind, cell(r.Track), cell(r.Name), strconv.Itoa(r.Depth), strconv.Itoa(r.Trials),
					exact(r.Count), exact(r.Total), exact(r.Self), exact(r.Shortest), exact(r.Mean), exact(r.Longest), exact(r.Ran),
				}
				for i := range counted {
					text := "" // it was not counted
					if i < len(r.Counts) && !math.IsNaN(r.Counts[i]) {
						text = exact(r.Counts[i])
					}
					line = append(line, text)
				}
				if many {
					line = append(line, cell(c.Page), cell(c.User))
				}
				if err := out.Write(line); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// The HTTP Archive format, version 1.2, as far as a replay log fills it.
type (
	harPage struct {
		Started time.Time      `json:"startedDateTime"`
		ID      string         `json:"id"`
		Title   string         `json:"title"`
		Timings map[string]any `json:"pageTimings"`
	}
	harPair  struct{ Name, Value string }
	harEntry struct {
		Page     string             `json:"pageref"`
		Started  time.Time          `json:"startedDateTime"`
		Time     float64            `json:"time"`
		Request  map[string]any     `json:"request"`
		Response map[string]any     `json:"response"`
		Cache    struct{}           `json:"cache"`
		Timings  map[string]float64 `json:"timings"`
		Own      map[string]any     `json:"_eidetic"`
	}
)

// MarshalJSON has the names of the format.
func (p harPair) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": p.Name, "value": p.Value})
}

// HAR writes the requests of the trials, with when the box answered and how each was matched. A page is a trial. Names,
// connections and encryption were before the box got a request, and have no times, nor have events of the page that are
// not known (−1, as the format has it); bodies are in the recording.
func HAR(w io.Writer, s *Source) error {
	list, err := s.timelines()
	if err != nil {
		return err
	}
	pages, entries := []harPage{}, []harEntry{}
	for _, tl := range list {
		id := fmt.Sprintf("trial_%d", tl.Trial)
		title := fmt.Sprintf("trial %d, %s: %s", tl.Trial, tl.Arm, tl.Page)
		timings := map[string]any{"onContentLoad": -1, "onLoad": -1, "comment": "see _eidetic of the entries, and the run's report"}
		for _, track := range tl.Tracks {
			if track.Name == "Load event" && len(track.Events) > 0 {
				timings["onLoad"] = float64(track.Events[0].Start-tl.Zero) / 1e6
			}
		}
		pages = append(pages, harPage{tl.Wall, id, title, timings})
		for _, track := range tl.Tracks {
			for _, e := range track.Events {
				if track.Kind == trace.Request {
					entries = append(entries, harEntryOf(tl, id, e))
				}
			}
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(map[string]any{"log": map[string]any{
		"version": "1.2", "creator": map[string]string{"name": "eidetic", "version": s.Run.Environment.Appliance}, "pages": pages, "entries": entries,
	}})
}

func harEntryOf(tl *trace.Timeline, page string, e trace.Event) harEntry {
	ms := func(from, to lab.Time) float64 { return float64(to-from) / 1e6 }
	method, address, _ := strings.Cut(e.Name, " ")
	facts := map[string]any{"start_ms": ms(tl.Zero, e.Start)}
	for _, f := range e.Facts {
		facts[f.Name] = f.Value
	}
	text := func(name string) string {
		v, _ := facts[name].(string)
		return v
	}
	status, _ := strconv.Atoi(text("status"))
	bytes, _ := strconv.ParseInt(text("bytes"), 10, 64)
	query := []harPair{}
	if u, err := url.Parse(address); err == nil {
		for _, part := range strings.Split(u.RawQuery, "&") {
			if name, value, _ := strings.Cut(part, "="); name != "" {
				query = append(query, harPair{name, value})
			}
		}
	}
	common := func() map[string]any {
		return map[string]any{"httpVersion": text("protocol"), "cookies": []any{}, "headers": []any{}, "headersSize": -1}
	}
	request, response := common(), common()
	request["method"], request["url"], request["queryString"], request["bodySize"] = method, address, query, -1
	response["status"], response["statusText"], response["redirectURL"], response["bodySize"] = status, "", "", bytes
	response["content"] = map[string]any{"size": bytes, "mimeType": ""}
	if len(e.Parts) < 2 {
		e.Parts = []trace.Part{{Start: e.Start, End: e.Start}, {Start: e.Start, End: e.End}}
	}
	wait, receive := e.Parts[0], e.Parts[1]
	return harEntry{
		Page: page, Started: tl.Wall.Add(time.Duration(e.Start - tl.Zero)), Time: ms(e.Start, e.End), Request: request, Response: response,
		Timings: map[string]float64{"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": ms(wait.Start, wait.End),
			"receive": ms(receive.Start, receive.End)},
		Own: facts,
	}
}

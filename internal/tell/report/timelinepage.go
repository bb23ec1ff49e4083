package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	kept "eidetic/internal/tell/timeline"
)

// TimelineName is the name of the page of timelines in a run's folder.
const TimelineName = "timeline.html"

// Bounds of the page of timelines.
const (
	maxTimelines    = 32 << 20 // bytes of all timelines; trials beyond have none
	maxTimelineText = 160      // bytes of a name or a fact; the trial's files have them whole
	mostShownEvents = 120_000  // of a trial; the shortest of its largest rows are left out
)

// timelinePage holds what the template shows.
type timelinePage struct {
	Policy string
	Style  template.CSS
	Script template.JS
	Run    *lab.Run
	At     place
	Title  string
	Trials []timelineTrial
	Arms   []timelineArm
	Left   int // trials that have none here
	Graph  *runGraph
}

// timelineTrial is one trial; Data is what its script draws.
type timelineTrial struct {
	Number int
	Arm    string
	Valid  bool
	Traced bool
	Warmup bool
	Data   template.JS
}

// timelineArm is an arm with the trial that is shown first.
type timelineArm struct {
	Name, Word string
	First      int
}

// timelineData is a trial for the page's script. Texts are numbered, and times are in ms since the start.
type timelineData struct {
	Number int             `json:"n"`
	Start  float64         `json:"start"`
	End    float64         `json:"end"`
	Texts  []string        `json:"texts"`
	Tracks []timelineTrack `json:"tracks"`
	Flows  [][4]int        `json:"flows"`
	Thumbs []timelineThumb `json:"thumbs"`
	Notes  []string        `json:"notes"`
}

type timelineTrack struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Lanes int    `json:"lanes"`
	// Events hold, in order: text of the name, start, end, by how much the start may be earlier, and later, lane,
	// colour (−1 for none), end of the first part (−1 for none), and the numbers of the texts of facts.
	Events [][]float64 `json:"ev"`
	// Rests hold, by the event's place, where it was paused: from, to, from, to …
	Rests map[int][]float64 `json:"rests,omitempty"`
	// Stacks hold, by the event's place, the numbers of the texts of its call stack, the innermost first.
	Stacks map[int][]int `json:"stacks,omitempty"`
}

type timelineThumb struct {
	Frame int     `json:"f"`
	At    float64 `json:"t"`
	URL   string  `json:"u"`
	W     int     `json:"w"`
	H     int     `json:"h"`
}

// writeTimelines renders the page of timelines.
func writeTimelines(files *os.Root, run *lab.Run, at place) ([]byte, error) {
	p := &timelinePage{Run: run, At: at, Title: cmp.Or(run.Name, run.ID)}
	reader := kept.NewReader(files)
	size := 0
	var sums graphs
	for _, t := range inOrderOfUse(run) {
		tl := reader.Of(t)
		sums.add(t, tl)
		if size > maxTimelines {
			continue
		}
		data, err := json.Marshal(timelineDataOf(files, t, tl))
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxTimelines {
			p.Left = len(run.Trials) - len(p.Trials)
			continue
		}
		p.Trials = append(p.Trials, timelineTrial{t.Number, t.Arm, t.Valid, t.Trace != nil && t.Trace.Void == "", t.Warmup, template.JS(data)})
	}
	for _, arm := range armsOf(run) {
		one := timelineArm{Name: arm, Word: "Trial"}
		if both(run) {
			one.Word = armName(arm)
		}
		if i, ok := typical(run, arm); ok {
			one.First = run.Trials[i].Number
		}
		p.Arms = append(p.Arms, one)
	}
	p.Graph = sums.page()
	return hidden(at, p).render()
}

// inOrderOfUse lists a run's trials: of each arm that one first that stands for it.
func inOrderOfUse(run *lab.Run) (list []*lab.Trial) {
	first := map[int]bool{}
	for _, arm := range armsOf(run) {
		if i, ok := typical(run, arm); ok {
			first[i] = true
			list = append(list, run.Trials[i])
		}
	}
	for i, t := range run.Trials {
		if !first[i] {
			list = append(list, t)
		}
	}
	return list
}

func (p *timelinePage) render() ([]byte, error) {
	text := map[string]string{}
	for _, name := range []string{"timeline.gohtml", "style.css", "timeline.css", "csv.js", "timeline.js", "timelinework.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		text[name] = strings.TrimSpace(string(b))
	}
	p.Style = template.CSS(text["style.css"] + "\n" + text["timeline.css"])
	p.Script = template.JS(text["csv.js"] + "\n" + text["timeline.js"] + "\n" + text["timelinework.js"])
	p.Policy = policy([]string{string(p.Script)}, string(p.Style))
	page, err := template.New("timeline").Parse(text["timeline.gohtml"])
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("timelines: %w", err)
	}
	return b.Bytes(), nil
}

// timelineDataOf condenses a timeline.
func timelineDataOf(files *os.Root, t *lab.Trial, tl *trace.Timeline) timelineData {
	var x texts
	x.number("")
	ms := func(at lab.Time) float64 { return round3(float64(at-tl.Zero) / 1e6) }
	text := func(s string) float64 { return float64(x.number(lab.OneLine(s, maxTimelineText))) }
	d := timelineData{
		Number: t.Number, Start: ms(tl.Start), End: ms(tl.End), Tracks: []timelineTrack{}, Flows: [][4]int{}, Thumbs: []timelineThumb{},
		Notes: append([]string{}, tl.Notes...),
	}
	most := allowance(tl.Tracks, mostShownEvents)
	at := make([]map[int]int, len(tl.Tracks)) // where the events of cut tracks went
	for n, track := range tl.Tracks {
		if all := len(track.Events); all > most {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: the longest %d of %d events are here; appliance timeline --text --most %[3]d and "+
				"appliance export --format trace have all %[3]d", lab.OneLine(track.Name, 100), most, all))
			at[n], track.Events = fewer(track.Events, most)
		}
		lanes := trace.Lanes(track)
		one := timelineTrack{Kind: track.Kind, Name: lab.OneLine(track.Name, maxTimelineText)}
		for i, e := range track.Events {
			lane := lanes[i]
			if track.Nested {
				lane = e.Depth
			}
			one.Lanes = max(one.Lanes, lane+1)
			start := ms(e.Start)
			row := []float64{
				text(e.Name), start, ms(e.End), round3(ms(e.Earliest) - start), round3(ms(e.Latest) - start), float64(max(lane, 0)),
				colourOf(e.Colour), -1,
			}
			if rests := restsOf(e, ms); len(rests) > 0 {
				if one.Rests == nil {
					one.Rests = map[int][]float64{}
				}
				one.Rests[i] = rests
			} else if len(e.Parts) > 1 {
				row[7] = ms(e.Parts[0].End)
			}
			for _, frame := range e.Stack {
				if one.Stacks == nil {
					one.Stacks = map[int][]int{}
				}
				one.Stacks[i] = append(one.Stacks[i], int(text(frame)))
			}
			for _, f := range e.Facts {
				row = append(row, text(f.Name), text(f.Value))
			}
			one.Events = append(one.Events, row)
		}
		d.Tracks = append(d.Tracks, one)
	}
	placed := func(track, event int) (int, bool) {
		if at[track] == nil {
			return event, true
		}
		place, ok := at[track][event]
		return place, ok
	}
	for _, f := range tl.Flows {
		from, ok := placed(f.FromTrack, f.From)
		to, there := placed(f.ToTrack, f.To)
		if ok && there {
			d.Flows = append(d.Flows, [4]int{f.FromTrack, from, f.ToTrack, to})
		}
	}
	thumbs, _ := filmstrip(files, t)
	of := stepThumbs(files, t)
	for _, s := range t.Steps {
		for _, one := range of[s.Name] { // whose times count from the step's own input
			one.TimeMS += ms(s.First.Earliest + (s.First.Latest-s.First.Earliest)/2)
			thumbs = append(thumbs, one)
		}
	}
	for _, one := range thumbs {
		d.Thumbs = append(d.Thumbs, timelineThumb{one.Frame, round3(one.TimeMS), one.URL, one.Width, one.Height})
	}
	d.Texts = x.List
	return d
}

// fewer are the longest of the events, and where each went.
func fewer(events []trace.Event, most int) (at map[int]int, out []trace.Event) {
	at = map[int]int{}
	for i, place := range trace.Longest(events, most) {
		at[place] = i
		out = append(out, events[place])
	}
	return at, out
}

// allowance is how many events each track may have so that all together have at most so many: small tracks have all
// theirs.
func allowance(tracks []trace.Track, most int) int {
	sizes := make([]int, 0, len(tracks))
	for _, t := range tracks {
		sizes = append(sizes, len(t.Events))
	}
	slices.Sort(sizes)
	for i, n := range sizes {
		share := most / (len(sizes) - i)
		if n > share {
			return share
		}
		most -= n
	}
	return math.MaxInt
}

// restsOf are the stretches in which an event was paused.
func restsOf(e trace.Event, ms func(lab.Time) float64) (out []float64) {
	for _, p := range e.Parts {
		if p.Name == trace.Paused {
			out = append(out, ms(p.Start), ms(p.End))
		}
	}
	return out
}

// colourOf is #rrggbb as a number, −1 for none.
func colourOf(text string) float64 {
	if !lab.IsColour(text) {
		return -1
	}
	var n uint32
	if _, err := fmt.Sscanf(text, "#%06x", &n); err != nil {
		return -1
	}
	return float64(n)
}

package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/base/bounded"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// ResultSchema names the layout of a result. The number grows when a field is removed or changes its meaning.
const ResultSchema = "eidetic/suite-result/1"

// ResultFile is the name of a result in its folder, beside the folder runs.
const ResultFile = "suite.json"

const (
	maxResult = 64 << 20
	maxTrials = 200_000
)

// Result is what a suite found, with what is needed to check it and to measure it again.
type Result struct {
	Schema string `json:"schema"`
	Suite  string `json:"suite"`
	SHA256 string `json:"suite_sha256"`
	// Text is the suite's own, so that a result is complete by itself.
	Text      string    `json:"suite_text"`
	Appliance string    `json:"appliance"`
	Begun     time.Time `json:"begun"`
	Ended     time.Time `json:"ended,omitzero"` // zero until all entries are done
	Trials    int       `json:"trials"`         // of each entry and browser; 0: as the suite says
	Seed      uint64    `json:"seed"`
	// Browsers are those that were compared, as they were named; the first is what the others are held against.
	Browsers []string  `json:"browsers"`
	Entries  []Outcome `json:"entries"`
}

// Outcome is the run of an entry, in which the browsers took turns.
type Outcome struct {
	Entry    string   `json:"entry"`
	Browsers []string `json:"browsers"` // those of the result
	Run      string   `json:"run"`      // its folder in runs
	State    string   `json:"state"`    // of the run; "begun" while it is under way
	Error    string   `json:"error,omitempty"`
	// RunSHA256 is that of run.json.
	RunSHA256   string           `json:"run_sha256,omitempty"`
	Archive     string           `json:"archive_sha256,omitempty"` // what was replayed to the control
	Environment *lab.Environment `json:"environment,omitempty"`
	Link        string           `json:"link,omitempty"`
	Trials      []Trial          `json:"trials,omitempty"`
}

// Trial is one trial of an outcome.
type Trial struct {
	Number  int      `json:"number"`
	Browser string   `json:"browser"`
	Block   int      `json:"block"`
	Valid   bool     `json:"valid"`
	Invalid []string `json:"invalid,omitempty"`
	Reel    string   `json:"reel_sha256"`
	// Values are those of the marks and of the metrics with a known answer; Did is what the page said that it did, by
	// its own clock.
	Values     map[string]float64 `json:"values"`
	Did        map[string]float64 `json:"did,omitempty"`
	Conditions *lab.Conditions    `json:"conditions,omitempty"`
	Blur       float64            `json:"blur_ms"`
}

// StateBegun is the state of an outcome whose run is under way.
const StateBegun = "begun"

// New makes an empty result.
func New(s *Suite, appliance string, browsers []string, trials int, seed uint64, now time.Time) *Result {
	return &Result{Schema: ResultSchema, Suite: s.Name, SHA256: s.SHA256(), Text: string(s.Text()), Appliance: appliance, Begun: now,
		Trials: trials, Seed: seed, Browsers: browsers, Entries: []Outcome{}}
}

// Source is the suite that the result is of.
func (r *Result) Source() (*Suite, error) {
	if slices.Contains(Shipped(), r.Suite) { // the program's own are read once
		if own, err := Open(r.Suite); err == nil && string(own.Text()) == r.Text {
			return own, nil
		}
	}
	return Parse(r.Suite, []byte(r.Text))
}

// Find returns the outcome of an entry, or nil.
func (r *Result) Find(entry string) *Outcome {
	for i := range r.Entries {
		if o := &r.Entries[i]; o.Entry == entry {
			return o
		}
	}
	return nil
}

// Put replaces the outcome of the same entry, or adds one.
func (r *Result) Put(o Outcome) {
	if old := r.Find(o.Entry); old != nil {
		*old = o
		return
	}
	r.Entries = append(r.Entries, o)
}

// Same says whether what is asked for is what the result is of, so that it can go on.
func (r *Result) Same(other *Result) bool {
	return r.SHA256 == other.SHA256 && r.Appliance == other.Appliance && slices.Equal(r.Browsers, other.Browsers) &&
		r.Trials == other.Trials && r.Seed == other.Seed
}

// Write writes the result into a folder, as a whole.
func (r *Result) Write(dir string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, ResultFile), append(text, '\n'), 0o644)
}

// FileOf is the file of a result that is named by it, or by the folder that it is in.
func FileOf(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Join(name, ResultFile)
	}
	return name
}

// ReadResult reads a result from its file, or from the folder that it is in. Its errors name the file and the field.
func ReadResult(file string) (*Result, error) {
	file = FileOf(file)
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return nil, err
	}
	r, err := ParseResult(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// ParseResult reads a result, which may come from anybody.
func ParseResult(text []byte) (*Result, error) {
	if len(text) > maxResult {
		return nil, fmt.Errorf("more than %d MiB", maxResult>>20)
	}
	var r Result
	if err := bounded.JSON(text, &r); err != nil {
		return nil, fmt.Errorf("it is no suite.json, the file that appliance suite run writes: %w", err)
	}
	return &r, r.check()
}

func (r *Result) check() error {
	if r.Schema != ResultSchema {
		return wrong("schema", "%.60q is not %s: no result of a suite, or of another version", r.Schema, ResultSchema)
	}
	s, err := r.Source()
	if err != nil {
		return wrong("suite_text", "%w", err)
	}
	if s.SHA256() != r.SHA256 || s.Name != r.Suite {
		return wrong("suite_sha256", "it is not that of suite_text, or the name is not")
	}
	if err := CheckBrowsers(r.Browsers); err != nil || len(r.Browsers) == 0 {
		return wrong("browsers", "%w", errors.Join(err, errors.New("from one to 6, each once")))
	}
	n := 0
	for i := range r.Entries {
		o, at := &r.Entries[i], fmt.Sprintf("entries[%d]", i)
		n += len(o.Trials)
		switch {
		case s.Index(o.Entry) < 0:
			return wrong(at+".entry", "%q is no entry of the suite", lab.Clip(o.Entry, 60))
		case !slices.Equal(o.Browsers, r.Browsers):
			return wrong(at+".browsers", "they are not those that the result compares")
		case r.Find(o.Entry) != o:
			return wrong(at, "the entry is there twice")
		case !store.ValidID(o.Run):
			return wrong(at+".run", "%q is no run's", lab.Clip(o.Run, 60))
		case n > maxTrials:
			return wrong(at+".trials", "more than %d together", maxTrials)
		}
		for k, t := range o.Trials {
			at := fmt.Sprintf("%s.trials[%d]", at, k)
			switch {
			case t.Number < 1 || t.Number > maxTrials:
				return wrong(at+".number", "%d: from 1", t.Number)
			case !slices.Contains(o.Browsers, t.Browser):
				return wrong(at+".browser", "%q is none of the entry's", lab.Clip(t.Browser, 60))
			case t.Reel != "" && !hashPattern.MatchString(t.Reel):
				return wrong(at+".reel_sha256", "64 digits of base 16")
			}
			for _, values := range []map[string]float64{t.Values, t.Did} {
				for name, v := range values {
					if !finite(v) || len(name) > 300 {
						return wrong(at+".values", "%s: %v", lab.Clip(name, 60), v)
					}
				}
			}
		}
	}
	return nil
}

// Index is that of an entry, or −1.
func (s *Suite) Index(entry string) int {
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Name == entry })
}

// Names are the metrics of an entry that a result keeps.
func (e Entry) Names() (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(e.Visual)
	add(e.Interactive)
	for _, t := range e.Truths {
		add(t.Metric)
		add(t.Less)
	}
	return names
}

// Sum returns the SHA-256 of a file of a run, by its path in the run's folder. The error is os.ErrNotExist where there
// is no such file.
type Sum func(run, path string) (string, error)

// SumsIn are those of the files in dir/runs.
func SumsIn(dir string) Sum {
	return func(run, path string) (string, error) {
		return HashOf(filepath.Join(dir, "runs", run, filepath.FromSlash(path)))
	}
}

// Take makes the outcome of a run in its folder, which is dir/runs/ID.
func Take(dir string, e Entry, browsers []string, id string, sum Sum) (Outcome, error) {
	o := Outcome{Entry: e.Name, Browsers: browsers, Run: id}
	folder := filepath.Join(dir, "runs", id)
	run, err := store.ReadRun(folder)
	if err != nil {
		return o, err
	}
	o.State, o.Error, o.Archive, o.Link = run.State, run.Error, run.Archive.SHA256, run.Link.Name
	o.Environment = &run.Environment
	if o.RunSHA256, err = SumsIn(dir)(id, store.RunFile); err != nil {
		return o, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return o, err
	}
	defer root.Close()
	for _, short := range run.Trials {
		if short.Warmup || short.Traced {
			continue
		}
		t := Trial{Number: short.Number, Browser: browsers[indexOf(short, len(browsers))], Block: short.Block,
			Valid: short.Valid, Invalid: short.Invalid, Values: map[string]float64{}, Conditions: short.Conditions}
		t.Blur = short.Blur.Worst()
		for _, name := range e.Names() {
			if v, ok := short.Value(name); ok {
				t.Values[name] = v
			}
		}
		full, err := store.ReadTrial(root, short.Number)
		if err != nil {
			return o, err
		}
		t.Did = e.said(full)
		for _, name := range e.Names() {
			if own, ok := ownMeasure(name); ok {
				if v, ok := lastMeasure(full, own); ok {
					t.Values[name] = v
				}
			}
		}
		if reel := full.Files["reel"]; filepath.IsLocal(reel) {
			t.Reel, err = sum(id, path.Join("trials", store.TrialName(short.Number), reel))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return o, err
			}
		}
		o.Trials = append(o.Trials, t)
	}
	return o, nil
}

// didMark begins the names of the measures by which a page of the suite says what it did.
const didMark = "did "

// said reads what the page said that the known answers ask for: the last measure of a name holds.
func (e Entry) said(t *lab.Trial) map[string]float64 {
	all := map[string]float64{}
	for _, truth := range e.Truths {
		if v, ok := lastMeasure(t, didMark+truth.Did); ok && truth.Did != "" {
			all[truth.Did] = v
		}
	}
	return all
}

// CheckRecording says whether a file is the recording of a hash; an empty hash asks for none.
func CheckRecording(file, sum string) error {
	got, err := HashOf(file)
	if err == nil && sum != "" && got != sum {
		err = fmt.Errorf("%s is another recording: its SHA-256 is %s, and the suite asks for %s", filepath.Base(file), got, sum)
	}
	return err
}

// lastMeasure is the duration of the last measure of User Timing of a name, in ms.
func lastMeasure(t *lab.Trial, name string) (ms float64, ok bool) {
	for _, m := range t.PageMarks {
		if m.Kind == "measure" && m.Name == name && finite(m.DurationMS) {
			ms, ok = m.DurationMS, true
		}
	}
	return ms, ok
}

// HashOf is the SHA-256 of a file. What is none, such as a pipe, may come with somebody's result, and have no end.
func HashOf(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is no file", file))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

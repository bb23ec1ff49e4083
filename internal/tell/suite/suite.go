package suite

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/plan"
)

// What a suite may have.
const (
	MaxEntries  = 60
	MaxBrowsers = 6
	maxText     = 256 << 10
	maxTruths   = 12
	maxMeasure  = 200
)

// Suite is a set of pages and journeys by which browsers are compared.
type Suite struct {
	Name  string `json:"suite"`
	About string `json:"about,omitempty"`
	// Trials is how many there are of each entry and browser, unless its plan says.
	Trials int `json:"trials,omitempty"`
	// Browsers are those that are compared unless a person names others; the first is what the others are held against.
	Browsers []string `json:"browsers,omitempty"`
	// Plan holds what the plans of all entries have.
	Plan    map[string]any `json:"plan,omitempty"`
	Entries []Entry        `json:"entries"`

	file string
	text []byte
	tree *ast.File
}

// Entry is a page or a journey of a suite.
type Entry struct {
	Name string `json:"name"`
	Type string `json:"type"` // load, interaction, animation …
	// Visual and Interactive are the marks: names of measurements, such as load/speed_index_ms, or "measure:" and the
	// name of a measure of User Timing that the page makes, whose duration counts. One may be missing.
	Visual      string  `json:"visual,omitempty"`
	Interactive string  `json:"interactive,omitempty"`
	Weight      float64 `json:"weight,omitempty"` // 1 without it
	SHA256      string  `json:"archive_sha256,omitempty"`
	// Draw is how all browsers draw in this entry: webgl or gl, as a plan's browser has it.
	Draw   string         `json:"draw,omitempty"`
	Plan   map[string]any `json:"plan"`
	Truths []Truth        `json:"truth,omitempty"`
}

// Truth is a right answer that is known, as the page makes it by a knob.
type Truth struct {
	Metric string `json:"metric"`
	// Less is a metric of the same trial, and Over an entry whose median of the same metric, and of what its page did, is
	// subtracted: what a browser adds to a knob is in both.
	Less string `json:"less,omitempty"`
	Over string `json:"over,omitempty"`
	// Is is the answer. Did names the measure of User Timing, without its "did ", in which the page says by its own
	// clock what it did: then that is the answer, and Is what it was asked for.
	Is     float64 `json:"is"`
	Did    string  `json:"did,omitempty"`
	Within float64 `json:"within"` // how far the measured value may be from the answer
}

//go:embed suites/*.yaml
var shipped embed.FS

// Shipped lists the names of the suites in the program.
func Shipped() (names []string) {
	files, _ := shipped.ReadDir("suites") // a constant
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// shippedSuites are the suites in the program by their names, read once: that takes a tenth of a second of a processor.
var shippedSuites = sync.OnceValues(func() (map[string]*Suite, error) {
	all := map[string]*Suite{}
	for _, name := range Shipped() {
		text, err := shipped.ReadFile("suites/" + name + ".yaml")
		if err == nil {
			all[name], err = Parse(name, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// Open reads a suite that the program has, by its name, or a file.
func Open(name string) (*Suite, error) {
	if slices.Contains(Shipped(), name) {
		all, err := shippedSuites()
		return all[name], err
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) && path.Ext(name) == "" {
		return nil, fmt.Errorf("%s is no file, and no suite of this program: it has %s", name, strings.Join(Shipped(), ", "))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// IsShipped says whether the suite is one that the program has.
func (s *Suite) IsShipped() bool {
	if !slices.Contains(Shipped(), s.Name) {
		return false
	}
	own, err := Open(s.Name)
	return err == nil && own.SHA256() == s.SHA256()
}

// File is the file that the suite was read from, or the name of one that the program has.
func (s *Suite) File() string { return s.file }

// Text is what the suite was read from.
func (s *Suite) Text() []byte { return s.text }

// SHA256 is that of the suite's text.
func (s *Suite) SHA256() string {
	sum := sha256.Sum256(s.text)
	return hex.EncodeToString(sum[:])
}

// Parse reads a suite from a text in YAML or JSON. Its errors name file, line and field.
func Parse(file string, text []byte) (*Suite, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%s: more than %d KiB", file, maxText>>10)
	}
	text = bounded.Source(text)
	s := &Suite{file: file, text: text}
	err := bounded.YAML(text, func() (err error) {
		if err = bounded.NoAliases(text); err != nil {
			return err
		}
		if s.tree, err = parser.ParseBytes(text, 0); err != nil {
			return err
		}
		if len(s.tree.Docs) > 1 {
			return errors.New("more than one document: a suite is one, without --- in between")
		}
		return bounded.Strict(text, s)
	})
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	var much *bounded.Error
	var at yaml.Error
	switch {
	case err == nil:
	case errors.As(err, &much):
		return nil, fmt.Errorf("%s:%d: %s", file, much.Line, much.What)
	case errors.As(err, &at) && at.GetToken() != nil:
		return nil, fmt.Errorf("%s:%d: %s", file, at.GetToken().Position.Line, at.GetMessage())
	default:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := s.check(); err != nil {
		return nil, s.locate(err)
	}
	return s, nil
}

// locate adds file and line to an error that names a field.
func (s *Suite) locate(err error) error {
	var wrong *lab.FieldError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	if at := bounded.Place(s.tree, wrong.Path, true); at != nil {
		return fmt.Errorf("%s:%d: %w", s.file, at.Position.Line, err)
	}
	return fmt.Errorf("%s: %w", s.file, err)
}

func wrong(at, format string, args ...any) error {
	return &lab.FieldError{Path: at, Err: fmt.Errorf(format, args...)}
}

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`) // never written
	hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)            // never written
)

func (s *Suite) check() error {
	switch {
	case !namePattern.MatchString(s.Name):
		return wrong("suite", "%q: a name has small letters, digits and -, at most 40", lab.Clip(s.Name, 60))
	case len(s.Entries) == 0:
		return wrong("entries", "there is none: each is a page or a journey, with a name and a plan")
	case len(s.Entries) > MaxEntries:
		return wrong("entries", "%d; at most %d", len(s.Entries), MaxEntries)
	case s.Trials < 0 || s.Trials > 5000:
		return wrong("trials", "%d: from 1 to 5000", s.Trials)
	}
	if err := CheckBrowsers(s.Browsers); err != nil {
		return wrong("browsers", "%w", err)
	}
	seen := map[string]int{}
	for i, e := range s.Entries {
		at := fmt.Sprintf("entries[%d]", i)
		if first, twice := seen[e.Name]; twice {
			return wrong(at+".name", "%q is that of entries[%d], too", e.Name, first)
		}
		seen[e.Name] = i
		if err := e.check(at); err != nil {
			return err
		}
		if _, err := s.plan(i, nil); err != nil {
			return err
		}
	}
	for i, e := range s.Entries {
		for k, t := range e.Truths {
			if _, there := seen[t.Over]; t.Over != "" && !there {
				return wrong(fmt.Sprintf("entries[%d].truth[%d].over", i, k), "%q is no entry of this suite", lab.Clip(t.Over, 60))
			}
		}
	}
	return nil
}

// ownMeasure is the name of a measure of the page's that a mark names.
func ownMeasure(mark string) (name string, ok bool) { return strings.CutPrefix(mark, "measure:") }

// IsOwn says that a value is told by the page's own measure, and not by the film.
func IsOwn(mark string) bool {
	_, own := ownMeasure(mark)
	return own
}

// hasOwn says whether a mark is the page's own.
func (e Entry) hasOwn() bool { return IsOwn(e.Visual) || IsOwn(e.Interactive) }

// CheckBrowsers says what is wrong with a list of browsers.
func CheckBrowsers(names []string) error {
	if len(names) > MaxBrowsers {
		return fmt.Errorf("%d browsers; at most %d", len(names), MaxBrowsers)
	}
	for i, n := range names {
		if strings.TrimSpace(n) == "" || len(n) > 1000 {
			return errors.New("a browser is a name, such as chromium, or a program's path")
		}
		if slices.Index(names, n) != i {
			return fmt.Errorf("%q is there twice", n)
		}
	}
	return nil
}

func (e Entry) check(at string) error {
	switch {
	case !namePattern.MatchString(e.Name):
		return wrong(at+".name", "%q: a name has small letters, digits and -, at most 40", lab.Clip(e.Name, 60))
	case !namePattern.MatchString(e.Type):
		return wrong(at+".type", "%q: a word such as load, interaction or animation", lab.Clip(e.Type, 60))
	case !finite(e.Weight) || e.Weight < 0 || e.Weight > 100:
		return wrong(at+".weight", "%v: above 0, at most 100", e.Weight)
	case !slices.Contains([]string{"", lab.DrawSoftware, lab.DrawWebGL, lab.DrawGL}, e.Draw):
		return wrong(at+".draw", "%q: software, webgl or gl", lab.Clip(e.Draw, 60))
	case e.SHA256 != "" && !hashPattern.MatchString(e.SHA256):
		return wrong(at+".archive_sha256", "64 digits of base 16, as sha256sum prints them")
	case e.Visual == "" && e.Interactive == "" && len(e.Truths) == 0:
		return wrong(at+".visual", "name a mark, visual or interactive, such as load/speed_index_ms, or a truth")
	case len(e.Truths) > maxTruths:
		return wrong(at+".truth", "%d; at most %d", len(e.Truths), maxTruths)
	}
	for field, name := range map[string]string{"visual": e.Visual, "interactive": e.Interactive} {
		if own, ok := ownMeasure(name); ok {
			if own == "" || len(own) > maxMeasure {
				return wrong(at+"."+field, "after measure: comes the name of a measure that the page makes, of at most %d bytes", maxMeasure)
			}
			continue
		}
		if name == "" {
			continue
		}
		if better := metric.Parse(name).Entry().Better; better == metric.Neither {
			return wrong(at+"."+field, "%q is no metric of which less or more is better (docs/metrics.md)", lab.Clip(name, 80))
		}
	}
	for k, t := range e.Truths {
		at := fmt.Sprintf("%s.truth[%d]", at, k)
		for field, name := range map[string]string{"metric": t.Metric, "less": t.Less} {
			if (name != "" || field == "metric") && metric.Parse(name).ID == 0 {
				return wrong(at+"."+field, "%q is no metric (docs/metrics.md)", lab.Clip(name, 80))
			}
		}
		switch {
		case t.Less != "" && t.Over != "":
			return wrong(at+".over", "less and over exclude each other")
		case !finite(t.Is):
			return wrong(at+".is", "%v is no number to be measured", t.Is)
		case !finite(t.Within) || t.Within < 0:
			return wrong(at+".within", "%v: 0 or more", t.Within)
		case len(t.Did) > 40:
			return wrong(at+".did", "at most 40 characters")
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Counts is how much the entry's marks count.
func (e Entry) Counts() float64 { return cmp.Or(e.Weight, 1) }

// PlanOf is the plan of the i-th entry for one browser, or for several that take turns: two as control and treatment,
// more as users. Its error names file, line and field.
func (s *Suite) PlanOf(i int, browsers []*lab.Browser, trials int, seed uint64) (plan.Request, error) {
	q, err := s.plan(i, browsers)
	if err != nil {
		return q, s.locate(err)
	}
	if trials == 0 && q.Trials == 0 {
		trials = s.Trials
	}
	if trials > 0 {
		err = q.Set("trials", trials)
	}
	if seed > 0 {
		err = errors.Join(err, q.Set("seed", seed))
	}
	return q, err
}

// Locate adds file and line to an error of the plan of the i-th entry.
func (s *Suite) Locate(i int, err error) error {
	var wrong *lab.FieldError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: entry %s: %w", s.file, s.Entries[i].Name, err)
	}
	for _, base := range []string{fmt.Sprintf("entries[%d].plan", i), "plan"} { // where the field is said
		if at := bounded.Place(s.tree, base+"."+wrong.Path, false); at != nil {
			return fmt.Errorf("%s:%d: entry %s: %w", s.file, at.Position.Line, s.Entries[i].Name, err)
		}
	}
	return s.locate(&lab.FieldError{Path: fmt.Sprintf("entries[%d].plan.%s", i, wrong.Path), Err: wrong.Err})
}

// plan merges the entry's plan over that of the suite.
func (s *Suite) plan(i int, browsers []*lab.Browser) (q plan.Request, err error) {
	e := s.Entries[i]
	at := fmt.Sprintf("entries[%d].plan", i)
	if q, err = requestOf(s.Plan); err != nil {
		return q, wrong("plan", "%w", err)
	}
	own, err := requestOf(e.Plan)
	if err != nil {
		return q, wrong(at, "%w", err)
	}
	if q, err = q.With(own); err != nil {
		return q, wrong(at, "%w", err)
	}
	if problems := q.Problems(); len(problems) > 0 {
		var field *lab.FieldError
		if errors.As(problems[0], &field) {
			return q, s.place(i, field)
		}
		return q, wrong(at, "%w", problems[0])
	}
	switch {
	case len(q.Steps) == 0:
		return q, wrong(at+".steps", "an entry is a journey: begin with a step that opens the page, {name: load, open: URL}")
	case e.hasOwn() && (q.Measure == nil || !q.Measure.PageMarks && !q.Measure.FrameCodes && q.Measure.Level == ""):
		return q, wrong(at, "a mark that begins with measure: is told by the page: write measure: {page_marks: true}")
	case q.Treatment != nil || q.IsMany() || q.Browser != nil:
		return q, wrong(at, "treatment, pages, users and browser are not for the plans of a suite: its arms are the browsers")
	}
	if err = q.Set("name", s.Name+" "+e.Name); err != nil || len(browsers) == 0 {
		return q, err
	}
	browsers = e.drawn(browsers)
	if len(browsers) > 2 {
		var users []lab.PlanUser
		for i, b := range browsers {
			users = append(users, lab.PlanUser{Name: userOf(i, b), Browser: b})
		}
		return q, q.Set("users", users)
	}
	if err = q.Set("browser", browsers[0]); err == nil && len(browsers) == 2 {
		err = q.Set("treatment.browser", browsers[1])
	}
	return q, err
}

// userOf is the name of the user that has the i-th of several browsers.
func userOf(i int, b *lab.Browser) string {
	name, _, _ := strings.Cut(path.Base(cmp.Or(b.Name, b.Command)), " ") // without flags
	name = regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(name, "-")
	return fmt.Sprintf("%d %s", i+1, lab.Clip(name, 50))
}

// indexOf is the place of the browser of a trial in a run of so many.
func indexOf(t *lab.Trial, browsers int) int {
	n := 0
	if browsers > 2 {
		first, _, _ := strings.Cut(t.Cell, " ")
		n, _ = strconv.Atoi(first) // userOf wrote it; 0 is of another plan
		n--
	} else {
		n = lab.ArmOrder(t.Arm)
	}
	return min(max(n, 0), browsers-1)
}

// drawn are the browsers as they draw in this entry.
func (e Entry) drawn(browsers []*lab.Browser) []*lab.Browser {
	if e.Draw == "" {
		return browsers
	}
	all := make([]*lab.Browser, len(browsers))
	for i, b := range browsers {
		own := lab.Browser{Name: lab.Chromium}
		if b != nil {
			own = *b
		}
		own.Draw = e.Draw
		all[i] = &own
	}
	return all
}

// place is an error of a field of an entry's plan, where the field is said: in the entry or in the suite's plan.
func (s *Suite) place(i int, field *lab.FieldError) error {
	at := fmt.Sprintf("entries[%d].plan.%s", i, field.Path)
	if own := bounded.Place(s.tree, at, false); own == nil && bounded.Place(s.tree, "plan."+field.Path, false) != nil {
		at = "plan." + field.Path
	}
	return &lab.FieldError{Path: at, Err: field.Err}
}

func requestOf(fields map[string]any) (q plan.Request, err error) {
	if len(fields) == 0 {
		return q, nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return q, bounded.Plain(err)
	}
	return q, json.Unmarshal(text, &q)
}

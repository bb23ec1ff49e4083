package lab

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Region is a rectangle of the content area, in pixels or in per cent of it.
type Region struct {
	X, Y, W, H float64
	Share      bool // the numbers are per cent
}

// In returns the region's rectangle on a screen with the given content area.
func (r Region) In(content image.Rectangle) image.Rectangle {
	x, y, w, h := r.X, r.Y, r.W, r.H
	if r.Share {
		dx, dy := float64(content.Dx())/100, float64(content.Dy())/100
		x, y, w, h = x*dx, y*dy, w*dx, h*dy
	}
	at := image.Pt(int(math.Round(x)), int(math.Round(y)))
	return image.Rectangle{at, at.Add(image.Pt(int(math.Round(w)), int(math.Round(h))))}.Add(content.Min).Intersect(content)
}

// ParseRegion reads X,Y,WIDTH,HEIGHT, all in pixels or all in per cent: 0%,0%,100%,20%.
func ParseRegion(text string) (Region, error) {
	v, share, err := parseNumbers(text, 4)
	if err != nil {
		return Region{}, fmt.Errorf("region %q: write X,Y,WIDTH,HEIGHT in pixels or in per cent, such as 0%%,0%%,100%%,20%%: %w", text, err)
	}
	r := Region{v[0], v[1], v[2], v[3], share}
	if r.W <= 0 || r.H <= 0 {
		return Region{}, fmt.Errorf("region %q: width and height are above 0", text)
	}
	return r, nil
}

// parseNumbers reads n numbers with commas between, all or none of which are per cent.
func parseNumbers(text string, n int) (out []float64, share bool, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != n {
		return nil, false, fmt.Errorf("%d numbers, and not %d", len(parts), n)
	}
	for i, p := range parts {
		p = strings.TrimSpace(p)
		bare, percent := strings.CutSuffix(p, "%")
		if i > 0 && percent != share {
			return nil, false, fmt.Errorf("pixels and per cent are mixed")
		}
		share = percent
		v, err := strconv.ParseFloat(bare, 64)
		if err != nil || v < 0 || v > MaxSide || percent && v > 100 {
			return nil, false, fmt.Errorf("%q is not a number from 0 to %s", p, map[bool]string{true: "100%", false: strconv.Itoa(MaxSide)}[percent])
		}
		out = append(out, v)
	}
	return out, share, nil
}

// Target is a place on the screen.
type Target struct {
	X, Y  float64 // of a point, if neither Picture nor CSS is set
	Share bool    // X and Y are per cent of the content area, else pixels of the screen

	Picture   string  // file name of a PNG to be found on the screen
	Tolerance int     // how much a channel of a pixel may differ from the picture's
	Within    *Region // where to look for the picture; nil is everywhere

	CSS string // selector of an element; the browser's protocol tells its rectangle
}

// Tolerance of a picture that is searched for, unless the target says otherwise: browsers
// decode and scale pictures with small differences.
const usualTolerance = 24

// behindHash says why what stands in a plan's file as in the example may not have come through.
func behindHash(example string) string {
	return fmt.Sprintf("; in YAML a # after a space begins a comment, so quote it: \"%s\"", example)
}

// ParseTarget reads "640,360", "50%,40%", "picture FILE [tolerance N] [in REGION]" and
// "css SELECTOR".
func ParseTarget(text string) (Target, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "css" && rest != "":
		return Target{CSS: unquote(rest)}, nil
	case word == "picture" && rest != "":
		return parsePicture(rest)
	case word == "css":
		return Target{}, fmt.Errorf("target %q has no selector%s", text, behindHash("css #buy"))
	}
	v, share, err := parseNumbers(text, 2)
	if err != nil {
		return Target{}, fmt.Errorf("target %q: write pixels (640,360), a share of the content area (50%%,40%%), picture FILE, or css SELECTOR", text)
	}
	return Target{X: v[0], Y: v[1], Share: share}, nil
}

func unquote(text string) string {
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' {
		return text[1 : n-1]
	}
	return text
}

func parsePicture(text string) (Target, error) {
	t := Target{Tolerance: usualTolerance}
	words := strings.Fields(text)
	t.Picture = unquote(words[0])
	if err := CheckFileName(t.Picture); err != nil {
		return t, err
	}
	for words = words[1:]; len(words) > 0; words = words[2:] {
		if len(words) == 1 {
			return t, fmt.Errorf("picture %s: nothing follows %q", t.Picture, words[0])
		}
		switch words[0] {
		case "tolerance":
			n, err := strconv.Atoi(words[1])
			if err != nil || n < 0 || n > 128 {
				return t, fmt.Errorf("picture %s: tolerance %q is not a number from 0 to 128", t.Picture, words[1])
			}
			t.Tolerance = n
		case "in":
			r, err := ParseRegion(words[1])
			if err != nil {
				return t, err
			}
			t.Within = &r
		default:
			return t, fmt.Errorf("picture %s: %q is neither tolerance nor in", t.Picture, words[0])
		}
	}
	return t, nil
}

// CheckFileName returns an error for a name that does not stay in the folder of the plan.
func CheckFileName(name string) error {
	odd := func(r rune) bool { return r == '\\' || unicode.IsControl(r) }
	if name == "" || len(name) > 255 || !filepath.IsLocal(name) || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%q is no name of a file beside the plan, such as lamp.png", name)
	}
	return nil
}

// String writes the target as ParseTarget reads it.
func (t Target) String() string {
	switch {
	case t.CSS != "":
		return "css " + t.CSS
	case t.Picture != "":
		return "picture " + t.Picture
	case t.Share:
		return fmt.Sprintf("%g%%,%g%%", t.X, t.Y)
	}
	return fmt.Sprintf("%g,%g", t.X, t.Y)
}

// ParseWay reads "TARGET to TARGET".
func ParseWay(text string) (from, to Target, err error) {
	a, b, ok := strings.Cut(text, " to ")
	if !ok {
		return from, to, fmt.Errorf("%q: write TARGET to TARGET, such as 50%%,80%% to 50%%,20%%", text)
	}
	if from, err = ParseTarget(a); err == nil {
		to, err = ParseTarget(b)
	}
	return from, to, err
}

// ParsePinch reads "TARGET by FACTOR".
func ParsePinch(text string) (around Target, factor float64, err error) {
	around, factor, err = parseAround(text)
	if err != nil || !(factor >= 0.1 && factor <= 10) || factor == 1 {
		return around, 0, fmt.Errorf("%q: write TARGET by FACTOR, such as 50%%,50%% by 2: from 0.1 to 10, and not 1", text)
	}
	return around, factor, nil
}

// ParseRotate reads "TARGET by DEGREES".
func ParseRotate(text string) (around Target, degrees float64, err error) {
	around, degrees, err = parseAround(text)
	if err != nil || !(degrees >= -360 && degrees <= 360) || degrees == 0 {
		return around, 0, fmt.Errorf("%q: write TARGET by DEGREES, such as 50%%,50%% by 90: from -360 to 360, and not 0", text)
	}
	return around, degrees, nil
}

func parseAround(text string) (around Target, by float64, err error) {
	i := strings.LastIndex(text, " by ")
	if i < 0 {
		return around, 0, errors.New("there is no by")
	}
	if by, err = strconv.ParseFloat(strings.TrimSpace(text[i+len(" by "):]), 64); err == nil {
		around, err = ParseTarget(text[:i])
	}
	return around, by, err
}

// addAround adds what two fingers move around.
func addAround(s Step, add func(Target, error)) {
	if s.Pinch != "" {
		t, _, err := ParsePinch(s.Pinch)
		add(t, err)
	}
	if s.Rotate != "" {
		t, _, err := ParseRotate(s.Rotate)
		add(t, err)
	}
}

// ParseNotches reads notches of the wheel: "5" down, "-5" up, "2,0" to the right.
func ParseNotches(text string) (dx, dy int, err error) {
	parts := strings.Split(text, ",")
	numbers := make([]int, 0, 2)
	for _, p := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < -1000 || n > 1000 {
			return 0, 0, fmt.Errorf("%q: write notches of the wheel: DY, down where positive, or DX,DY; at most 1000", text)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 1 {
		numbers = []int{0, numbers[0]}
	}
	if len(numbers) != 2 || numbers[0] == 0 && numbers[1] == 0 {
		return 0, 0, fmt.Errorf("%q: write notches of the wheel: DY, down where positive, or DX,DY, not both 0", text)
	}
	return numbers[0], numbers[1], nil
}

// Kind is what a condition of an end looks at.
type Kind string

// The conditions. EndRed and EndDone have the names that they have for a whole trial.
const (
	EndStill   Kind = "still"
	EndPicture Kind = "picture"
	EndChanged Kind = "changed"
	EndColour  Kind = "colour"
	EndNetwork Kind = "network"
	EndIsRed   Kind = "red"
	EndIsDone  Kind = "done"
)

// Condition is one condition of an end.
type Condition struct {
	Kind   Kind
	For    time.Duration // still, network: how long
	Frames int           // still: for how many frames, if not 0
	Target Target        // picture
	Name   string        // done: of the mark; "" is any
	Colour color.RGBA    // colour
	Within *Region       // still, changed, colour: nil is the content area
}

// Ending is what ends a step: all conditions at once.
type Ending struct {
	Conditions []Condition
	Text       string // as it was written
}

// Kinds names the conditions: "still+network".
func (e Ending) Kinds() string {
	var all []string
	for _, c := range e.Conditions {
		all = append(all, string(c.Kind))
	}
	return strings.Join(all, "+")
}

// Pictures lists the file names that steps need.
func Pictures(steps []Step) (names []string) {
	add := func(t Target, err error) {
		if err == nil && t.Picture != "" && !slices.Contains(names, t.Picture) {
			names = append(names, t.Picture)
		}
	}
	for _, s := range steps {
		add(ParseTarget(s.Click))
		add(ParseTarget(s.Move))
		add(ParseTarget(s.At))
		addAround(s, add)
		for _, way := range []string{s.Drag, s.Pan} {
			from, to, err := ParseWay(way)
			add(from, err)
			add(to, err)
		}
		for _, text := range []string{s.End, s.Wait} {
			if e, err := ParseEnd(text); err == nil {
				for _, c := range e.Conditions {
					add(c.Target, nil)
				}
			}
		}
		for _, name := range Pictures(s.Steps) {
			add(Target{Picture: name}, nil)
		}
	}
	return names
}

// Selectors lists the CSS selectors that a step aims at; those of the steps in it are not among them.
func Selectors(s Step) (all []string) {
	add := func(t Target, err error) {
		if err == nil && t.CSS != "" {
			all = append(all, t.CSS)
		}
	}
	for _, text := range []string{s.Click, s.Move, s.At} {
		add(ParseTarget(text))
	}
	addAround(s, add)
	for _, way := range []string{s.Drag, s.Pan} {
		from, to, err := ParseWay(way)
		add(from, err)
		add(to, err)
	}
	return all
}

// PlaceOf leads to the first step that needs a file.
func PlaceOf(steps []Step, file string) string { return placeOf(steps, file, "steps") }

func placeOf(steps []Step, file, path string) string {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		if place := placeOf(s.Steps, file, at+".steps"); place != "" {
			return place
		}
		s.Steps = nil
		if slices.Contains(slices.Concat(Pictures([]Step{s}), Gestures([]Step{s}), Chosen([]Step{s})), file) {
			return at
		}
	}
	return ""
}

// Gestures lists the files of recorded gestures that steps need.
func Gestures(steps []Step) (names []string) {
	for _, s := range steps {
		profiles, err := ParseProfiles(s.Replay)
		if s.Replay != "" && err != nil { // a name that nothing can be read from says so there
			profiles = []Profile{{File: s.Replay}}
		}
		for _, p := range profiles {
			names = append(names, p.File)
		}
		names = append(names, Gestures(s.Steps)...)
	}
	return names
}

// Chosen lists the files that steps choose in file dialogues.
func Chosen(steps []Step) (names []string) {
	for _, s := range steps {
		if s.Choose != "" {
			names = append(names, s.Choose)
		}
		names = append(names, Chosen(s.Steps)...)
	}
	return names
}

// Texts lists what steps type.
func Texts(steps []Step) (texts []string) {
	for _, s := range steps {
		if s.Type != "" {
			texts = append(texts, s.Type)
		}
		texts = append(texts, Texts(s.Steps)...)
	}
	return texts
}

// Defaults of the conditions, as written without a number.
const (
	usualStill   = time.Second
	usualNetwork = 500 * time.Millisecond
)

// ParseEnd reads conditions joined by "and".
func ParseEnd(text string) (Ending, error) {
	e := Ending{Text: strings.TrimSpace(text)}
	for part := range strings.SplitSeq(e.Text, " and ") {
		c, err := parseCondition(strings.Fields(part))
		if err != nil {
			return e, fmt.Errorf("end %q: %w", text, err)
		}
		e.Conditions = append(e.Conditions, c)
	}
	if len(e.Conditions) > 10 {
		return e, fmt.Errorf("end %q: more than 10 conditions", text)
	}
	return e, nil
}

func parseCondition(words []string) (c Condition, err error) {
	if len(words) == 0 {
		return c, fmt.Errorf("a condition is missing: still, picture FILE, changed, colour #RRGGBB, red, done or network")
	}
	c.Kind, words = Kind(words[0]), words[1:]
	if c.Kind == EndPicture {
		if len(words) == 0 {
			return c, fmt.Errorf("picture: name its file")
		}
		c.Target, err = parsePicture(strings.Join(words, " "))
		return c, err
	}
	if n := len(words); n >= 2 && words[n-2] == "in" {
		r, err := ParseRegion(words[n-1])
		if err != nil {
			return c, err
		}
		c.Within, words = &r, words[:n-2]
	}
	switch c.Kind {
	case EndStill:
		return c, c.parseStill(words)
	case EndNetwork:
		c.For = usualNetwork
		if len(words) > 0 {
			return c, c.parseTime(words)
		}
	case EndColour:
		if len(words) != 1 {
			return c, fmt.Errorf("colour: write #RRGGBB%s", behindHash("colour #e7f0e4"))
		}
		v, err := strconv.ParseUint(strings.TrimPrefix(words[0], "#"), 16, 24)
		if err != nil || len(words[0]) != 7 {
			return c, fmt.Errorf("colour %q: write #RRGGBB", words[0])
		}
		c.Colour = color.RGBA{byte(v >> 16), byte(v >> 8), byte(v), 255}
		return c, nil
	case EndIsDone:
		c.Name = unquote(strings.Join(words, " "))
		return c, nil
	case EndChanged, EndIsRed:
	default:
		return c, fmt.Errorf("%q is none of still, picture, changed, colour, red, done, network", c.Kind)
	}
	if len(words) > 0 && c.Kind != EndNetwork {
		return c, fmt.Errorf("%s: %q is too much", c.Kind, strings.Join(words, " "))
	}
	return c, nil
}

func (c *Condition) parseStill(words []string) error {
	c.For = usualStill
	switch {
	case len(words) == 0:
		return nil
	case len(words) == 2 && (words[1] == "frames" || words[1] == "frame"):
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || n > 100_000 {
			return fmt.Errorf("still %s frames: a number from 1 to 100000", words[0])
		}
		c.For, c.Frames = 0, n
		return nil
	}
	return c.parseTime(words)
}

func (c *Condition) parseTime(words []string) error {
	d, err := time.ParseDuration(words[0])
	if err != nil || len(words) != 1 || d <= 0 || d > time.Hour {
		return fmt.Errorf("%s %s: write a time such as 500ms or 2s", c.Kind, strings.Join(words, " "))
	}
	c.For = d
	return nil
}

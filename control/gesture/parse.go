// Package gesture carries out the input of steps (lab.Step): it reads their one-line form,
// lays out each gesture as a schedule of events, and sends the events at their absolute
// times through a controller. What flows out is a log of when each event was planned and in
// which interval the device can have got it.
//
// It finds no pictures and knows no browser: a target that is not a point is looked up by a
// function that the caller passes in.
package gesture

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"eidetic/control"
	"eidetic/internal/lab"
)

// MaxLine bounds the text that Parse reads.
const MaxLine = 64 << 10

// Parse reads steps in their one-line form: statements separated by semicolons or line breaks,
// each a verb with its value. Texts with semicolons stand in double quotes, in which \" and \\
// are a quote and a backslash, \n a line break and \t a tab.
//
//	key Ctrl+L; type "shop.example"; key Enter; wait still 1s
//	click 50%,40%; click picture lamp.png; click css #pay
//	scroll 5 at 50%,50% over 400ms; drag 50%,80% to 50%,20% over 300ms rate 1000
//
// The values are those of the fields of a plan's step; the words fingers, over and rate set fingers, over_ms and
// rate_hz. A # at the beginning of a line makes the line a comment.
func Parse(text string) ([]lab.Step, error) {
	if len(text) > MaxLine || !utf8.ValidString(text) {
		return nil, fmt.Errorf("steps: more than %d bytes, or not UTF-8", MaxLine)
	}
	var steps []lab.Step
	for n, line := range split(text) {
		s, err := parseStatement(line)
		if err != nil {
			return nil, fmt.Errorf("step %d, %q: %w", n+1, lab.Clip(line, 80), err)
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("there is no step: write statements such as key Ctrl+L; type \"x\"; wait still")
	}
	if len(steps) > lab.MaxSteps {
		return nil, fmt.Errorf("%d steps; at most %d", len(steps), lab.MaxSteps)
	}
	return steps, nil
}

// split cuts a text into statements, at semicolons and line breaks outside quotes.
func split(text string) (lines []string) {
	var b strings.Builder
	quoted, escaped, comment := false, false, false
	end := func() {
		if line := strings.TrimSpace(b.String()); line != "" {
			lines = append(lines, line)
		}
		b.Reset()
	}
	start := true // of a line
	for _, r := range text {
		switch {
		case comment:
			comment = r != '\n' && r != '\r'
			continue
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case !quoted && start && r == '#' && strings.TrimSpace(b.String()) == "":
			comment = true
			continue
		case !quoted && (r == ';' || r == '\n' || r == '\r'):
			end()
			start = r != ';' || start
			continue
		}
		if r != ' ' && r != '\t' {
			start = false
		}
		b.WriteRune(r)
	}
	end()
	return lines
}

// parseStatement reads one statement.
func parseStatement(line string) (s lab.Step, err error) {
	verb, rest := line, ""
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		verb, rest = line[:end], strings.TrimSpace(line[end:])
	}
	switch verb {
	case lab.VerbType:
		s.Type, err = text(rest)
	case lab.VerbKey:
		s.Key, err = text(rest)
	case lab.VerbOpen:
		s.Open, err = text(rest)
	case lab.VerbLaunch:
		s.Launch, err = text(rest)
	case lab.VerbMark:
		s.Mark, err = text(rest)
	case lab.VerbReplay:
		s.Replay, err = text(rest)
	case lab.VerbWait:
		s.Wait = rest
	case lab.VerbIdle:
		s.Idle = rest
	case lab.VerbClick:
		s.Click, s.Button = button(rest)
	case lab.VerbMove:
		s.Move = rest
	case lab.VerbScroll, lab.VerbDrag, lab.VerbPan, lab.VerbPinch, lab.VerbRotate:
		err = parseGesture(&s, verb, rest)
	case lab.VerbChoose:
		return s, errors.New("choose is a step of plans alone, because the file comes with the plan")
	default:
		return s, fmt.Errorf("%q is none of %s", verb, strings.Join(lab.Verbs()[:len(lab.Verbs())-1], ", "))
	}
	if err != nil {
		return s, err
	}
	if _, value := s.Verb(); value == "" {
		return s, fmt.Errorf("nothing follows %s", verb)
	}
	return s, check(s)
}

// check returns an error for a step that cannot be carried out, in words of the one-line form.
func check(s lab.Step) error {
	err := s.Check("")
	var at *lab.FieldError
	if errors.As(err, &at) {
		return at.Err
	}
	if err != nil {
		return err
	}
	return checkKeys(s)
}

// Check returns an error, a *lab.FieldError, for steps of a plan that cannot be carried out.
func Check(steps []lab.Step) error {
	return errors.Join(lab.CheckSteps(steps), checkAll(steps, "steps"))
}

func checkAll(steps []lab.Step, path string) error {
	var wrong []error
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := checkKeys(s); err != nil {
			verb, _ := s.Verb()
			wrong = append(wrong, &lab.FieldError{Path: at + "." + verb, Err: err})
		}
		wrong = append(wrong, checkAll(s.Steps, at+".steps"))
	}
	return errors.Join(wrong...)
}

// checkKeys returns an error for what no key types.
func checkKeys(s lab.Step) error {
	if s.Key != "" {
		_, err := control.ParseChord(s.Key)
		return err
	}
	if text := cmp.Or(s.Type, s.Choose); text != "" {
		_, err := control.CheckText(text)
		return err
	}
	return nil
}

// text reads a value that may stand in quotes.
func text(rest string) (string, error) {
	if !strings.HasPrefix(rest, `"`) {
		return rest, nil
	}
	var b strings.Builder
	escaped := false
	for i, r := range rest[1:] {
		switch {
		case escaped:
			switch r {
			case 'n':
				r = '\n'
			case 't':
				r = '\t'
			case '"', '\\':
			default:
				return "", fmt.Errorf("\\%c in quotes: only \\\", \\\\, \\n and \\t are known", r)
			}
			escaped = false
		case r == '\\':
			escaped = true
			continue
		case r == '"':
			if after := strings.TrimSpace(rest[i+2:]); after != "" {
				return "", fmt.Errorf("%q follows the closing quote", after)
			}
			return b.String(), nil
		}
		b.WriteRune(r)
	}
	return "", errors.New("the closing quote is missing")
}

// button splits a button's name from the end of a click.
func button(rest string) (target, name string) {
	for _, name := range []string{"left", "middle", "right"} {
		if before, ok := strings.CutSuffix(rest, " "+name); ok {
			return strings.TrimSpace(before), name
		}
	}
	return rest, ""
}

// parseGesture reads scroll, drag, pan, pinch and rotate with what may follow: at TARGET, fingers N, over TIME, rate N.
func parseGesture(s *lab.Step, verb, rest string) error {
	for {
		i := strings.LastIndexByte(rest, ' ')
		if i < 0 {
			break
		}
		before, value := strings.TrimSpace(rest[:i]), rest[i+1:]
		if head, ok := strings.CutSuffix(before, " over"); ok {
			d, err := time.ParseDuration(value)
			if err != nil {
				return fmt.Errorf("over %s: write a time such as 400ms", value)
			}
			s.Over, rest = float64(d)/1e6, head
			continue
		}
		if head, ok := strings.CutSuffix(before, " fingers"); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("fingers %s: write their number", value)
			}
			s.Fingers, rest = n, head
			continue
		}
		if head, ok := strings.CutSuffix(before, " rate"); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("rate %s: write events a second", value)
			}
			s.Rate, rest = n, head
			continue
		}
		break
	}
	switch verb {
	case lab.VerbScroll:
		s.Scroll, s.At, _ = strings.Cut(rest, " at ")
		s.Scroll, s.At = strings.TrimSpace(s.Scroll), strings.TrimSpace(s.At)
	case lab.VerbDrag:
		s.Drag = rest
	case lab.VerbPan:
		s.Pan = rest
	case lab.VerbPinch:
		s.Pinch = rest
	case lab.VerbRotate:
		s.Rotate = rest
	}
	return nil
}

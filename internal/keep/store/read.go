package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// Bounds on input. They are far above what a real run needs (ten trials of ten seconds
// are under a megabyte) and limit the memory that a hostile file can claim to some
// hundred megabytes.
const (
	MaxRunBytes  = 64 << 20  // of a run.json
	MaxTrials    = 5_000     // 5.5 KB and 40 objects each: a run.json of about 30 MB
	maxObjects   = 400_000   // '{' and '[' in a run.json
	maxValues    = 6_000_000 // ',' in a run.json
	maxDepth     = 64
	MaxLineBytes = 1 << 20 // of a line of replay.jsonl or events.jsonl
)

// DecodeRun reads a run.json that may come from anyone. Its errors name the field or
// line and what is wrong with it.
func DecodeRun(r io.Reader) (*lab.Run, error) {
	b, err := readBounded(r)
	if err != nil {
		return nil, err
	}
	return decodeRun(b)
}

func decodeRun(b []byte) (*lab.Run, error) {
	var run lab.Run
	if err := json.Unmarshal(b, &run); err != nil {
		return nil, fmt.Errorf("%s%w", place(b, err), bounded.Plain(err))
	}
	if err := checkRun(&run); err != nil {
		return nil, err
	}
	return &run, nil
}

// DecodeTrial reads a trial.json, as DecodeRun reads a run.json.
func DecodeTrial(r io.Reader) (*lab.Trial, error) {
	b, err := readBounded(r)
	if err != nil {
		return nil, err
	}
	return decodeTrial(b)
}

func decodeTrial(b []byte) (*lab.Trial, error) {
	var t lab.Trial
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("%s%w", place(b, err), bounded.Plain(err))
	}
	return &t, checkTrial(&t)
}

// readBounded reads a JSON text whose decoding needs a bounded amount of memory.
func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxRunBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxRunBytes {
		return nil, fmt.Errorf("larger than %d MiB", MaxRunBytes>>20)
	}
	return b, checkBounds(b)
}

// checkBounds refuses text that would need far more memory than it has bytes.
func checkBounds(b []byte) error {
	var objects, values, depth int
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			objects++
			depth++
			if depth > maxDepth {
				return fmt.Errorf("byte %d: nested deeper than %d", i, maxDepth)
			}
			if objects > maxObjects {
				return fmt.Errorf("byte %d: more than %d objects and lists", i, maxObjects)
			}
		case '}', ']':
			depth--
		case ',':
			values++
			if values > maxValues {
				return fmt.Errorf("byte %d: more than %d values", i, maxValues)
			}
		}
	}
	return nil
}

func place(b []byte, err error) string {
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default:
		return ""
	}
	offset = min(max(offset, 0), int64(len(b)))
	return fmt.Sprintf("line %d: ", 1+bytes.Count(b[:offset], []byte{'\n'}))
}

// checkRun refuses values that the types allow but that our runs never contain.
func checkRun(run *lab.Run) error {
	if !ValidID(run.ID) {
		return fmt.Errorf("id: %.140q is not a run ID", run.ID)
	}
	switch run.State {
	case StateRunning, StateDone, StateFailed, StateInterrupted:
	default:
		return fmt.Errorf("state: %.40q is not running, done, failed or interrupted", run.State)
	}
	if len(run.Trials) > MaxTrials {
		return fmt.Errorf("trials: %d, more than %d", len(run.Trials), MaxTrials)
	}
	if err := run.Plan.CheckCells(); err != nil { // it bounds the views of the run
		return fmt.Errorf("plan.%w", err)
	}
	if len(run.Cells) > lab.MaxCells {
		return fmt.Errorf("cells: %d, more than %d", len(run.Cells), lab.MaxCells)
	}
	seen := make(map[int]bool, len(run.Trials))
	for i, t := range run.Trials {
		if t == nil {
			return fmt.Errorf("trials[%d]: null", i)
		}
		if t.Number < 1 || t.Number > MaxTrials || seen[t.Number] {
			return fmt.Errorf("trials[%d].number: %d is outside 1 … %d or a duplicate", i, t.Number, MaxTrials)
		}
		seen[t.Number] = true
		if err := checkTrial(t); err != nil {
			return fmt.Errorf("trials[%d].%w", i, err)
		}
	}
	return nil
}

func checkTrial(t *lab.Trial) error {
	for name, file := range t.Files {
		if !filepath.IsLocal(file) {
			return fmt.Errorf("files.%.40q: %.140q leaves the trial's folder", name, file)
		}
	}
	if err := checkSpans(t.Spans); err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	return nil
}

func checkSpans(spans []*lab.Span) error {
	for _, s := range spans {
		if s == nil {
			return errors.New("null")
		}
		if err := checkSpans(s.Children); err != nil {
			return err
		}
	}
	return nil
}

// Served holds the lines read from a replay log.
type Served struct {
	Lines []lab.Served
	// More counts the lines beyond the limit.
	More int
	// Cut is set if the last line is incomplete because the writer was killed.
	Cut bool
}

// DecodeServed reads at most limit lines of a replay.jsonl that may come from anyone. An
// incomplete last line without a newline is left out; any other damage is an error that
// names the line.
func DecodeServed(r io.Reader, limit int) (*Served, error) {
	s := &Served{}
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if len(s.Lines) >= limit {
				s.More++
			} else {
				var one lab.Served
				if err := json.Unmarshal(line, &one); err != nil {
					if last {
						s.Cut = true
						return s, nil
					}
					return s, fmt.Errorf("line %d: %w", n, err)
				}
				s.Lines = append(s.Lines, one)
			}
		}
		if last {
			return s, nil
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > MaxLineBytes {
			return nil, fmt.Errorf("longer than %d bytes", MaxLineBytes)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

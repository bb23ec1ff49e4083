// Package benchtable is the list that a benchmark leaves behind: one line for each number, beside that of
// a peer where there is one, as JSON in out/bench. In go numbers; out comes the file.
package benchtable

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

// Main is the main function of a benchmark, which Ctrl-C ends.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	Exit(name, run(ctx))
}

// Exit ends a benchmark that failed.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// What is better.
const (
	Lower  = "lower"
	Higher = "higher"
)

// Result is one line of the list.
type Result struct {
	Name   string   `json:"name"`
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"`
	Better string   `json:"better"`
	Low    *float64 `json:"low,omitempty"` // of a 95 % interval
	High   *float64 `json:"high,omitempty"`
	Pairs  int      `json:"pairs,omitempty"` // that the number is of
	Peer   string   `json:"peer,omitempty"`
	PeerV  *float64 `json:"peer_value,omitempty"`
	// Ratio is how many times better the value is than the peer's.
	Ratio float64 `json:"ratio,omitempty"`
	// Missing says why the peer was not measured.
	Missing string `json:"missing,omitempty"`
	// P is how often the two would differ as much if they were alike.
	P *float64 `json:"p,omitempty"`
	// Goal is of the ratio or of the value, as the benchmark says.
	Goal *float64 `json:"goal,omitempty"`
	// Commit is what was measured: Write fills it in.
	Commit string `json:"commit,omitempty"`
}

// Less is a result of which less is better.
func Less(name string, value float64, unit string) Result {
	return Result{Name: name, Value: value, Unit: unit, Better: Lower}
}

// More is a result of which more is better.
func More(name string, value float64, unit string) Result {
	return Result{Name: name, Value: value, Unit: unit, Better: Higher}
}

// Against returns the result beside the value of a peer.
func (r Result) Against(peer string, value float64) Result {
	r.Peer, r.PeerV, r.Ratio = peer, &value, 0
	if value > 0 && r.Value > 0 { // a ratio with nothing says nothing
		r.Ratio = r.Value / value
		if r.Better == Lower {
			r.Ratio = value / r.Value
		}
	}
	return r
}

// Without returns the result for a peer that could not be measured.
func (r Result) Without(peer string, why error) Result {
	r.Peer, r.Missing = peer, why.Error()
	return r
}

// Within returns the result with its interval, which is of so many pairs.
func (r Result) Within(low, high float64, pairs int) Result {
	r.Low, r.High, r.Pairs = &low, &high, pairs
	return r
}

// Aim returns the result with its goal.
func (r Result) Aim(goal float64) Result {
	r.Goal = &goal
	return r
}

// AimAbove returns the result with its goal, if that is more than nothing.
func (r Result) AimAbove(goal float64) Result {
	if goal > 0 {
		return r.Aim(goal)
	}
	return r
}

// AimText is the goal in words, or "".
func (r Result) AimText() string {
	if r.Goal == nil {
		return ""
	}
	return fmt.Sprintf("%g", *r.Goal)
}

// PeerText is the peer's value and name, or "".
func (r Result) PeerText() string {
	if r.PeerV == nil {
		return ""
	}
	return fmt.Sprintf("%.4g  %s", *r.PeerV, r.Peer)
}

// Write writes the list to a file, in a folder that is made if need be, with the commit of the tree that the program
// was started in. Numbers that JSON does not have are an error that names their line.
func Write(file string, list []Result) error {
	for _, r := range list {
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			return fmt.Errorf("%s: %q is %v", file, r.Name, r.Value)
		}
	}
	list = slices.Clone(list)
	for at, i := commit("."), 0; i < len(list); i++ {
		list[i].Commit = at
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

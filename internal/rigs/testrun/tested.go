package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// testedFile is where a whole make test-all that passed says so. It is committed, so that CI knows what has not changed since.
var testedFile = filepath.Join(".ci", "tested")

// tested is the content of that file.
type tested struct {
	Commit      string             `json:"commit"`
	Date        string             `json:"date"`
	Processors  int                `json:"processors"`
	Speed       float64            `json:"speed"` // of one processor: see speed
	Seconds     float64            `json:"seconds"`
	Tests       int                `json:"tests"`
	SecondTries []string           `json:"second_tries"`
	Parts       map[string]float64 `json:"parts"` // seconds, by the names of rest.go
}

// readTested returns the zero value where there is no such file.
func readTested() (t tested) {
	text, err := os.ReadFile(testedFile)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return tested{}
	}
	return t
}

// slower returns how many times longer this machine takes than the one of make test-all.
func (t tested) slower() float64 {
	if t.Speed == 0 {
		return 1
	}
	return max(1, t.Speed/speed())
}

// speed measures one processor: MB per second of SHA-256 over small blocks, which fit its caches. It tells a machine
// that is three times slower from another, and nothing finer.
func speed() float64 {
	block, n := make([]byte, 8<<10), 0
	began := time.Now()
	for time.Since(began) < 100*time.Millisecond {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
		n += len(block)
	}
	return float64(n) / 1e6 / time.Since(began).Seconds()
}

// writeTested writes the file after a make test-all that passed.
func (s *session) writeTested(ctx context.Context, passed int, second []string) error {
	dirty, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+testedFile).Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if len(dirty) > 0 {
		return fmt.Errorf("%s is not written, because there are changes that are not committed", testedFile)
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	t := tested{
		Commit: strings.TrimSpace(string(commit)), Date: time.Now().UTC().Format(time.RFC3339),
		Processors: runtime.NumCPU(), Speed: math.Round(speed()), Seconds: math.Round(time.Since(s.began).Seconds()), Tests: passed,
		SecondTries: append([]string{}, second...), Parts: map[string]float64{},
	}
	for _, o := range s.first {
		name := longName(o.Package)
		if strings.HasPrefix(o.job.name, "race") {
			name = raceName(o.Package)
		}
		t.Parts[name] += o.took.Seconds()
	}
	boots, container := 0.0, 0.0
	for _, n := range s.notes {
		switch n.Name {
		case "image", "boot":
			boots += n.Seconds
		case "container":
			container = n.Seconds
		case staticcheckName, benchRegressName:
			t.Parts[n.Name] = n.Seconds
		}
	}
	t.Parts[containerName] = container + t.Parts[longName(containerPackage)]
	t.Parts[bootsName] = boots
	maps.DeleteFunc(t.Parts, func(name string, seconds float64) bool {
		return seconds < 1 || name == longName(containerPackage) || name == longName(boxPackage)
	})
	for name, seconds := range t.Parts {
		t.Parts[name] = math.Round(seconds*10) / 10
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(testedFile, append(text, '\n'), 0o644)
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// proofsFile says of each part of the rest at which commit it last passed. It is committed, so that CI and make
// test-all know what has not changed since.
var proofsFile = filepath.Join(".ci", "tested")

// proof is a row of that file, which is a JSON object by the parts' names.
type proof struct {
	Commit      string   `json:"commit"`
	Date        string   `json:"date"`
	Seconds     float64  `json:"seconds"`
	Speed       float64  `json:"speed"` // of one processor there: see speed
	SecondTries []string `json:"second_tries,omitempty"`
}

// readProofs returns none where there is no such file.
func readProofs() map[string]proof {
	proofs := map[string]proof{}
	text, err := os.ReadFile(proofsFile)
	if err == nil {
		err = json.Unmarshal(text, &proofs)
	}
	if err != nil {
		return map[string]proof{}
	}
	return proofs
}

// writeProof adds a part that passed, unless there are changes that are not committed.
func writeProof(ctx context.Context, part string, p proof) error {
	dirty, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+proofsFile).Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	if len(dirty) > 0 {
		return errors.New("there are changes that are not committed")
	}
	p.Commit, p.Date, p.Speed = strings.TrimSpace(string(commit)), time.Now().UTC().Format(time.RFC3339), math.Round(speed())
	proofs := readProofs()
	proofs[part] = p
	text, err := json.MarshalIndent(proofs, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(proofsFile+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(proofsFile+".new", proofsFile)
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

package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// The load takes time of its thread, and Read gets from a process what Serve prints.
func TestMeter(t *testing.T) {
	var printed bytes.Buffer
	if err := Serve(&printed); err != nil {
		t.Fatal(err)
	}
	var r lab.MeterReading
	if err := json.Unmarshal(printed.Bytes(), &r); err != nil || r.Processor <= 0 || r.Wall <= 0 {
		t.Fatalf("Serve() printed %s, %v; want two times", printed.Bytes(), err)
	}
	got, err := Read(context.Background(), []string{"echo", strings.TrimSpace(printed.String())})
	if err != nil || got != r {
		t.Errorf("Read() = %+v, %v; want %+v", got, err, r)
	}
	for _, command := range [][]string{{"false"}, {"echo", "no reading"}, {"/nowhere/appliance", "meter"}} {
		if _, err := Read(context.Background(), command); err == nil {
			t.Errorf("Read(%q) has no error", command)
		}
	}
}

// TestBusy: what a machine is too busy for is told as that, not as the signal that ended it.
func TestBusy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Read(ctx, []string{"sleep", "60"}); err == nil || !strings.Contains(err.Error(), "too busy") {
		t.Errorf("Read() = %v, want that the machine is too busy", err)
	}
}

// The same work each time, on every machine.
func TestLoadIsFixed(t *testing.T) {
	if got := [3]uint32{fillAndJump(), branch(), tree()}; got != [3]uint32{fillAndJump(), branch(), tree()} {
		t.Errorf("two loads differ: %v", got)
	}
}

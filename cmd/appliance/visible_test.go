package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/reel"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/tell/terminal"
)

// TestLongAddressesAreBrief: an address of a request with kilobytes of data in it leaves the rest of a message readable.
func TestLongAddressesAreBrief(t *testing.T) {
	long := "https://t.example/collect?d=" + strings.Repeat("é", 9000)
	why := "2 of 40 requests were not in the archive, first GET " + long + ": see the replay log"
	trial := terminal.TrialResult(&lab.Trial{Invalid: []string{why, "the clock \x1b[31mstepped"}})
	for name, got := range map[string]string{"the result of a trial": trial, "an error": told(errors.New(why))} {
		if len(got) > 400 || !strings.Contains(got, "first GET https://t.example/collect?d=é") || !strings.Contains(got, "more bytes) see the replay log") {
			t.Errorf("%s: got %d bytes, %q; want the address cut, and the rest", name, len(got), got)
		}
	}
	if !strings.HasSuffix(trial, `; the clock \x1b[31mstepped`) {
		t.Errorf("the result of a trial = %q; want what is an order to the terminal as an escape", trial)
	}
	plain := strings.Repeat("word ", 500)
	if got := terminal.Brief(plain); got != plain {
		t.Errorf("brief() of short words = %q; want it as it is", got)
	}
}

// TestReelsTextsAreNoOrders: the texts of somebody else's reel order the terminal about neither as a table nor as JSON,
// which still means the same.
func TestReelsTextsAreNoOrders(t *testing.T) {
	const order = "vnc \x1b]52;c;bHM=\x07\x7f\u009b2J\u202e"
	file := filepath.Join(t.TempDir(), "strange.reel")
	format := lab.Format{Width: 2, Height: 1, Pixels: lab.BGRX, Rate: 60}
	w, err := reel.Create(file, reel.Header{Format: format, Source: order, NotLossless: order})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.WriteFrame(lab.Frame{Pix: make([]byte, 8)}), w.WriteEvent(lab.SourceEvent{Kind: order, Before: 1, Detail: order}),
		w.WriteGap(lab.Gap{Before: 1, Count: 1, Reason: order}),
		w.WriteFrame(lab.Frame{FrameInfo: lab.FrameInfo{Seq: 2, Time: 1}, Pix: make([]byte, 8)}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"info"}, {"info", "--json"}, {"verify"}} {
		status, out, errs := invoke(t, append(append([]string{"reel"}, args...), file)...)
		if status != exitGood || strings.ContainsAny(out+errs, "\x1b\x07\x7f\u009b\u202e") {
			t.Errorf("reel %v: status %d, and the terminal gets %q", args, status, out+errs)
		}
		if len(args) == 1 {
			continue
		}
		var info reel.Summary
		err := json.Unmarshal([]byte(out), &info)
		if err != nil || info.Source != order || len(info.Events) != 1 || info.Events[0].Detail != order {
			t.Errorf("reel %v: %v, source %q; want the reel's own texts", args, err, info.Source)
		}
	}
}

// TestBudgetsInColours: a line in a colour has the order for it, and no escape of that.
func TestBudgetsInColours(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	run := reporttest.Compared(1, 6, 0)
	run.Plan.Budgets = map[string]lab.Budget{"speed_index_ms": {Max: 1}}
	for _, columns := range []uint16{40, 200} {
		got := onTerminal(t, columns, func(f *os.File) {
			to := terminal.New(f)
			terminal.Found(&to, run, true)
		})
		if !strings.Contains(got, "\x1b[31mBudget: ") || strings.Contains(got, `\x1b`) {
			t.Errorf("%d columns: %q; want the budget in red", columns, got)
		}
	}
}

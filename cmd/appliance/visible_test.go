package main

import (
	"errors"
	"strings"
	"testing"

	"eidetic/internal/lab"
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

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestShell: what a shell, a reader of manuals and a person who tries the usual words get.
func TestShell(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		out    string
		err    string
	}{
		{[]string{"--version"}, exitGood, "appliance ", ""},
		{[]string{"help", "archive", "import"}, exitGood, "appliance archive import <out> <in>", ""},
		{[]string{"help"}, exitGood, "Usage: appliance <command>", ""},
		{[]string{"help", "--x"}, exitUsage, "", "name a command"},
		{[]string{"help", "nonsense"}, exitUsage, "", "nonsense"},
		{[]string{"completion", "csh"}, exitUsage, "", "bash, zsh or fish"},
		{[]string{"completion", "fish"}, exitGood, "complete -f -c appliance", ""},
		{[]string{"man"}, exitGood, ".TH APPLIANCE 1", ""},
		{[]string{"run", "a.yaml", "--plan", "b.yaml"}, exitUsage, "", "name one plan"},
		{[]string{"run", "/nowhere/a.yaml"}, exitUsage, "", "/nowhere/a.yaml"},
	} {
		var out, stderr bytes.Buffer
		got := run(t.Context(), c.args, &streams{nil, &out, &stderr})
		if got != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("%q: status %d, %.300q, %.300q; want %d, %q, %q", c.args, got, out.String(), stderr.String(), c.status, c.out, c.err)
		}
	}
	for line, want := range map[string]string{"appliance mea": "measure", "appliance measure --on": "--on-dialog", "appliance archive imp": "import"} {
		t.Setenv("COMP_LINE", line)
		var out bytes.Buffer
		run(t.Context(), nil, &streams{nil, &out, &out})
		if !slices.Contains(strings.Fields(out.String()), want) {
			t.Errorf("%q goes on with %q; want %s", line, out.String(), want)
		}
	}
}

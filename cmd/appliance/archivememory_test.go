package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive/archivetest"
)

// mostKB is what a command may take for an archive of at most a megabyte.
const mostKB = 300_000

// TestArchiveMemory: no command takes more than 300 MB for a hostile archive of up to a megabyte. In make test, the
// commands that do most with an archive meet the one that took most of them.
func TestArchiveMemory(t *testing.T) {
	for _, h := range archivetest.Set() {
		if testing.Short() && h.Name != "plain-page.warc.gz" {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			dir := testlab.TempDir(t)
			content := h.Make()
			in := func(name string) string { return filepath.Join(dir, name) }
			for name, args := range map[string][]string{
				"ls":           {"ls", in("a")},
				"ls json":      {"ls", in("a"), "--json"},
				"cat":          {"cat", in("a"), "0"},
				"cat heads":    {"cat", in("a"), "*", "--headers"},
				"verify":       {"verify", in("a")},
				"verify json":  {"verify", in("a"), "--json"},
				"rm":           {"rm", in("a"), "--partial", "--url", "*"},
				"rm some":      {"rm", in("a"), "--partial", "--id", "0"},
				"edit":         {"edit", in("a"), "--partial", "--url", "*", "--status", "201"},
				"edit rules":   {"edit", in("a"), "--partial", "--url", "*", "--ignore", "t"},
				"trim":         {"trim", in("a"), "--partial", "--until", "1h"},
				"trim some":    {"trim", in("a"), "--partial", "--id", "0", "--id", "1"},
				"trim page":    {"trim", in("a"), "--partial", "--page", "http://a.test/1"},
				"merge":        {"merge", in("out.wacz"), in("a"), in("a"), "--partial"},
				"import":       {"import", in("out.wacz"), in("a"), "--partial"},
				"export har":   {"export", in("a"), "--out", in("out.har"), "--partial"},
				"export warc":  {"export", in("a"), "--out", in("out.warc.gz"), "--partial"},
				"export wprgo": {"export", in("a"), "--out", in("out.wprgo"), "--partial"},
				"export wacz":  {"export", in("a"), "--out", in("out.wacz"), "--partial"},
				"inspect":      {"inspect", in("a"), "1000000000"},
				"replay":       {"replay", "--archive", in("a"), "--proxy", "127.0.0.1:0", "--http", "127.0.0.1:0"},
			} {
				if testing.Short() && name != "import" && name != "replay" {
					continue
				}
				if err := os.WriteFile(in("a"), content, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, left := range []string{"out.wacz", "out.har", "out.warc.gz", "out.wprgo"} {
					_ = os.Remove(in(left)) // it need not be there
				}
				if name != "inspect" && name != "replay" {
					args = append([]string{"archive"}, args...)
				}
				kB, said := peakOf(t, args)
				if kB > mostKB {
					t.Errorf("%s of %d bytes took %d kB of memory; want at most %d: %.300s", name, len(content), kB, mostKB, said)
				}
				t.Logf("%-12s %4d MB  %.120q", name, kB/1000, said)
			}
		})
	}
}

// peakOf is the most memory that a command took, and what it said. A replay is ended when it listens.
func peakOf(t *testing.T, args []string) (kB int64, said string) {
	t.Helper()
	cmd := appliance(t, args...)
	account := filepath.Join(testlab.TempDir(t), "status")
	cmd.Env = append(cmd.Env, peakFile+"="+account)
	cmd.Stdout = io.Discard
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "127.0.0.1:") {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}
	_ = cmd.Wait() // whether the archive is refused does not matter
	text, err := os.ReadFile(account)
	if err != nil {
		t.Fatalf("%q left no account of its memory: %v: %s", args, err, said)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no peak in %s", text)
	}
	kB, err = strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB, said
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"eidetic/internal/tell/report/reporttest"
)

// onTerminal has something printed on a terminal of so many columns, and returns what came.
func onTerminal(t *testing.T, columns uint16, print func(*os.File)) string {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	if err := unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	came := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(outer) // it ends with an error once nobody has the inner end
		came <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	print(inner)
	inner.Close()
	return <-came
}

// plainText is a text without colours.
func plainText(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

// checkWidth fails where a line is longer than the terminal, unless it is one word, such as a path.
func checkWidth(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(plainText(text)) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > columns && strings.Contains(line, " ") {
			t.Errorf("a line of %d characters on %d columns: %q", utf8.RuneCountInString(line), columns, line)
		}
	}
}

// TestCompareOnATerminal: within 80 columns, in colours unless nobody wants them, and without the line that is for
// scripts; which is all that --quiet prints.
func TestCompareOnATerminal(t *testing.T) {
	dir := t.TempDir()
	old := writeResult(t, filepath.Join(dir, "old", "run.json"), reporttest.Run(1, 12))
	slower := writeResult(t, filepath.Join(dir, "new", "run.json"), later(12, 400))
	if err := os.WriteFile(filepath.Join(dir, "new", "report.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	compare := func(columns uint16, more ...string) string {
		return onTerminal(t, columns, func(f *os.File) {
			args := append([]string{"compare", "--reference", old, slower}, more...)
			if status := run(t.Context(), args, &streams{nil, f, f}); status != exitFailed {
				t.Errorf("%q: status %d, want %d", args, status, exitFailed)
			}
		})
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	got := compare(80)
	checkWidth(t, got, 80)
	if !strings.Contains(got, "\x1b[31mslower\x1b[0m") || strings.Contains(got, "result:") || strings.Contains(got, "●") {
		t.Errorf("80 columns: %q; want colours, and neither bars, for which there is no room, nor the line for scripts", got)
	}
	if page := filepath.Join(dir, "new", "report.html"); !strings.Contains(strings.Join(strings.Fields(plainText(got)), " "), "The run's report opens from disk: "+page) {
		t.Errorf("%s is not named in:\n%s", page, got)
	}
	wide := compare(120)
	checkWidth(t, wide, 120)
	if !strings.Contains(wide, "●") {
		t.Errorf("120 columns: %q; want bars", wide)
	}
	t.Setenv("NO_COLOR", "1")
	if bare := compare(80); strings.Contains(bare, "\x1b") || bare != plainText(got) {
		t.Errorf("NO_COLOR: %q; want the same without colours as %q", bare, plainText(got))
	}
	quiet := compare(80, "--quiet")
	if !strings.HasPrefix(quiet, "result: verdict=slower metric=speed_index_ms unit=ms control=") || strings.Count(quiet, "\n") != 1 {
		t.Errorf("--quiet: %q; want one line", quiet)
	}
}

// TestPanelsPort: the usual port may be taken, and another one is; one that was asked for must be free.
func TestPanelsPort(t *testing.T) {
	taken, err := net.Listen("tcp", usualPanel)
	if err == nil { // else somebody else has it
		defer taken.Close()
	}
	var said bytes.Buffer
	std := &streams{nil, &said, &said}
	at, err := localRun{}.listen(t.Context(), std)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if want := "Port 8080 is taken by another program: the panel will be at http://" + at.Addr().String() + "/\n"; said.String() != want || at.Addr().String() == usualPanel {
		t.Errorf("the usual port: %q; want %q", said.String(), want)
	}
	if at, err := (localRun{panelFlags: panelFlags{Listen: usualPanel}}).listen(t.Context(), std); err == nil || statusOf(err) != exitCannot {
		t.Errorf("a port that was asked for: %v, %v; want an error", at, err)
	}
	for name, l := range map[string]localRun{"json": {outcomeFlags: outcomeFlags{JSON: true}}, "quiet": {outcomeFlags: outcomeFlags{Quiet: true}}} {
		if at, err := l.listen(t.Context(), std); at != nil || err != nil {
			t.Errorf("--%s: %v, %v; want no panel", name, at, err)
		}
	}
}

package boottest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
	"eidetic/internal/rigs/testlab"
)

// testInstaller answers the installer on the console, which writes the second disk, and boots
// a machine that has only that disk.
func testInstaller(t *testing.T) {
	b := NewBox(t, BoxOptions{Second: 3 << 30})
	// Make the boot loader start the entry that a person would choose in its menu.
	if err := b.ESP(func(v *fat.Volume) error {
		if err := v.Remove("loader/loader.conf"); err != nil {
			return err
		}
		const text = "default install.conf\ntimeout 0\n"
		return v.Create("loader/loader.conf", int64(len(text)), strings.NewReader(text), time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ question, answer string }{
		{"(Enter: none):", "1"},
		{"type its name, vdb:", "vda"}, // a mistake
		{"nothing was changed.", ""},
		{"(Enter: none):", "1"},
		{"type its name, vdb:", "vdb"},
		{"press Enter to restart:", ""},
	} {
		b.awaitConsole(t, step.question)
		if step.question == "press Enter to restart:" {
			break
		}
		if step.question != "nothing was changed." {
			b.typeLine(t, step.answer)
		}
	}
	t.Logf("the console shows:\n%s", last(b.Console(), 1200))
	b.Run(t, "sync")
	b.cut(t)

	disk := filepath.Join(t.TempDir(), "installed.img")
	if err := os.Rename(b.SecondDisk(), disk); err != nil {
		t.Fatal(err)
	}
	// The copied disk would start the installer again; a person would not have changed its menu.
	installed := NewBox(t, BoxOptions{Image: disk, Disk: 3 << 30})
	if err := installed.ESP(func(v *fat.Volume) error { return v.Remove("loader/loader.conf") }); err != nil {
		t.Fatal(err)
	}
	installed.On(t)
	testDataPartition(t, installed)
}

// awaitConsole waits until the console shows a text after the last typed line.
func (b *Box) awaitConsole(t *testing.T, text string) {
	t.Helper()
	wait, cancel := timeout(t)
	defer cancel()
	for !strings.Contains(b.Console()[b.typed:], text) {
		select {
		case <-wait.Done():
			t.Fatalf("the console does not show %q:\n%s", text, last(b.Console(), 2000))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// typeLine answers the console.
func (b *Box) typeLine(t *testing.T, line string) {
	t.Helper()
	b.typed = len(b.Console())
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := b.Type(ctx, line+"\r"); err != nil {
		t.Fatal(err)
	}
}

// plugStick plugs in a USB stick with an update, formatted as another computer would
// format it.
func (b *Box) plugStick(t *testing.T, bundle string) {
	t.Helper()
	stick := filepath.Join(t.TempDir(), "stick.img")
	if err := os.WriteFile(stick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(stick, 300<<20); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{testlab.NeedProgram(t, "mkfs.fat"), "-F", "32", stick},
		{testlab.NeedProgram(t, "mcopy"), "-i", stick, bundle, "::Eidetic, the new one.update"},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if err := b.PlugStick(t.Context(), stick); err != nil {
		t.Fatal(err)
	}
}

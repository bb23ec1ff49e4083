package hostile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"eidetic/netlab/archive"
	"eidetic/netlab/archive/archivetest"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
)

// fileOf names, in the environment of a child, the file that it opens.
const fileOf = "EIDETIC_HOSTILE_FILE"

// mostMemory is what a file of at most a megabyte may take, in kB.
const mostMemory = 300_000

func TestMain(m *testing.M) {
	if file := os.Getenv(fileOf); file != "" {
		fmt.Println(use(file))
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(string(status))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// use does with a recording all that the program can do with one, and says how that went.
func use(file string) string {
	a, err := archive.OpenWithFiles(file, archive.Limits{}) // as the import does, which reads most
	if err != nil {
		return "refused: " + err.Error()
	}
	words := []string{fmt.Sprintf("read: %d exchanges, %d problems", a.Info().Exchanges, len(archive.Assess(a).Problems))}
	if _, err := replay.Prepare(a, inject.Options{}); err != nil {
		words = append(words, "not replayed: "+err.Error())
	}
	if err := archive.WriteHAR(io.Discard, a); err != nil {
		words = append(words, "not exported: "+err.Error())
	}
	if _, err := archive.ExportWPR(io.Discard, a); err != nil {
		words = append(words, "not exported as .wprgo: "+err.Error())
	}
	if _, err := a.Import(); err != nil {
		words = append(words, "not imported: "+err.Error())
	}
	if err := archive.Save(file+".wacz", archive.Merge(a, a)); err != nil {
		words = append(words, "not merged: "+err.Error())
	}
	if err := archive.WriteWARC(file+".warc.gz", a); err != nil {
		words = append(words, "not written: "+err.Error())
	}
	return strings.Join(words, "; ")
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// TestMemory: no archive of up to a megabyte takes more than 300 MB, and each is read, or refused with
// its reason.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	// In make test those that once took most.
	once := []string{"one-zstd.warc", "one-gzip.warc", "base.warc", "utf16.warc", "header-lines.warc.gz", "percent-paths.warc.gz"}
	for _, h := range archivetest.Set() {
		if testing.Short() && !slices.Contains(once, h.Name) {
			continue
		}
		file := filepath.Join(dir, h.Name)
		content := h.Make()
		if len(content) > archivetest.MaxBytes {
			t.Errorf("%s has %d bytes, want at most %d", h.Name, len(content), archivetest.MaxBytes)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fileOf+"="+file)
		out, err := cmd.CombinedOutput()
		said, status, _ := strings.Cut(string(out), "\n")
		found := peak.FindStringSubmatch(status)
		if err != nil || found == nil {
			t.Errorf("%s: %v: %.2000s", h.Name, err, out)
			continue
		}
		kB, err := strconv.Atoi(found[1])
		if err != nil || kB > mostMemory {
			t.Errorf("%s of %d bytes took %d kB of memory, want at most %d: %s", h.Name, len(content), kB, mostMemory, said)
		}
		t.Logf("%-24s %7d bytes  %4d MB  %5.1f s  %.160s", h.Name, len(content), kB/1000, cmd.ProcessState.UserTime().Seconds(), said)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

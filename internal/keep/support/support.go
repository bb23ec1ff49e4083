// Package support makes a file for whoever helps with a box that does not work: a gzipped tar
// file of texts, from which secrets are removed. In go texts and values; every one of them
// passes the [redact.Redactor] before it is written, so that no caller can forget it.
package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/keep/redact"
)

// maxText bounds each text of a bundle.
const maxText = 4 << 20

// Bundle writes a support bundle.
type Bundle struct {
	zip    *gzip.Writer
	tar    *tar.Writer
	clean  *redact.Redactor
	made   time.Time
	listed bytes.Buffer
}

// New begins a bundle.
func New(w io.Writer, clean *redact.Redactor, made time.Time) *Bundle {
	zip := gzip.NewWriter(w)
	return &Bundle{zip: zip, tar: tar.NewWriter(zip), clean: clean, made: made}
}

// Text adds a text. Of one that is too long the end is kept.
func (b *Bundle) Text(name, text string) error {
	clean := b.clean.Text(strings.ToValidUTF8(text, "\uFFFD"))
	if len(clean) > maxText {
		clean = "… cut off\n" + strings.ToValidUTF8(clean[len(clean)-maxText:], "")
	}
	return b.write(name, []byte(clean))
}

// JSON adds a value.
func (b *Bundle) JSON(name string, v any) error {
	text, err := b.clean.JSON(v)
	if err != nil {
		return b.Failed(name, err)
	}
	return b.write(name, append(text, '\n'))
}

// Failed notes that a part could not be had.
func (b *Bundle) Failed(name string, why error) error {
	return b.Text(name+".error.txt", why.Error()+"\n")
}

func (b *Bundle) write(name string, content []byte) error {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: "support/" + name, Size: int64(len(content)), Mode: 0o600, ModTime: b.made.Round(time.Second),
	}
	err := b.tar.WriteHeader(h)
	if err == nil {
		_, err = b.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write the support bundle: %w", err)
	}
	fmt.Fprintf(&b.listed, "%8d %s\n", len(content), name)
	return nil
}

// Close ends the bundle with a file that says what is in it.
func (b *Bundle) Close() error {
	text := "What is in this support bundle, in bytes. Passwords, tokens, keys, cookies, and the queries of addresses are removed\n" +
		"(" + redact.Removed + "); names of runs, pages, devices and hosts are not. Look through it before you send it.\n\n" + b.listed.String()
	return errors.Join(b.write("README.txt", []byte(text)), b.tar.Close(), b.zip.Close())
}

// Hardware describes the machine below root: kernel, processors, memory, disks and network ports. Serial
// numbers and hardware addresses are not in it.
func Hardware(root string) string {
	var out strings.Builder
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		fmt.Fprintf(&out, "kernel: %s %s %s\n", unix.ByteSliceToString(name.Sysname[:]), unix.ByteSliceToString(name.Release[:]),
			unix.ByteSliceToString(name.Machine[:]))
	}
	for _, file := range []string{
		"sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name", "sys/class/dmi/id/bios_version", "etc/os-release",
		"proc/loadavg", "proc/uptime", "proc/cmdline", "proc/pressure/cpu", "proc/pressure/io", "proc/pressure/memory",
	} {
		if text := head(filepath.Join(root, file)); text != "" {
			fmt.Fprintf(&out, "\n%s:\n%s\n", file, text)
		}
	}
	for file, keys := range map[string][]string{
		"proc/meminfo": {"MemTotal", "MemAvailable", "SwapTotal", "SwapFree"}, "proc/cpuinfo": {"model name", "cpu MHz"},
	} {
		for line := range strings.Lines(head(filepath.Join(root, file))) {
			key, _, _ := strings.Cut(line, ":")
			for _, wanted := range keys {
				if strings.TrimSpace(key) == wanted {
					out.WriteString(strings.TrimSpace(line) + "\n")
				}
			}
		}
	}
	for what, pattern := range map[string]string{
		"network ports": "sys/class/net/*", "disks": "sys/block/*", "grabbers": "sys/class/video4linux/*/name", "USB": "sys/bus/usb/devices/*/product",
	} {
		all, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are constant and valid
		fmt.Fprintf(&out, "\n%s:\n", what)
		for _, path := range all[:min(len(all), 100)] {
			fmt.Fprintf(&out, "  %s %s\n", strings.TrimPrefix(path, root), describe(path))
		}
	}
	return out.String()
}

// describe is the content of a file, or of those in a folder that say how a port or disk is.
func describe(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return head(path)
	}
	var words []string
	for _, name := range []string{"operstate", "speed", "mtu", "size", "queue/rotational"} {
		if text := head(filepath.Join(path, name)); text != "" {
			words = append(words, name+" "+text)
		}
	}
	return strings.Join(words, ", ")
}

// head reads the beginning of a file of the kernel; "" where it cannot be read.
func head(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 64<<10)) // some files fail when they are read, as the speed of a port without a cable
	return strings.TrimSpace(string(text))
}

// Tail keeps the last bytes that were written to it. It may be used from any goroutine.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail bounds a Tail; it is some ten thousand lines of a log.
const maxTail = 1 << 20

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if len(t.text) > 2*maxTail { // seldom, since it copies
		t.text = append([]byte(nil), t.text[len(t.text)-maxTail:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxTail):])
}

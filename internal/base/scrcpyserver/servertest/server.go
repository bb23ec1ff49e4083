// Package servertest is for tests of what uses scrcpy's server: a simulated server, which a simulated phone beneath the
// real adb server runs. Options flow in, as the server of a version reads them; what it says over its connections is the
// test's, and for input there is Clipboard.
package servertest

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/base/adbserver/adbtest"
)

// Jar is a file as scrcpy's server of a version is, as far as it is read: no phone can run it.
func Jar(t testing.TB, version string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	code, err := z.Create("classes.dex")
	if err == nil {
		_, err = fmt.Fprintf(code, "dex\n035\x00\x35The server version (%s) does not match the client (\x00more", version)
	}
	if err == nil {
		err = z.Close()
	}
	path := filepath.Join(t.TempDir(), "scrcpy-server")
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Start is a start of the server.
type Start struct {
	Options map[string]string
	Major   int
}

// Serve has the phone run a server of a version: f has the first connection of each start until it returns, which it is to
// do when ctx ends.
func Serve(phone *adbtest.Phone, version string, f func(ctx context.Context, start Start, conn io.ReadWriter)) {
	phone.Install(func(ctx context.Context, command string, out io.Writer) byte {
		_, file, _ := strings.Cut(command, "CLASSPATH=")
		file, _, _ = strings.Cut(file, ";")
		words := strings.Fields(command)
		at := slices.Index(words, "com.genymobile.scrcpy.Server")
		if phone.File(file) == nil || at < 0 || at+1 >= len(words) {
			fmt.Fprintln(out, "Aborted")
			return 134
		}
		if asked := words[at+1]; asked != version {
			fmt.Fprintf(out, "[server] ERROR: The server version (%s) does not match the client (%s)\n"+
				"java.lang.IllegalArgumentException: \n\tat com.genymobile.scrcpy.Options.parse(Options.java:287)\n", version, asked)
			return 1
		}
		start := Start{Options: map[string]string{}}
		for _, word := range words[at+2:] {
			key, value, _ := strings.Cut(word, "=")
			start.Options[key] = value
		}
		start.Major, _ = strconv.Atoi(version[:1])
		name := "scrcpy"
		if start.Major > 1 {
			name += "_" + start.Options["scid"]
		}
		fmt.Fprintln(out, "[server] INFO: Device: [eidetic] Simulated phone (Android 14)")
		ended := make(chan struct{})
		remove := phone.Listen(name, func(conn io.ReadWriter, closed <-chan struct{}) {
			defer close(ended)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-closed:
					cancel()
				case <-ctx.Done():
				}
			}()
			f(ctx, start, conn)
		})
		defer remove()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return 0
	})
}

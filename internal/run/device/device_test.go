package device

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/netspace"
)

// The tests of this package run inside namespaces: TestMain runs the binary again in them
// unless INSIDE is set.
func TestMain(m *testing.M) {
	if os.Getenv("EIDETIC_TEST_INSIDE") != "" {
		if err := isolate.Mount(isolate.Mounts{Resolver: "192.168.77.1", TempSize: 1 << 30, Keep: logFolders()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	fuzzes := slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz=") })
	if fuzzes || isolate.Available(context.Background()) != nil {
		os.Exit(m.Run()) // each test reports what it needs; workers of a fuzz target start a program of /tmp
	}
	os.Setenv("EIDETIC_TEST_INSIDE", "1")
	if err := isolate.Run(context.Background(), os.Args[1:]); err != nil {
		os.Exit(1)
	}
}

// logFolders are the folders into which the go command wants this test's output files.
func logFolders() (dirs []string) {
	for _, arg := range os.Args[1:] {
		if _, file, ok := strings.Cut(arg, "file=/"); ok {
			dirs = append(dirs, filepath.Dir("/"+file))
		}
	}
	return dirs
}

func inside(t *testing.T) {
	t.Helper()
	testlab.Need(t, os.Getenv("EIDETIC_TEST_INSIDE") != "", "namespaces (run as root, or allow user namespaces)")
}

// cabled returns a device's namespace, whose cable leads to 192.168.77.1 of this one.
func cabled(t *testing.T) *Namespace {
	t.Helper()
	inside(t)
	box, err := netspace.Here()
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if err := box.Up("lo"); err != nil {
		t.Fatal(err)
	}
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ns.Close()
		_ = box.Remove("lab0")
	})
	for _, step := range []func() error{
		func() error { return ns.cable("lab0", "eth0", netip.MustParsePrefix("192.168.77.1/24")) },
		func() error { return ns.Address("eth0", "192.168.77.2/24") },
		func() error { return ns.Default("192.168.77.1") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return ns
}

func TestChromiumLoadsThroughTheCable(t *testing.T) {
	ns := cabled(t)
	testlab.NeedProgram(t, "chromium")
	testlab.NeedProgram(t, "Xvfb")
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	got := make(chan string, 10)
	l, err := net.Listen("tcp", "192.168.77.1:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.URL.Path
		fmt.Fprint(w, "<body style='background:#0f0'>")
	})}
	go server.Serve(l)
	defer server.Close()

	x, err := StartX(ctx, Screen{1280, 720}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Stop()
	dir := testlab.TempDir(t) // a browser's last processes write to it for a while
	pem := authority(t, dir)
	c, err := NewChromium(ctx, Workshop{Dir: dir, Authority: pem, Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Start(Options{Namespace: ns, Display: x.Display, Screen: Screen{1280, 720}, URL: "http://192.168.77.1/hello"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case path := <-got:
		if path != "/hello" {
			t.Errorf("first request was for %s", path)
		}
	case <-ctx.Done():
		t.Error("no request came", b.process.log.String())
	case <-b.Done():
		t.Error(b.Err())
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
}

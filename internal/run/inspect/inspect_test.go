package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/archive/archivetest"
)

// half, in the environment, makes the test's program the process that checks; hoard makes it take
// memory that nothing counts.
const half = "EIDETIC_TEST_INSPECT"

func TestMain(m *testing.M) {
	switch os.Getenv(half) {
	case "serve":
		memory, err := strconv.ParseInt(os.Args[2], 10, 64)
		switch {
		case err != nil:
		case len(os.Args) > 3:
			err = ServeChange(os.Stdout, os.Stdin, os.Args[1], os.Args[3], memory)
		default:
			err = Serve(os.Stdout, os.Args[1], memory)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "hoard":
		if err := Serve(os.Stderr, os.Args[1], 1<<20); err != nil { // sets the limits
			os.Exit(1)
		}
		var kept [][]byte
		for range 4096 {
			kept = append(kept, []byte(strings.Repeat("x", 1<<20)))
		}
		fmt.Println(len(kept))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func good(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.wacz")
	a := archive.New([]*lab.Exchange{{Method: "GET", URL: "http://a.test/", Status: 404, Protocol: "http/1.1"}}, nil, nil,
		archive.CreateOptions{Wall: time.Unix(1_700_000_000, 0)})
	if err := archive.Save(path, a); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck(t *testing.T) {
	t.Setenv(half, "serve")
	c := Checker{Command: []string{os.Args[0]}, Turn: func(context.Context) (func(), error) { return func() {}, nil }}
	r, err := c.Check(t.Context(), good(t))
	if err != nil || r.Refused != "" || r.Info.Exchanges != 1 || len(r.Quality.Problems) != 1 || r.Quality.Problems[0].Kind != "error" {
		t.Errorf("Check() = %+v, %v; want one exchange with an error", r, err)
	}
	for _, h := range archivetest.Set() {
		if h.Name != "header-lines.warc.gz" && h.Name != "package.wacz" && h.Name != "one-gzip.warc" {
			continue
		}
		file := filepath.Join(t.TempDir(), h.Name)
		if err := os.WriteFile(file, h.Make(), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := c.Check(t.Context(), file)
		if err != nil || r.Refused == "" && len(r.Quality.Problems) == 0 {
			t.Errorf("Check(%s) = %+v, %v; want a refusal or a problem", h.Name, r, err)
		}
	}
}

// The process that checks ends before it takes what the machine needs, and that is a refusal.
func TestMemoryLimit(t *testing.T) {
	t.Setenv(half, "hoard")
	r, err := Checker{Command: []string{os.Args[0]}}.Check(t.Context(), good(t))
	if err != nil || !strings.Contains(r.Refused, "more memory than it may") {
		t.Errorf("Check() = %+v, %v; want that it took too much memory", r, err)
	}
}

package testlab

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is the time for goroutines to end by themselves. goleak's own half second
// is too short for a machine that stalls, and for net/http's server, which lingers half a
// second after it has refused a request.
const leakPatience = 15 * time.Second

// NoLeaks runs a package's tests (call it from TestMain) and fails if they leave a
// goroutine running. What the tests have shared is ended before that.
func NoLeaks(m *testing.M, end ...func()) {
	code := m.Run()
	for _, end := range end {
		end()
	}
	if code == 0 {
		if err := leaked(leakPatience); err != nil {
			fmt.Fprintln(os.Stderr, "the tests left goroutines running:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Main is NoLeaks for tests that start their own program again: where the variable names a folder, this is that process.
func Main(m *testing.M, variable string, process func(dir string) error) {
	dir := os.Getenv(variable)
	if dir == "" {
		NoLeaks(m)
	}
	if err := process(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// leaked returns nil as soon as no goroutine is left, and after patience an error that names those left.
func leaked(patience time.Duration) (err error) {
	for deadline := time.Now().Add(patience); ; {
		if err = goleak.Find(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

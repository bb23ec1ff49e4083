package testlab

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long what ends by itself may take to: goleak's own half
// second is too short for a machine that stalls, and for net/http's server, which
// lingers so long after it has refused a request.
const leakPatience = 15 * time.Second

// NoLeaks runs a package's tests (call it from TestMain) and fails when they
// leave a goroutine behind.
func NoLeaks(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := leaked(leakPatience); err != nil {
			fmt.Fprintln(os.Stderr, "the tests leave goroutines behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked says which goroutines are left after so long, as soon as none is.
func leaked(patience time.Duration) (err error) {
	for deadline := time.Now().Add(patience); ; {
		if err = goleak.Find(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

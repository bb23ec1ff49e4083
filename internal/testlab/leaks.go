package testlab

import (
	"testing"

	"go.uber.org/goleak"
)

// NoLeaks runs a package's tests (call it from TestMain) and fails when they
// leave a goroutine behind.
//
// net/http's server lingers 500 ms in closeWriteAndWait after it has refused a
// request, so that its answer is not lost in a reset; that is longer than
// goleak waits and ends by itself, so it does not count.
func NoLeaks(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

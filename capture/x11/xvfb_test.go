package x11_test

import (
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// xvfb starts a virtual screen that ends with the test and returns its display.
func xvfb(t testing.TB, args ...string) string {
	t.Helper()
	return xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), args...).Display
}

package main

import (
	"runtime/debug"
	"testing"
)

func TestCommitOf(t *testing.T) {
	const stamped, linked = "dca62b2a1b2c3d4e5f60718293a4b5c6d7e8f901", "0123456789abcdef0123456789abcdef01234567"
	revision := debug.BuildSetting{Key: "vcs.revision", Value: stamped}
	for _, c := range []struct {
		settings     []debug.BuildSetting
		linked, want string
	}{
		{nil, "", "unknown commit"},
		{[]debug.BuildSetting{{Key: "GOOS", Value: "linux"}}, linked, linked},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, linked, stamped},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, "", stamped + " with uncommitted changes"},
	} {
		if got := commitOf(&debug.BuildInfo{Settings: c.settings}, c.linked); got != c.want {
			t.Errorf("commitOf(%v, %q) = %q; want %q", c.settings, c.linked, got, c.want)
		}
	}
}

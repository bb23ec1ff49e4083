package main

import (
	"runtime/debug"
	"testing"
)

func TestCommitOf(t *testing.T) {
	const revision = "dca62b2a1b2c3d4e5f60718293a4b5c6d7e8f901"
	for want, settings := range map[string][]debug.BuildSetting{
		"unknown commit":                       {{Key: "GOOS", Value: "linux"}},
		revision:                               {{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}},
		revision + " with uncommitted changes": {{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := commitOf(&debug.BuildInfo{Settings: settings}); got != want {
			t.Errorf("commitOf(%v) = %q; want %q", settings, got, want)
		}
	}
}

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// These are set by the linker (-X main.version=…); a plain go build leaves them.
var (
	version = "dev"
	commit  string // for a build that the go command does not stamp
)

// VersionCmd prints what this binary is.
type VersionCmd struct{}

// Run prints one line.
func (VersionCmd) Run(std *streams) error {
	_, err := fmt.Fprintln(std.out, versionLine())
	return err
}

// versionLine names the version, the commit and the toolchain of this binary. It
// is in every run and every archive that this binary makes.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return fmt.Sprintf("appliance %s (%s, %s %s/%s)", version, commitOf(info, commit), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit in the stamp that the go command puts into a binary,
// and whether the source differed from it; without a stamp, the linker's commit.
func commitOf(info *debug.BuildInfo, linked string) string {
	text, modified := cmp.Or(linked, "unknown commit"), ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " with uncommitted changes"
		}
	}
	return text + modified
}

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker (-X main.version=…); a plain go build says "dev".
var version = "dev"

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
	return fmt.Sprintf("appliance %s (%s, %s %s/%s)", version, commitOf(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit in the stamp that the go command puts into a
// binary, and whether the source differed from it.
func commitOf(info *debug.BuildInfo) string {
	commit, modified := "unknown commit", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " with uncommitted changes"
		}
	}
	return commit + modified
}

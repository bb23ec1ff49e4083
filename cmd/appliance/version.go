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

// versionLine names the version, the commit and the toolchain.
func versionLine() string {
	commit := "unknown commit"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("appliance %s (%s, %s %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"eidetic/internal/tell/suite"
)

// SuiteFetchCmd finds and fetches the newest releases of browsers.
type SuiteFetchCmd struct {
	Sources string `arg:"" type:"path" help:"A YAML list of where releases are."`
	Into    string `default:"out/browsers" type:"path" placeholder:"DIR" help:"Folder that they are unpacked into (${default})."`
}

// Help is shown by appliance suite fetch --help.
func (SuiteFetchCmd) Help() string {
	return `Prints the program of the newest release of each source, a line each, for --browser of suite run. What is there
already is not fetched again, and no older release is removed. A file whose SHA-256 is not that of its list is refused;
the list comes by HTTPS. Packages of apt are those that apt-get update knows, and are not installed.

  - name: firefox
    sums: https://ftp.mozilla.org/pub/firefox/releases/153.0/SHA256SUMS
    file: linux-x86_64/en-GB/firefox-*.tar.xz
    program: firefox/firefox
  - name: chromium
    apt: [chromium, chromium-common]
    program: usr/lib/chromium/chromium
  - name: nightly
    folder: /srv/browsers/firefox-*
    program: firefox

Example:
  appliance suite run $(appliance suite fetch sources.yaml | sed 's/^/--browser /')`
}

// fetchTime bounds the fetching of all releases.
const fetchTime = time.Hour

// Run fetches.
func (c *SuiteFetchCmd) Run(ctx context.Context, std *streams) error {
	all, err := suite.ReadSources(c.Sources)
	if err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for _, s := range all {
		program, err := s.Newest(ctx, http.DefaultClient, c.Into)
		if err != nil {
			return cannot(err)
		}
		fmt.Fprintln(std.out, program)
	}
	return nil
}

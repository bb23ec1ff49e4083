// Package inject puts one seeded script into documents and workers so that
// Date, Math.random and crypto give the same values at each load.
package inject

import "time"

// BoxPath begins the paths that the box answers on every origin: annotations that pages post, such
// as lab.done().
const BoxPath = "/.well-known/eidetic/"

// Options of the script. The zero value of Date leaves Date alone.
type Options struct {
	// Off leaves documents as recorded.
	Off bool
	// Seed starts the generator of Math.random and crypto; 0 is a seed like any other.
	Seed uint64
	// Date is the first instant that a page's Date shows. It advances as Web Page Replay's does: 50 ms for every 25
	// readings, so that a page reads the same dates at each load, however fast it runs.
	Date time.Time
	// Dialog is what is answered to a page that asks a person something in a window of the browser's own: "accept",
	// "dismiss", or "" to let it be shown. Each is told to the box in either case.
	Dialog string
	// Messages says that pages, frames and workers tell what they say to each other and to servers.
	Messages bool
	// More is a script of somebody's own that documents get after this one, and before the page's;
	// CheckScript says which text it may have.
	More string
	// After runs after ours, before anything of the page, in documents and in workers that the
	// box serves: JavaScript in ASCII, each statement with its own semicolon, comments on lines of their own.
	After string
}

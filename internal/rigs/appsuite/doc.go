// Package appsuite records applications that nobody here wrote, from Debian's and npm's packages,
// and replays them when they are gone. Each runs as its makers ship it, on a port of its own of
// localhost, behind a certificate that it signed itself; appliance measure records and replays it.
//
// In flow the folder into which make apps puts npm's packages, and the appliance; out flows, for
// each application, how many replays were valid, what they missed, and whether their last pictures are equal.
package appsuite

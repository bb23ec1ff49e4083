// Package readers tests package archive against another project's: warcio.js
// by the Webrecorder project, which ReplayWeb.page reads archives with. It
// opens what we write, through the index as well, and we open what it writes.
// It comes from npm, into a folder of the test's own.
package readers

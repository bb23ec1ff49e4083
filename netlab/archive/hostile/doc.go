// Package hostile tests that no recording takes more memory than its size allows, whatever is done with
// it: each file of package archivetest is opened, judged, made ready for a replay and exported in a
// process of its own, whose memory is measured. Nothing else may run in that process, and the race
// detector may not, which takes memory of its own: so these tests are not in package archive.
package hostile

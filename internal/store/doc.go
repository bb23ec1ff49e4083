// Package store keeps runs on disk. In go runs and trials as lab types; out
// come run folders that people, other programs and the panel read.
//
// A store is a folder (what --out names). It holds
//
//	runs/<ID>/run.json              the run: plan, environment, trials without the series of each frame, summary
//	runs/<ID>/report.json           the machine's view, schema eidetic/report/2
//	runs/<ID>/report.html           the person's view (package report)
//	runs/<ID>/trials/NNN/trial.json one trial, whole, beside its artifacts
//	latest                          symbolic link to the newest run's folder
//	report.html, report.json,
//	run.json, trials                symbolic links through latest
//	index.db                        SQLite: what can be listed without reading the folders
//
// The folders are the truth. Every file of a run is written beside its place,
// synced and renamed, so that a reader sees the old one or the new one, never
// half of one. The process that writes a run holds a lock (flock) on its
// folder; a run that calls itself running and that nobody holds was
// interrupted. The index can be deleted at any time.
//
// What is read may have been written by someone else: sizes, counts and
// nesting are bounded before anything is allocated for them.
package store

// Package store keeps runs on disk. Its input is runs and trials as lab types; its
// output is run folders, which people, other programs and the panel read.
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
// The folders are authoritative. Every file of a run is written to a temporary name,
// synced and renamed, so a reader sees either the old file or the new one, never a
// partial one. The process that writes a run holds a lock (flock) in its folder; a run
// whose state is "running" but whose lock is free was interrupted. The index may be
// deleted at any time.
//
// Input may come from anyone: sizes, counts and nesting are checked before memory is
// allocated for them.
package store

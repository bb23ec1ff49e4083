// Package ledger keeps the fleet's queue and its history in a database: boxes, join codes, runs, parts, leases, files
// that stayed on boxes, and readings. In go the wishes of people (runs) and of boxes (claims, renewals, ends); out come
// assignments, and runs that have ended. It knows neither HTTP nor the content of files.
//
// The database is the queue: SQLite for one head, PostgreSQL for any number of them, with the same tables and, but for
// locks, the same statements. What belongs together commits in one transaction:
//
//  1. [Ledger.AddRuns] writes runs and their parts, all or none. A part's queue is named by what it needs ([fleet.Need.Key]), so that
//     all parts of a queue fit the same boxes. Its tag is its turn: start-time fair queueing over the series of runs (fair.go).
//  2. [Ledger.Claim] looks at the first part of each queue that fits the box, takes the most urgent with one UPDATE … RETURNING, and
//     writes the lease. On PostgreSQL the UPDATE skips rows that others have locked (FOR UPDATE SKIP LOCKED). A repeated claim
//     is given the same lease. The part's attempt, and a random token of which only the SHA-256 is kept, are the fence: a call
//     with an older token gets [ErrLost].
//     What a part finds on a device is decided in one place (waits.go), from which [Ledger.Waits] also tells people why it waits.
//  3. [Ledger.Renew] makes the lease last from now; [Ledger.Hold] keeps the files of whole trials.
//  4. A lease that is not renewed runs out: [Ledger.Sweep] gives the part back, at its old place in the queue. Until
//     another box claims it the old lease is still the newest, and its box takes the part back by any call. After three attempts
//     that vanished the part ends as interrupted, with the files of the best.
//  5. [Ledger.Return] gives a part back that a box cannot carry out. It moves to a queue that this device
//     is given only if nobody else fits.
//  6. [Ledger.End] ends a part once. After the last one the run waits for its assembly, which heads take as boxes take parts: by one
//     UPDATE … RETURNING, for as long as they live, with the number of the try as the fence ([Ledger.Work]). They end the run, and
//     number the ends, so that each head can follow them with [Ledger.EndedSince].
//
// The database keeps its own invariants: unique indexes allow one live lease for a part and one for a device. On
// PostgreSQL, transactions lock a box first, then parts in the order in which they were added, then runs, then
// counters; a transaction that PostgreSQL ends in favour of another one is tried again. On SQLite one connection
// writes, and others read.
//
// Leases last in the time in which heads live: each head says every tenth of a lease's time that it does, and if none
// has said so for a while, all leases begin anew.
package ledger

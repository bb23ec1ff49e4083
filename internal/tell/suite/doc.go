// Package suite says how browsers compare over a set of pages and journeys. A [Suite] is a file that anybody can read:
// its entries are plans, each with the metrics that are its marks. What the runs of its entries found becomes a
// [Result], one file that names every hash, version, device, condition and trial, so that others can measure it again
// ([Result.Agreement]) or compute it anew from the reels.
//
// Suites and runs' records flow in; results, tables of known answers and agreements flow out. It carries nothing out.
// Marks are summed up by the geometric mean, as in Fleming and Wallace 1986; the interval of a ratio is that of
// Student's t on logarithms of pairs.
package suite

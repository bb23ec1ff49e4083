// Package reference holds the statistics against SciPy's, on shared inputs; it has tests only. Seeded values flow to
// both, and both answers are compared: exact p-values to 1e-9, others to the error that their documentation states.
package reference

package adb

// What the tests of this package see of its parsers.
var (
	PIDsOf   = pidsOf
	RanOf    = ranOf
	MemoryOf = memoryOf
)

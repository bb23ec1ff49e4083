package hid

// Sequences is what the tests of this package see of the compose key.
var Sequences = sequences

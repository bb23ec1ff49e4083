package lab

// ProgramUse is what the processes of a program have used and have at an instant.
type ProgramUse struct {
	At        Time  `json:"t_ns"`
	Processes int   `json:"processes"`
	Ran       int64 `json:"ran_ns"`    // processor time since they began; those that have ended are not in it
	Memory    int64 `json:"pss_bytes"` // shared memory in shares
}

package experiment

import (
	"path/filepath"

	"eidetic/internal/lab"
)

// MachineFile holds what the processes of the device's namespace did in a trial, and MachineRole is its role.
const (
	MachineFile = "machine.jsonl"
	MachineRole = "machine"
)

// machine reads what the processes do until the function that it returns is called, which writes all.
func (r *Runner) machine(p Plan, t *lab.Trial, dir string) (end func() error) {
	if p.MachineHz == 0 || r.Sample == nil {
		return func() error { return nil }
	}
	stop := r.Sample(p.MachineHz, p.Threads)
	return func() error {
		how, list := stop()
		t.Sampled, t.Files[MachineRole] = &how, MachineFile
		return writeLines(filepath.Join(dir, MachineFile), list)
	}
}

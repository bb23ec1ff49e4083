package device

import (
	"os"
	"path/filepath"
	"strconv"

	"eidetic/internal/lab"
)

// Used reads what the processes of the device's browser or app have used and, with memory, what they have in memory, for
// which the kernel looks at every page.
func Used(memory bool) lab.ProgramUse {
	const proc = "/proc"
	use := lab.ProgramUse{At: lab.Monotonic()}
	for pid, p := range processes(proc) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if pid == os.Getpid() || !isProgram(dir, p.name) {
			continue
		}
		ran := clockOf(processClock(pid))
		if ran < 0 { // it has ended
			continue
		}
		use.Processes++
		use.Ran += ran
		if memory {
			use.Memory += shareOf(dir)
		}
	}
	return use
}

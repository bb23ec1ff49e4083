package box

import "fmt"

// minShared is the smallest number of processors at which the system gets one for
// itself: with fewer, the service would lose more than it gains.
const minShared = 4

// CPUs returns, for a machine with n processors, those that the rest of the system may
// use and those for the service, in the syntax of AllowedCPUs=. Both are "" when they
// share all processors.
func CPUs(n int) (system, service string) {
	if n < minShared {
		return "", ""
	}
	return "0", fmt.Sprintf("1-%d", n-1)
}

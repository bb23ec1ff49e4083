package box

import "fmt"

// minShared is the number of processors from which on the system gets one of
// its own: with fewer, taking one away costs more than it disturbs.
const minShared = 4

// CPUs says which processors the rest of the system may use and which the
// service, as AllowedCPUs= takes them, on a machine with n. Both are "" when
// they share all.
func CPUs(n int) (system, service string) {
	if n < minShared {
		return "", ""
	}
	return "0", fmt.Sprintf("1-%d", n-1)
}

package lab

// ProcessMemory is the memory of one process at an instant.
type ProcessMemory struct {
	At   Time   `json:"t_ns"`
	PID  int    `json:"pid"`
	Name string `json:"name"` // what it is in its browser: "browser", "renderer", "gpu-process"
	// RSS is what is in memory of it, what it shares with others included.
	RSS int64 `json:"rss_bytes"`
	// PSS is the same with a share of what it shares; 0 where it was not read, as that takes a while.
	PSS int64 `json:"pss_bytes,omitempty"`
}

// MostMemory bounds the readings of one trial.
const MostMemory = 50000

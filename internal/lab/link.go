package lab

import "time"

// Link describes the access network of an arm: the profile with all its parameters, and
// the back end that emulated it. A rate of 0 is unlimited, −1 an outage.
type Link struct {
	Name      string                   `json:"name"`
	BackEnd   string                   `json:"back_end,omitempty"` // "packet", "conn", or "native" where nothing is emulated
	RTT       time.Duration            `json:"rtt_ns"`
	Down      int64                    `json:"down_bits_per_second"`
	Up        int64                    `json:"up_bits_per_second"`
	Queue     LinkQueue                `json:"queue"`
	Loss      float64                  `json:"loss"`            // share of packets, 0 … 1
	Burst     float64                  `json:"burst,omitempty"` // mean length of a run of losses, in packets
	Jitter    time.Duration            `json:"jitter_ns"`
	Reorder   bool                     `json:"reorder,omitempty"`
	Seed      uint64                   `json:"seed"`
	Extra     map[string]time.Duration `json:"extra_rtt_ns,omitempty"` // by host name or address
	MTU       int                      `json:"mtu,omitempty"`
	DownTrace *LinkTrace               `json:"down_trace,omitempty"`
	UpTrace   *LinkTrace               `json:"up_trace,omitempty"`
	Stall     *LinkStall               `json:"stall,omitempty"`
	Changes   []LinkChange             `json:"changes,omitempty"`
}

// LinkQueue bounds the queue in front of each direction's bottleneck.
type LinkQueue struct {
	Packets    int           `json:"packets,omitempty"`
	Bytes      int           `json:"bytes,omitempty"`
	Time       time.Duration `json:"time_ns,omitempty"`
	Discipline string        `json:"discipline,omitempty"`
}

// LinkTrace is a recorded capacity over time, in place of a rate.
type LinkTrace struct {
	Name   string        `json:"name"`
	Period time.Duration `json:"period_ns"`
}

// LinkStall holds back all packets once.
type LinkStall struct {
	For  time.Duration `json:"for_ns"`
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// LinkChange is a profile that applies from an instant after the start.
type LinkChange struct {
	At      time.Duration `json:"at_ns"`
	Profile Link          `json:"profile"`
}

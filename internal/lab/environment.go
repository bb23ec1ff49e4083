package lab

import "time"

// Environment is what could explain a difference between two runs. Unknown values are
// left out.
type Environment struct {
	Appliance string `json:"appliance,omitempty"` // version of the appliance
	// Box is set by the head of a fleet.
	Box *BoxState `json:"box,omitempty"`
	Host
	Browser   string        `json:"browser,omitempty"`
	Sandbox   string        `json:"sandbox,omitempty"`  // of a virtual device's browser
	Screen    string        `json:"screen,omitempty"`   // size, rate, and how it is filmed
	Controls  string        `json:"controls,omitempty"` // what gives a device at a port its input
	Network   *NetworkState `json:"network,omitempty"`
	Port      *PortState    `json:"port,omitempty"` // where the device is plugged in
	Isolation *Isolation    `json:"isolation,omitempty"`
	Counters  string        `json:"counters,omitempty"` // what is counted of a virtual device's browser, and why no more is
	Energy    string        `json:"energy,omitempty"`   // of which parts of the machine it is read, or why of none
}

// Host is the machine that measures.
type Host struct {
	OS          string `json:"os,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Processor   string `json:"processor,omitempty"`
	Cores       int    `json:"cores,omitempty"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
	Go          string `json:"go,omitempty"`
	Governor    string `json:"governor,omitempty"`     // of the processors' frequency
	LoadAverage string `json:"load_average,omitempty"` // as /proc/loadavg has it
	KeptAwake   *bool  `json:"kept_awake,omitempty"`   // the processors, during trials
	IdleDriver  string `json:"idle_driver,omitempty"`
	SMT         string `json:"smt,omitempty"`      // 1: two hardware threads share a core
	NoTurbo     string `json:"no_turbo,omitempty"` // 1: the processors keep their base frequency
	HugePages   string `json:"huge_pages,omitempty"`
	Realtime    *int   `json:"realtime,omitempty"` // highest real-time priority that the link can have, 0 for none
	Root        *bool  `json:"root,omitempty"`     // the appliance has all rights on this machine
}

// NetworkState is the box's network as a run found or left it.
type NetworkState struct {
	CongestionControl string            `json:"congestion_control,omitempty"` // of the listening sockets, as the kernel reports it
	LinkBackEnd       string            `json:"link_backend,omitempty"`
	LinkProfile       *Link             `json:"link_profile,omitempty"`
	LinkLimits        []string          `json:"link_limits,omitempty"` // what the back end cannot do of the profile
	LinkSlips         int64             `json:"link_slips"`            // packets that left late
	LinkThread        []string          `json:"link_thread,omitempty"` // measures taken so that packets leave on time
	Gateway           string            `json:"gateway,omitempty"`
	Synthetic         string            `json:"synthetic,omitempty"` // address range handed out for origins
	AnyIP             bool              `json:"any_ip"`
	Upstream          bool              `json:"upstream"` // whether origins are reachable
	Armed             string            `json:"armed,omitempty"`
	Connections       int               `json:"connections"`
	LeavesIssued      int               `json:"leaves_issued"` // certificates for hosts
	CASHA256          string            `json:"ca_sha256,omitempty"`
	FlightBytes       int               `json:"flight_bytes,omitempty"` // bound of the unacknowledged bytes of a connection
	DNSDropped        int64             `json:"dns_dropped,omitempty"`
	KernelSettings    map[string]string `json:"kernel_settings,omitempty"`
}

// PortState is the port that the device is plugged into.
type PortState struct {
	Interface string   `json:"interface"`
	Lab       string   `json:"lab"` // the box's end of the link
	Gateway   string   `json:"gateway"`
	Gateway6  string   `json:"gateway6,omitempty"`
	Present   bool     `json:"present"`
	Carrier   bool     `json:"carrier"`
	Leases    []Lease  `json:"leases,omitempty"`
	Problem   string   `json:"problem,omitempty"`
	Flaps     int      `json:"flaps"`  // how often the cable was lost
	Strays    uint64   `json:"strays"` // packets to addresses that the device may not reach
	Limits    []string `json:"limits,omitempty"`
}

// Lease is an address that the port leased to a device.
type Lease struct {
	MAC     string    `json:"mac"`
	Address string    `json:"addr"`
	Name    string    `json:"name,omitempty"`
	Until   time.Time `json:"until"`
}

// Isolation is the evidence that a replay contacted nobody outside the lab.
type Isolation struct {
	Interfaces []string `json:"interfaces,omitempty"` // all interfaces in the namespaces of device and box
	// OutsidePackets counts dropped packets for addresses outside the lab. It is nil for
	// a plugged-in device, whose port counts StrayPackets instead.
	OutsidePackets *uint64 `json:"packets_for_outside,omitempty"`
	StrayPackets   *uint64 `json:"packets_for_nobody,omitempty"`
	How            string  `json:"how"`
}

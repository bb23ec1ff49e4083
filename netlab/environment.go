package netlab

import "eidetic/internal/lab"

// Environment returns what can explain a difference between two runs: congestion
// control, link back end and profile, kernel settings, counters.
func (n *Network) Environment() *lab.NetworkState {
	n.arming.Lock()
	armed := n.armed
	n.arming.Unlock()
	r := n.shaper.Report()
	profile := r.Profile.Describe()
	e := &lab.NetworkState{
		CongestionControl: n.congestion,
		LinkBackEnd:       r.Backend,
		LinkProfile:       &profile,
		LinkLimits:        r.Limits,
		LinkSlips:         r.Slips,
		LinkThread:        r.Thread,
		Gateway:           n.c.Gateway.String(),
		Synthetic:         n.c.Synthetic.String(),
		AnyIP:             n.c.Routes,
		Upstream:          n.c.Upstream != nil,
		Armed:             armed,
		Connections:       n.proxy.Connections(),
		LeavesIssued:      n.c.CA.Issued(),
		CASHA256:          n.c.CA.Fingerprint(),
		KernelSettings:    map[string]string{},
	}
	if r.Backend != "conn" { // whose connections are no sockets of the kernel
		e.FlightBytes = n.proxy.Flight()
	}
	if n.dns != nil {
		e.DNSDropped = n.dns.Dropped()
	}
	for _, name := range []string{
		"net.ipv4.tcp_congestion_control", "net.core.default_qdisc", "net.ipv4.tcp_no_metrics_save",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.ip_forward",
	} {
		// A setting that this kernel lacks is left out.
		if v, err := readSysctl(name); err == nil {
			e.KernelSettings[name] = v
		}
	}
	return e
}

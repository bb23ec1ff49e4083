package netlab

// Environment returns what can explain a difference between two runs: congestion
// control, link back end and profile, kernel settings, counters.
func (n *Network) Environment() map[string]any {
	n.arming.Lock()
	armed := n.armed
	n.arming.Unlock()
	r := n.shaper.Report()
	e := map[string]any{
		"congestion_control": n.congestion, // of the listeners, read back from the kernel
		"link_backend":       r.Backend,
		"link_profile":       r.Profile,
		"link_limits":        r.Limits,
		"link_slips":         r.Slips,
		"link_thread":        r.Thread,
		"gateway":            n.c.Gateway.String(),
		"synthetic":          n.c.Synthetic.String(),
		"any_ip":             n.c.Routes,
		"upstream":           n.c.Upstream != nil,
		"armed":              armed,
		"connections":        n.proxy.Connections(),
		"leaves_issued":      n.c.CA.Issued(),
		"ca_sha256":          n.c.CA.Fingerprint(),
	}
	if r.Backend != "conn" { // whose connections are no sockets of the kernel
		e["flight_bytes"] = n.proxy.Flight()
	}
	if n.dns != nil {
		e["dns_dropped"] = n.dns.Dropped()
	}
	kernel := map[string]string{}
	for _, name := range []string{
		"net.ipv4.tcp_congestion_control", "net.core.default_qdisc", "net.ipv4.tcp_no_metrics_save",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.ip_forward",
	} {
		// A setting that this kernel lacks is left out.
		if v, err := readSysctl(name); err == nil {
			kernel[name] = v
		}
	}
	e["kernel_settings"] = kernel
	return e
}

package link

// Cannot says what of a profile a back end ("packet", "kernel", "conn") cannot
// do, a sentence each; none means all.
func Cannot(backend string, p Profile) (list []string) {
	say := func(yes bool, what string) {
		if yes {
			list = append(list, what)
		}
	}
	any := func(f func(Profile) bool) bool {
		for _, c := range p.Changes {
			if f(c.Profile) {
				return true
			}
		}
		return f(p)
	}
	traces := any(func(p Profile) bool { return p.DownTrace != nil || p.UpTrace != nil })
	burst := any(func(p Profile) bool { return p.Loss > 0 && p.Burst > 1 })
	codel := any(func(p Profile) bool { return p.Queue.Discipline == CoDel })
	mtu := any(func(p Profile) bool { return p.MTU > 0 })
	switch backend {
	case "kernel":
		say(traces, "it follows no traces")
		say(burst, "its losses come alone, not in bursts")
		say(codel, "its queue is drop-tail")
		say(mtu, "it knows no MTU")
		say(any(func(p Profile) bool { return len(p.Extra) > 0 }), "it gives no origin an RTT of its own")
		say(any(func(p Profile) bool { return p.Jitter > 0 && !p.Reorder }), "its jitter reorders packets (say so with reorder=yes)")
	case "conn":
		say(any(func(p Profile) bool { return p.Loss > 0 }), "loss is not emulated")
		say(any(func(p Profile) bool { return p.Queue != (Queue{}) }), "a queue's bound is not emulated: bytes wait and are not dropped")
		say(any(func(p Profile) bool { return p.Reorder }), "a stream cannot be reordered")
		say(mtu, "it sees no packets, so no MTU")
	}
	return list
}

// limits says in a report what the back end does otherwise than a real link,
// and what it cannot do of the profile.
func limits(backend string, p Profile) (list []string) {
	switch backend {
	case "kernel":
		list = []string{
			"rates count Ethernet headers, and are made to fit full packets",
			"a packet that comes alone leaves at once, by the bucket of one packet, and not after its own transmission",
			"how late packets left is not known",
		}
		for _, q := range append([]Change{{Profile: p}}, p.Changes...) {
			if q.Profile.Loss > 0 || q.Profile.Jitter > 0 {
				list = append(list, "losses and jitter follow no seed")
				break
			}
		}
	case "conn":
		list = []string{
			"TCP's handshake is stood for by one more RTT before a connection's first bytes; connecting itself takes no time",
			"TCP's slow start and acknowledgements are those of the local path",
		}
	}
	return append(list, Cannot(backend, p)...)
}

package conn

import "eidetic/netlab/link"

// Cannot lists what this back end cannot do of a profile, a sentence each.
func Cannot(p link.Profile) (list []string) {
	say := func(what string, affects func(link.Profile) bool) {
		for _, q := range append([]link.Change{{Profile: p}}, p.Changes...) {
			if affects(q.Profile) {
				list = append(list, what)
				return
			}
		}
	}
	say("loss is not emulated", func(p link.Profile) bool { return p.Loss > 0 })
	say("a queue's bound is not emulated: bytes wait and are not dropped", func(p link.Profile) bool { return p.Queue != (link.Queue{}) })
	say("a stream cannot be reordered", func(p link.Profile) bool { return p.Reorder })
	say("an MTU is not emulated, because connections have no packets", func(p link.Profile) bool { return p.MTU > 0 })
	say("a stall is not emulated", func(p link.Profile) bool { return p.Stall != nil })
	return list
}

// limits lists for a report how this back end differs from a real link, and what
// it cannot do of the profile.
func limits(p link.Profile) []string {
	return append([]string{
		"connecting takes no time; in place of TCP's handshake a connection's first bytes take one RTT more",
		"TCP's slow start and acknowledgements are those of the local path",
	}, Cannot(p)...)
}

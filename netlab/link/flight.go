package link

import "time"

// flights is how many bandwidth-delay products a sender may have on its way: one
// fills the link, a second is the queue that keeps it full (as the gain of BBR's
// window), the third makes up for a kernel that asks for more when a third of a
// buffer is free.
const flights = 3

// leastFlight lets a page's first round trips be TCP's own: 45 full segments.
const leastFlight = 64 << 10

// Flight is how many bytes a sender need have sent and not acknowledged, towards
// the device, to keep the link full; 0 when there is no such bound, because the
// link has none.
func (p Profile) Flight() int {
	most := 0
	for _, at := range append([]Change{{Profile: p}}, p.Changes...) {
		rate := at.Profile.Down
		if at.Profile.DownTrace != nil {
			rate = at.Profile.DownTrace.Rate()
		}
		if rate == Unlimited {
			return 0
		}
		rtt := at.Profile.RTT + at.Profile.Jitter
		var far time.Duration
		for _, extra := range at.Profile.Extra {
			far = max(far, extra)
		}
		most = max(most, int(float64(max(0, rate))/8*(rtt+far).Seconds()))
	}
	return max(flights*most, leastFlight)
}

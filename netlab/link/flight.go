package link

import "time"

// flights is how many bandwidth-delay products a sender may have in flight: the
// first fills the link, the second is the queue that keeps the link full (the
// gain of BBR's window), and the third is the part of the send buffer that is
// empty when the kernel asks the sender for more.
const flights = 3

// leastFlight is 45 full segments, so that TCP's initial window and slow start
// are not limited in a page's first round trips.
const leastFlight = 64 << 10

// Flight returns how many unacknowledged bytes towards the device keep the link
// full. It returns 0 for a link without a rate, where there is no such bound.
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

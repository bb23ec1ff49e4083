package link

import "eidetic/internal/lab"

// Describe is the profile as a run keeps it.
func (p Profile) Describe() lab.Link {
	d := lab.Link{
		Name: p.Name, RTT: p.RTT, Down: int64(p.Down), Up: int64(p.Up),
		Queue: lab.LinkQueue{Packets: p.Queue.Packets, Bytes: p.Queue.Bytes, Time: p.Queue.Time, Discipline: string(p.Queue.Discipline)},
		Loss:  p.Loss, Burst: p.Burst, Jitter: p.Jitter, Reorder: p.Reorder, Seed: p.Seed, Extra: p.Extra, MTU: p.MTU,
		DownTrace: p.DownTrace.describe(), UpTrace: p.UpTrace.describe(),
	}
	if s := p.Stall; s != nil {
		d.Stall = &lab.LinkStall{For: s.For, From: s.From, To: s.To}
	}
	for _, c := range p.Changes {
		d.Changes = append(d.Changes, lab.LinkChange{At: c.At, Profile: c.Profile.Describe()})
	}
	return d
}

func (t *Trace) describe() *lab.LinkTrace {
	if t == nil {
		return nil
	}
	return &lab.LinkTrace{Name: t.Name, Period: t.Period}
}

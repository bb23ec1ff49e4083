package ledger

import (
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/store"
)

// A part is claimed, renewed and ended by one box, and nobody can take it from the box meanwhile.
func TestFleetLease(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("a"))
		b.add(t, run("r1", ""))
		a, mine := b.claim(t, one, "q1")
		want(t, "part", a.Part+a.Run+a.Device, "r1r1a")
		want(t, "attempt", a.Attempt, 1)
		again, _ := b.claim(t, one, "q1")
		want(t, "the repeated claim", again, a)
		other, _ := b.claim(t, two, "q1")
		want(t, "another box's claim", other.Part, "")
		more, _ := b.claim(t, one, "q2")
		want(t, "another claim of the box", more.Part, "")
		if r, err := b.Renew(t.Context(), mine, fleet.Progress{Trial: 1, Of: 2}); err != nil || r.LeaseFor != lease || r.Cancel {
			t.Errorf("Renew() = %+v, %v; want a lease of %v", r, err, lease)
		}
		_, err := b.Renew(t.Context(), Lease{one.ID, a.Part, "x"}, fleet.Progress{})
		wantErr(t, "Renew(a wrong token)", err, ErrLost)
		_, err = b.Renew(t.Context(), Lease{two.ID, a.Part, a.Token}, fleet.Progress{})
		wantErr(t, "Renew(another box's token)", err, ErrLost)
		_, err = b.Renew(t.Context(), Lease{one.ID, "r2", a.Token}, fleet.Progress{})
		wantErr(t, "Renew(an unknown part)", err, store.ErrNotFound)
		_, err = b.Renew(t.Context(), Lease{"box-x", a.Part, a.Token}, fleet.Progress{})
		wantErr(t, "Renew(of a stranger)", err, ErrUnknownBox)
		want(t, "part", b.part(t, "r1"), "running running 1 one/a")
		b.mustEnd(t, mine, file("run.json"))
		b.mustEnd(t, mine, file("run.json")) // repeated
		want(t, "part", b.part(t, "r1"), "assembling done 1 one/a done 1")
		_, err = b.Renew(t.Context(), mine, fleet.Progress{})
		wantErr(t, "Renew(after the end)", err, ErrLost)
		late, _ := b.claim(t, one, "q1")
		want(t, "a claim that comes late", late.Part, "")
	})
}

//go:build soak

package boottest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	cuts = flag.Int("cuts", 20, "how often the power goes")
	seed = flag.Uint64("seed", 0, "of the moments; 0: another one each time")
)

// The power goes at random moments of starting, of writing and of updating.
// The box always comes back, and nothing that was whole is lost: every line
// that was synced is there, in order, and the token is the same.
func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("repeat with: -cuts %d -seed %d", *cuts, *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	b := StartBox(t, BoxOptions{})
	first := b.version(t)
	token := b.Run(t, "cat /etc/appliance/token")
	synced := 0 // lines that were acknowledged
	for n := range *cuts {
		moment := time.Duration(random.IntN(20000)) * time.Millisecond
		what := []string{"starting", "writing", "updating"}[n%3]
		t.Logf("cut %d: %v into %s, version %s", n+1, moment, what, b.version(t))
		switch what {
		case "starting":
			b.cut(t)
			if err := b.Boot(t.Context()); err != nil {
				t.Fatal(err)
			}
		case "writing":
			b.Run(t, fmt.Sprintf(`(for i in $(seq %d 100000); do echo "line $i" >> /var/lib/appliance/journal; sync /var/lib/appliance/journal; echo $i > /run/synced; done) >/dev/null 2>&1 &`, synced+1))
		case "updating":
			if b.version(t) == first {
				b.install(t, ImagePath(t, "appliance-test-next.update"))
			} else {
				b.install(t, ImagePath(t, "appliance-test-bad.update"))
			}
		}
		b.pause(t, moment)
		if what == "writing" {
			var err error
			if synced, err = strconv.Atoi(b.Run(t, "cat /run/synced")); err != nil {
				t.Fatal(err)
			}
		}
		b.cut(t)
		b.On(t)
		if now := b.Run(t, "cat /etc/appliance/token"); now != token {
			t.Fatalf("token %s after the cut, %s before", now, token)
		}
		lines := strings.Fields(strings.ReplaceAll(b.Run(t, "cat /var/lib/appliance/journal 2>/dev/null || true"), "line ", ""))
		if len(lines) < synced {
			t.Fatalf("%d lines are left of %d that were synced", len(lines), synced)
		}
		for i, line := range lines[:synced] {
			if line != strconv.Itoa(i+1) {
				t.Fatalf("line %d of the journal is %q", i+1, line)
			}
		}
		// The next lines follow those that are whole.
		b.Run(t, fmt.Sprintf("touch /var/lib/appliance/journal; head -n %d /var/lib/appliance/journal > /var/lib/appliance/j && mv /var/lib/appliance/j /var/lib/appliance/journal && sync", synced))
	}
}

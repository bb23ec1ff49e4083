package execute

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// share gives the arms of each cell the same times for what both ask for. Two addresses are recorded once each, so
// how long each server took on that one occasion would be a constant of its arm, which no number of trials averages
// out: two equal servers would differ.
func (x *Execution) share(all []*cellArm) {
	var later []float64
	apart, shared := lab.ServersApart{}, map[*archive.Archive]bool{}
	for i := 0; i+1 < len(all); i++ {
		control, treatment := all[i], all[i+1]
		if control.cell != treatment.cell || control.recorded == treatment.recorded {
			continue
		}
		a, b := control.takes(), treatment.takes()
		for n := range min(len(a), len(b)) {
			pairs := answersOfBoth(a[n], control.arm.Page, b[n], treatment.arm.Page)
			if told := toldOfServers(pairs); told != "" && len(a) == 1 { // of several recordings there are rows
				if control.of.Name != "" {
					told = control.of.Name + ": " + told
				}
				x.note(told)
			}
			once := len(a) == 1 && !shared[a[n]] // cells of several users have the same recordings
			shared[a[n]] = true
			for _, p := range pairs {
				if by := float64(p.b.FirstByte-p.a.FirstByte) / float64(time.Millisecond); once {
					if later = append(later, by); p.isOf(treatment.arm.Page) && !x.Plan.IsMany() {
						apart.Document = by
					}
				}
				mean := (p.a.FirstByte + p.b.FirstByte) / 2
				postpone(p.a, mean-p.a.FirstByte)
				postpone(p.b, mean-p.b.FirstByte)
			}
		}
	}
	if apart.Answers = len(later); apart.Answers > 0 {
		apart.Median = stats.Median(later)
		x.run.ServersApart = &apart
	}
}

// answerPair is an answer that both arms ask for.
type answerPair struct {
	name string // its address without the server
	a, b *lab.Exchange
}

// isOf says whether the answer is a page's document.
func (p answerPair) isOf(page string) bool { return document(p.b.URL) == document(page) }

// answersOfBoth pairs the exchanges of two recordings: those of the pages' own servers by path and query, others by
// their whole address, equal ones in their order.
func answersOfBoth(control *archive.Archive, page string, treatment *archive.Archive, other string) (pairs []answerPair) {
	waiting := map[string][]*lab.Exchange{}
	key := func(e *lab.Exchange, page string) string { return e.Method + " " + withoutServer(e.URL, page) }
	for _, e := range inOrder(control) {
		k := key(e, page)
		waiting[k] = append(waiting[k], e)
	}
	for _, e := range inOrder(treatment) {
		k := key(e, other)
		if list := waiting[k]; len(list) > 0 {
			waiting[k] = list[1:]
			if !list[0].IsPending() && !e.IsPending() {
				pairs = append(pairs, answerPair{withoutServer(e.URL, other), list[0], e})
			}
		}
	}
	return pairs
}

func inOrder(a *archive.Archive) []*lab.Exchange {
	return slices.SortedStableFunc(slices.Values(a.Exchanges()), func(a, b *lab.Exchange) int { return cmp.Compare(a.Order, b.Order) })
}

// withoutServer is an address, of the server of a page only what follows it.
func withoutServer(address, page string) string {
	of, err := url.Parse(page)
	if err != nil || of.Host == "" {
		return address
	}
	server := of.Scheme + "://" + of.Host
	if rest, ok := strings.CutPrefix(address, server); ok && (rest == "" || strings.ContainsAny(rest[:1], "/?")) {
		return cmp.Or(rest, "/")
	}
	return address
}

// postpone moves an answer as a whole; the zero duration leaves it.
func postpone(e *lab.Exchange, by time.Duration) {
	e.FirstByte += by
	move := func(at *time.Duration) { *at = max(e.FirstByte, *at+by) }
	for i := range e.Chunks {
		move(&e.Chunks[i].At)
	}
	for i := range e.Socket {
		move(&e.Socket[i].At)
	}
	for i := range e.Interim {
		e.Interim[i].At = min(e.FirstByte, e.Interim[i].At)
	}
}

// toldOfServers says how the two servers' waits differed while they were recorded; "" if by little.
func toldOfServers(pairs []answerPair) string {
	const little = lab.LeastApart * time.Millisecond
	differs := func(p answerPair) time.Duration { return (p.b.FirstByte - p.a.FirstByte).Abs() }
	var all []answerPair
	for _, p := range pairs {
		if differs(p) >= little {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b answerPair) int { return cmp.Compare(differs(b), differs(a)) })
	const named = 3
	var texts []string
	for _, p := range all[:min(named, len(all))] {
		texts = append(texts, fmt.Sprintf("%s after %s and %s", lab.Clip(p.name, 80), lab.Millis(p.a.FirstByte.Seconds()*1e3),
			lab.Millis(p.b.FirstByte.Seconds()*1e3)))
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("The servers answered at different speeds on the one occasion that each was recorded (control and treatment: %s). "+
		"Trials give both arms the mean, so the comparison is of the pages, not of that occasion (timing: shared); "+
		"with timing: recorded each arm keeps the times of its own server.", strings.Join(texts, "; "))
}

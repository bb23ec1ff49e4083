package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/lab"
)

// Bounds of what is said of a run that waits. Boxes, and people who keep them, write parts of it.
const (
	mostSaid    = 700 // characters, of a run
	mostWhy     = 200 // of a text that a box or a person wrote
	mostPlaces  = 3   // reasons of devices that are named
	mostKinds   = 3   // of parts of a run that wait for different reasons
	mostMissing = 5   // requirements that a device lacks
)

// Waits says of runs, in words, why parts of them wait. A run of which nothing waits is left out.
func (h *Head) Waits(ctx context.Context, runs ...string) (map[string]string, error) {
	all, err := h.ledger.Waits(ctx, lostAfter, runs...)
	if err != nil {
		return nil, err
	}
	kinds := map[string][]ledger.Wait{}
	for _, w := range all {
		kinds[w.Run] = append(kinds[w.Run], w)
	}
	out := map[string]string{}
	for run, waits := range kinds {
		var texts []string
		for _, w := range waits[:min(len(waits), mostKinds)] {
			text := whyOf(w)
			if len(waits) > 1 {
				text = fmt.Sprintf("%d of its pages: %s", w.Parts, text)
			}
			texts = append(texts, text)
		}
		if more := len(waits) - len(texts); more > 0 {
			texts = append(texts, fmt.Sprintf("and more pages for %d other reasons", more))
		}
		out[run] = lab.Clip(strings.Join(texts, "; "), mostSaid)
	}
	return out, nil
}

// whyOf says why a part waits.
func whyOf(w ledger.Wait) string {
	var at [ledger.Lacking + 1][]ledger.Place
	for _, p := range w.Places {
		at[p.State] = append(at[p.State], p)
	}
	var text string
	switch free, busy, lacking := at[ledger.Free], at[ledger.Busy], at[ledger.Lacking]; {
	case len(w.Places) == 0:
		return errNoBox.Error()
	case len(lacking) == len(w.Places):
		return "no box has what it needs: " + nearest(w.Need, lacking)
	case len(free) > 0:
		text = verb(free, "is free", "are free") + comesAfter(w.Before)
	case len(busy) > 0:
		text = busyWith(busy) + comesAfter(w.Before)
	default: // none of those that fit gets it as they are
		text = list(slices.Concat(at[ledger.GaveBack], at[ledger.NotReady], at[ledger.Reserved], at[ledger.Silent]))
	}
	if b := w.Back; b != nil {
		text += fmt.Sprintf("; %s gave it back: %s", placeName(b.Box, b.Device), said(b.Why))
	}
	return text
}

// errNoBox says that a plan or a part has nowhere to go.
var errNoBox = errors.New("the fleet has no box: appliance boxes code makes a link with which one joins") // constant

// nearest names the device that lacks least of a need, and what.
func nearest(need fleet.Need, places []ledger.Place) string {
	lacks := func(p ledger.Place) []string {
		if p.Device.Name == "" {
			return []string{"a device"}
		}
		return need.Lacks(p.Box.Name, p.Box.Offer, p.Device)
	}
	p := slices.MinFunc(places, func(a, b ledger.Place) int { return len(lacks(a)) - len(lacks(b)) })
	all := lacks(p)
	if more := len(all) - mostMissing; more > 0 {
		all = append(all[:mostMissing], fmt.Sprintf("%d more", more))
	}
	text := nameOf(p) + " lacks " + lab.Clip(strings.Join(all, ", "), mostWhy)
	if len(places) > 1 {
		text += ", and the others no less"
	}
	return text
}

// comesAfter says how many parts come before the one that waits.
func comesAfter(before int) string {
	switch {
	case before == 0:
		return ", and it is next"
	case before == 1:
		return ", and 1 part comes first"
	case before > ledger.MostBefore:
		return fmt.Sprintf(", and more than %d parts come first", ledger.MostBefore)
	}
	return fmt.Sprintf(", and %d parts come first", before)
}

func busyWith(places []ledger.Place) string {
	if len(places) > 1 {
		return verb(places, "", "are busy")
	}
	if run := places[0].Run; run != "" {
		return nameOf(places[0]) + " carries out " + run
	}
	return nameOf(places[0]) + " carries out a run of its own box"
}

// verb says something of one device, by its name, or of several, by their number.
func verb(places []ledger.Place, one, many string) string {
	if len(places) == 1 {
		return nameOf(places[0]) + " " + one
	}
	return fmt.Sprintf("%d devices that fit %s", len(places), many)
}

// list says why a part does not go to devices: of the first, and how many more there are.
func list(places []ledger.Place) string {
	var texts []string
	for _, p := range places {
		if text := trouble(p); !slices.Contains(texts, text) { // all devices of a box may have the same
			texts = append(texts, text)
		}
		if len(texts) > mostPlaces {
			texts[mostPlaces] = "and more devices that fit do not get it either"
			break
		}
	}
	return strings.Join(texts, "; ")
}

// trouble says why a part does not go to a device.
func trouble(p ledger.Place) string {
	switch p.State {
	case ledger.GaveBack:
		return nameOf(p) + " gets it again after a pause"
	case ledger.NotReady:
		return nameOf(p) + " is not ready" + because(p.Device.Problem)
	case ledger.Silent:
		return "nothing was heard of " + p.Box.Name + " since " + p.Box.Seen.UTC().Format(time.DateTime) + " UTC"
	}
	if p.Box.Health == fleet.HealthBad {
		return p.Box.Name + " is bad" + because(p.Box.Reason)
	}
	return p.Box.Name + " is in maintenance" + because(p.Box.Reason)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + said(why)
}

// said is a text of a box or a person, in one line.
func said(text string) string { return lab.Clip(strings.Join(strings.Fields(text), " "), mostWhy) }

func nameOf(p ledger.Place) string { return placeName(p.Box.Name, p.Device.Name) }

func placeName(box, device string) string {
	if device == "" {
		return box
	}
	return box + fleet.DeviceMark + device
}

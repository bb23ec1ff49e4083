package x11

import "image"

// damage asks the server what was drawn on the screen since it was asked last.
//
// X.Org's servers lose what they drew when the shape of a pointer changes that they
// draw themselves (Xvfb without -nocursor): see docs/capture.md. So they are also asked to
// tell of every such change, and each counts as if all had been drawn.
type damage struct {
	ask     []byte // Subtract into the region, then FetchRegion
	cursors int    // changes of the pointer's shape until the last answer
}

// openDamage returns nil when the server lacks DAMAGE or XFIXES.
func openDamage(w *wire) (*damage, error) {
	fixes, event, err := w.extension("XFIXES")
	if err != nil || fixes == 0 {
		return nil, err
	}
	major, _, err := w.extension("DAMAGE")
	if err != nil || major == 0 {
		return nil, err
	}
	if _, err := w.call(request(fixes, 0, 2, 0)); err != nil { // QueryVersion: wanted before any other
		return nil, err
	}
	if _, err := w.call(request(major, 0, 1, 1)); err != nil {
		return nil, err
	}
	object, region := w.id(), w.id()
	const nonEmpty = 3 // report level: one event until the next Subtract; none is waited for
	const displayed = 1
	w.counted = event + 1 // CursorNotify
	err = w.check(
		request(major, 1, object, w.root, nonEmpty), // DamageCreate
		request(fixes, 3, w.root, displayed),        // SelectCursorInput
		request(fixes, 5, region))                   // CreateRegion, empty
	if err != nil {
		return nil, err
	}
	ask := append(request(major, 3, object, 0, region), request(fixes, 19, region)...)
	return &damage{ask: ask}, nil
}

// take appends the rectangles in which something was drawn since the last
// call, cut to region and relative to its corner, to dst.
func (d *damage) take(w *wire, region image.Rectangle, dst []image.Rectangle) ([]image.Rectangle, error) {
	if err := w.send(d.ask, 2); err != nil {
		return dst, err
	}
	r, err := w.await(w.seq)
	if err != nil {
		return dst, err
	}
	if changed := w.count != d.cursors; changed {
		d.cursors = w.count
		return append(dst, image.Rectangle{Max: region.Size()}), nil
	}
	for b := r[32:]; len(b) >= 8; b = b[8:] {
		x, y := int(int16(le.Uint16(b))), int(int16(le.Uint16(b[2:])))
		drawn := image.Rect(x, y, x+int(le.Uint16(b[4:])), y+int(le.Uint16(b[6:]))).Intersect(region)
		if !drawn.Empty() {
			dst = append(dst, drawn.Sub(region.Min))
		}
	}
	return dst, nil
}

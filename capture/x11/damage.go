package x11

import "image"

// damage asks the server what was drawn on the screen since it was asked last.
//
// The pointer is hidden meanwhile: it is not in the pictures, and a server that
// draws it itself (Xvfb 21.1.7) loses damage when its shape changes, of whatever else
// is drawn just then. See docs/capture.md.
type damage struct {
	ask []byte // Subtract into the region, then FetchRegion
}

// openDamage returns nil when the server lacks DAMAGE, or XFIXES 4 to hide the pointer with.
func openDamage(w *wire) (*damage, error) {
	fixes, err := w.extension("XFIXES")
	if err != nil || fixes == 0 {
		return nil, err
	}
	major, err := w.extension("DAMAGE")
	if err != nil || major == 0 {
		return nil, err
	}
	const wanted = 4
	version, err := w.call(request(fixes, 0, wanted, 0)) // QueryVersion: wanted before any other
	if err != nil || le.Uint32(version[8:]) < wanted {
		return nil, err
	}
	if _, err := w.call(request(major, 0, 1, 1)); err != nil {
		return nil, err
	}
	object, region := w.id(), w.id()
	const nonEmpty = 3 // report level: one event until the next Subtract; none is waited for
	err = w.check(
		request(fixes, 29, w.root),                  // HideCursor, until the connection ends
		request(major, 1, object, w.root, nonEmpty), // DamageCreate
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
	for b := r[32:]; len(b) >= 8; b = b[8:] {
		x, y := int(int16(le.Uint16(b))), int(int16(le.Uint16(b[2:])))
		drawn := image.Rect(x, y, x+int(le.Uint16(b[4:])), y+int(le.Uint16(b[6:]))).Intersect(region)
		if !drawn.Empty() {
			dst = append(dst, drawn.Sub(region.Min))
		}
	}
	return dst, nil
}

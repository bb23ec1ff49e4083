package archive

import (
	"errors"
	"fmt"
	"io"
	"os"

	"eidetic/internal/lab"
)

// Save writes a as a WACZ to path, in place of what is there. A save that
// fails leaves the old file untouched and nothing beside it.
func Save(path string, a *Archive) error {
	temp := path + ".edit"
	w, err := Create(temp, createOptions(a))
	if err != nil {
		return fmt.Errorf("save archive: %w", err)
	}
	if err := copyInto(w, a); err != nil {
		return errors.Join(fmt.Errorf("save archive: %w", err), w.Discard())
	}
	if err := w.Close(); err != nil {
		_ = os.Remove(temp + WorkingSuffix)
		return fmt.Errorf("save archive: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("save archive: %w", err)
	}
	return nil
}

// WriteWARC writes a as a WARC 1.1 of per-record gzip members to path, which
// must not exist.
func WriteWARC(path string, a *Archive) error {
	temp := path + ".edit"
	w, err := Create(temp, createOptions(a))
	if err != nil {
		return fmt.Errorf("export WARC: %w", err)
	}
	err = copyInto(w, a)
	if err == nil {
		err = os.Link(temp+WorkingSuffix, path) // fails if path exists, unlike a rename
	}
	if err = errors.Join(err, w.Discard()); err != nil {
		return fmt.Errorf("export WARC: %w", err)
	}
	return nil
}

func createOptions(a *Archive) CreateOptions {
	o := a.options
	if o.Wall.IsZero() && len(a.exchanges) > 0 {
		o.Wall = a.exchanges[0].Wall
	}
	if o.Wall.IsZero() { // an import without any date: the first that a WARC may have
		o.Wall = o.Wall.AddDate(1969, 0, 0)
	}
	return o
}

func copyInto(w *Writer, a *Archive) error {
	for _, e := range a.exchanges {
		if err := w.Add(e); err != nil {
			return err
		}
	}
	for _, d := range a.dns {
		if err := w.AddDNS(d); err != nil {
			return err
		}
	}
	for _, p := range a.pages {
		if err := w.AddPage(p); err != nil {
			return err
		}
	}
	return nil
}

// With returns an archive with other exchanges and all else of a.
func (a *Archive) With(exchanges []*lab.Exchange) *Archive {
	return New(exchanges, a.dns, a.pages, a.options)
}

// Merge joins recordings one after another: the orders and starts of each
// follow those of the one before, so that sequences stay sequences. Title,
// seed and page date are the first's.
func Merge(list ...*Archive) *Archive {
	var exchanges []*lab.Exchange
	var dns []DNS
	var pages []Page
	seen := map[string]bool{}
	order := 0
	for _, a := range list {
		base := order
		for _, e := range a.exchanges {
			if seen[e.ID] {
				continue // the same exchange in two recordings
			}
			seen[e.ID] = true
			moved := *e
			moved.Order = base + e.Order
			order = max(order, moved.Order+1)
			exchanges = append(exchanges, &moved)
		}
		dns, pages = append(dns, a.dns...), append(pages, a.pages...)
	}
	var o CreateOptions
	if len(list) > 0 {
		o = list[0].options
	}
	return New(exchanges, dns, pages, o)
}

// readAllLimited reads r, at most n bytes.
func readAllLimited(r io.Reader, n int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, n+1))
	if err == nil && int64(len(b)) > n {
		return nil, fmt.Errorf("more than %d bytes: %w", n, errLimit)
	}
	return b, err
}

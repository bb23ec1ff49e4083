package archive

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// segmented is a record that was written in segments (WARC 1.1, 7): the first has its header and the beginning of its
// block, and continuation records have the rest. They may be in several files.
type segmented struct {
	first *record // nil while it has not come
	rest  map[int][]byte
	total int64 // bytes of the whole block, which the last one states; 0 while that has not come
	place string
}

// hold keeps a segment until the others have come. A record that is none is not held.
func (ld *loader) hold(it *item) bool {
	n, err := strconv.Atoi(strings.TrimSpace(it.get("WARC-Segment-Number")))
	id, isRest := it.id(), it.kind() == "continuation"
	if isRest {
		id = unbracket(it.get("WARC-Segment-Origin-ID"))
	}
	if isRest == (n < 2) || err != nil || id == "" {
		return false
	}
	s := ld.segments[id]
	if s == nil {
		s = &segmented{rest: map[int][]byte{}, place: fmt.Sprint("record ", ld.records)}
		ld.segments[id], ld.segmentIDs = s, append(ld.segmentIDs, id)
	}
	switch {
	case !isRest && s.first == nil:
		s.first = it.record
	case isRest && s.rest[n] == nil:
		s.rest[n] = it.block
		if total, err := strconv.ParseInt(it.get("WARC-Segment-Total-Length"), 10, 64); err == nil && total > 0 {
			s.total = total
		}
	default:
		ld.a.warn("record %d is a segment of %.80s again, and is left out", ld.records, id)
	}
	return true
}

// joinSegments takes the records that were written in segments.
func (ld *loader) joinSegments() error {
	for _, id := range ld.segmentIDs {
		s := ld.segments[id]
		if s.first == nil {
			ld.a.lose("%s is left out: its first segment, %.80s, is not in the file: if another WARC of the crawl has it, import both in one zip", s.place, id)
			continue
		}
		rec, err := ld.join1(s)
		if err != nil {
			return err
		}
		if err := ld.take(parse(rec, ld.limits)); err != nil {
			return err
		}
	}
	ld.segments, ld.segmentIDs = nil, nil
	return nil
}

// join1 joins the segments up to the first that is missing.
func (ld *loader) join1(s *segmented) (*record, error) {
	parts, size := [][]byte{s.first.block}, int64(len(s.first.block))
	for n := 2; s.rest[n] != nil; n++ {
		parts, size = append(parts, s.rest[n]), size+int64(len(s.rest[n]))
	}
	if size > ld.limits.block() {
		return nil, fmt.Errorf("%s has %d bytes in its segments, more than %d: %w", s.place, size, ld.limits.block(), errLimit)
	}
	isWhole := len(parts) == len(s.rest)+1 && s.total == size
	if !isWhole {
		ld.notes.add(s.place, target(s.first.get("WARC-Target-URI")), "cut off: not all of the segments that it was written in are in the file")
	}
	if err := ld.limits.budget.take(size); err != nil {
		return nil, err
	}
	rec := &record{block: bytes.Join(parts, nil)}
	ld.limits.budget.give(size) // the segments are not kept
	for _, f := range s.first.header {
		switch name := strings.ToLower(f.Name); {
		case name == "warc-segment-number", name == "warc-block-digest", name == "warc-truncated", name == "warc-payload-digest" && !isWhole:
		default:
			rec.header = append(rec.header, f)
		}
	}
	if !isWhole {
		rec.header = append(slices.Clip(rec.header), lab.HeaderField{Name: "WARC-Truncated", Value: "length"})
	}
	return rec, nil
}

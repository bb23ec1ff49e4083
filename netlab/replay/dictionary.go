package replay

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// An answer in dcz (RFC 9842) says how it differs from an earlier one, which the browser has: its dictionary. A browser
// stores that on its own time, so that in a replay it may not have it yet, or not any more.

// dczHead is what a body in dcz begins with, before the SHA-256 of its dictionary (RFC 9842, 5).
const dczHead = "\x5e\x2a\x4d\x18\x20\x00\x00\x00"

// mostDictionaries bounds the bytes of a recording's dictionaries, and of what is looked at to find them.
const mostDictionaries = 256 << 20

// dictionaries are those that answers of a recording name, by their SHA-256. They are found when the first is needed.
type dictionaries struct {
	once  sync.Once
	found map[[sha256.Size]byte][]byte
}

// dictionaryOf is the SHA-256 of the dictionary of an answer in dcz; ok is false for another answer.
func dictionaryOf(e *lab.Exchange) (sum [sha256.Size]byte, ok bool) {
	body := e.Response.Body
	if !strings.EqualFold(e.Response.Get("Content-Encoding"), "dcz") || !bytes.HasPrefix(body, []byte(dczHead)) {
		return sum, false
	}
	return sum, copy(sum[:], body[len(dczHead):]) == len(sum)
}

// find looks for the dictionaries that the recording's answers name.
func (d *dictionaries) find(exchanges []*lab.Exchange) {
	d.found = map[[sha256.Size]byte][]byte{}
	wanted, left := map[[sha256.Size]byte]bool{}, int64(mostDictionaries)
	for _, e := range exchanges {
		if sum, ok := dictionaryOf(e); ok {
			wanted[sum] = true
		}
	}
	for _, e := range exchanges {
		if e.Response.Get("Use-As-Dictionary") == "" || len(wanted) == len(d.found) {
			continue
		}
		text, err := decodeWithin(e, min(left, inject.MaxDecoded(int64(len(e.Response.Body)))))
		if err != nil {
			continue
		}
		left -= int64(len(text))
		if sum := sha256.Sum256(text); wanted[sum] {
			d.found[sum] = text
		}
	}
}

// decodeWithin decodes a body of at most so many bytes.
func decodeWithin(e *lab.Exchange, most int64) ([]byte, error) {
	r, err := inject.NewDecoder(inject.ContentCoding(e.Response.Header), bytes.NewReader(e.Response.Body))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readWithin(r, most)
}

func readWithin(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = inject.ErrExpands
	}
	return text, err
}

// undo decodes an answer in dcz.
func (p *Prepared) undo(e *lab.Exchange) ([]byte, error) {
	p.dictionaries.once.Do(func() { p.dictionaries.find(p.archive.Exchanges()) })
	sum, _ := dictionaryOf(e)
	dictionary, ok := p.dictionaries.found[sum]
	if !ok {
		return nil, errors.New("the recording has no such dictionary")
	}
	const window = 128 << 20 // RFC 9842, 5: it may be as large as the dictionary, and a quarter
	coded := e.Response.Body[len(dczHead)+len(sum):]
	z, err := zstd.NewReader(bytes.NewReader(coded), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderDictRaw(0, dictionary))
	if err != nil {
		return nil, fmt.Errorf("decode dcz: %w", err)
	}
	defer z.Close()
	return readWithin(z, inject.MaxDecoded(int64(len(coded)+len(dictionary))))
}

// undone returns the body of an answer in dcz for a device: as it was recorded for one that has the dictionary, else
// decoded, which is done once.
func (s *Session) undone(en *entry, h http.Header) *body {
	const name = "Available-Dictionary"
	b := en.body
	if accepts(h.Get("Accept-Encoding"), "dcz") && h.Get(name) == en.Request.Get(name) {
		return b
	}
	key := recodeKey{body: b}
	if made, ok := s.p.recoded.Load(key); ok {
		return made.(*body)
	}
	made := b // what cannot be decoded is served as recorded
	if plain, err := s.p.undo(en.Exchange); err == nil {
		made = &body{bytes: plain, sum: hexSum(plain), header: recodedHeader(b.header, "", len(plain))}
		if n := len(b.chunks); n > 0 && len(plain) > 0 {
			made.chunks = []lab.Chunk{{At: b.chunks[n-1].At, Bytes: len(plain)}}
		}
		made.prepare(en)
	}
	kept, _ := s.p.recoded.LoadOrStore(key, made)
	return kept.(*body)
}

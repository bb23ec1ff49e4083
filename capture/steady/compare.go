package steady

import (
	"encoding/binary"

	"eidetic/internal/lab"
)

// limits are thresholds in the form in which eight bytes are compared at once.
type limits struct {
	most        int
	mean        float64
	above, less uint64 // added to four differences, set the top bit of one that is over, or not under
}

// Four bytes of eight as numbers of 16 bits.
const (
	evenBytes = 0x00ff00ff00ff00ff
	ones      = 0x0001000100010001
	tops      = 0x8000800080008000
	zero      = 256 // what a difference of 0 is written as, so that none is negative
)

func newLimits(n lab.ScreenNoise) limits {
	most := min(n.Pixel, 255)
	return limits{
		most: most, mean: n.Mean,
		above: ones * uint64(0x8000-zero-most-1), // top bit: difference > most
		less:  ones * uint64(0x8000-zero+most),   // top bit missing: difference < −most
	}
}

// compare says whether a sample of a tile differs by more than most, or the mean of one of its channels by more than
// mean. The samples are taken in turns of eight bytes, so that of a pixel of four bytes each channel has
// means of its own; of one of three bytes they are of the three together.
func compare(held, pix []byte, p *plane, row, i int, l limits) bool {
	from, to := i*p.width, min((i+1)*p.width, p.Stride)
	rows := min((row+1)*tileRows, p.Rows) - row*tileRows
	at := p.Off + row*tileRows*p.Stride + from
	var over, even, odd uint64
	n := to - from
	if n%8 != 0 {
		return compareEdge(held, pix, p, row, i, l)
	}
	for range rows {
		a, b := held[at:at+n], pix[at:at+n]
		for len(a) >= 8 && len(b) >= 8 {
			x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
			a, b = a[8:], b[8:]
			if x == y {
				even, odd = even+zero*ones, odd+zero*ones
				continue
			}
			d := y&evenBytes + zero*ones - x&evenBytes
			e := y>>8&evenBytes + zero*ones - x>>8&evenBytes
			over |= (d + l.above) | ^(d + l.less) | (e + l.above) | ^(e + l.less)
			even, odd = even+d, odd+e
		}
		at += p.Stride
	}
	if over&tops != 0 {
		return true
	}
	samples := rows * n / 8
	limit := int(l.mean*float64(2*samples)) + 1
	for shift := 0; shift < 32; shift += 16 {
		for _, sum := range [2]uint64{even, odd} {
			// Bytes that are four apart belong to one channel.
			d := int(sum>>shift&0xffff) + int(sum>>(shift+32)&0xffff) - 2*zero*samples
			if d >= limit || -d >= limit {
				return true
			}
		}
	}
	return false
}

// compareEdge is compare for the last tile of a row that is no multiple of eight bytes.
func compareEdge(held, pix []byte, p *plane, row, i int, l limits) bool {
	var sum, n [4]int
	for y := row * tileRows; y < min((row+1)*tileRows, p.Rows); y++ {
		at, end := p.Off+y*p.Stride+i*p.width, p.Off+y*p.Stride+min((i+1)*p.width, p.Stride)
		for k := at; k < end; k++ {
			d := int(pix[k]) - int(held[k])
			if d > l.most || -d > l.most {
				return true
			}
			sum[(k-at)&3] += d
			n[(k-at)&3]++
		}
	}
	for k, s := range sum {
		if limit := int(l.mean*float64(n[k])) + 1; n[k] > 0 && (s >= limit || -s >= limit) {
			return true
		}
	}
	return false
}

package framecode

// Encode returns the cells of a code.
func Encode(c Code) [Cells]bool {
	var out [Cells]bool
	put := func(at, n int, v uint64) {
		for i := range n {
			out[at+i] = v>>(n-1-i)&1 == 1
		}
	}
	put(0, 8, mark)
	put(8, 20, uint64(c.Counter))
	put(28, 32, uint64(uint32(uint64(c.PageMS*10+0.5))))
	put(60, 24, uint64(c.Bits))
	put(84, 16, uint64(checksum(out[8:84])))
	return out
}

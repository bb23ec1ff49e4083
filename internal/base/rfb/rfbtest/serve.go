package rfbtest

import (
	"encoding/binary"
	"fmt"
	"image"
	"slices"
)

// Encodings that a client can announce and that the server supports.
const (
	desktopSize = -223
	fence       = -312
	continuous  = -313
)

// serve serves one client until it disconnects.
func (c *client) serve() error {
	if err := c.handshake(); err != nil {
		return err
	}
	for {
		kind, err := c.r.ReadByte()
		if err != nil {
			return err
		}
		c.s.mu.Lock()
		for c.s.silent {
			c.s.quiet.Wait()
		}
		c.s.mu.Unlock()
		if err := c.message(kind); err != nil {
			return err
		}
		c.s.mu.Lock()
		err = c.update()
		c.s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// message handles one message of the client.
func (c *client) message(kind byte) error {
	lengths := map[byte]int{0: 19, 2: 3, 3: 9, 4: 7, 5: 5, 150: 9, 248: 8}
	n, ok := lengths[kind]
	if !ok {
		return fmt.Errorf("message %d", kind)
	}
	b, err := c.read(n)
	if err != nil {
		return err
	}
	switch kind {
	case 2:
		return c.announced(int(binary.BigEndian.Uint16(b[1:])))
	case 248:
		payload, err := c.read(int(b[7]))
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(b[3:])&(1<<31) == 0 {
			return nil // the answer to our fence
		}
		b[3] &^= 0x80
		return c.send(append(append([]byte{248}, b...), payload...))
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	switch kind {
	case 3:
		r := rectangle(b[1:])
		if b[0] == 0 {
			c.dirty = c.dirty.Union(r)
		}
		c.wanted = c.wanted.Union(r)
	case 4:
		c.s.input = append(c.s.input, fmt.Sprintf("%s %x", []string{"up", "down"}[b[0]], binary.BigEndian.Uint32(b[3:])))
	case 5:
		c.s.input = append(c.s.input, fmt.Sprintf("pointer %x %d,%d", b[0], binary.BigEndian.Uint16(b[1:]), binary.BigEndian.Uint16(b[3:])))
	case 150:
		c.always = b[0] == 1
	}
	return nil
}

// announced reads the client's encodings, and offers the server's extensions.
func (c *client) announced(n int) error {
	b, err := c.read(4 * n)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	for ; len(b) > 0; b = b[4:] {
		c.encodings = append(c.encodings, int32(binary.BigEndian.Uint32(b)))
	}
	size := c.s.size
	c.s.mu.Unlock()
	if late := c.s.cfg.Late; late != (image.Point{}) && late != size {
		c.s.Resize(late.X, late.Y)
	}
	if c.s.cfg.Continuous && slices.Contains(c.encodings, continuous) {
		if err := c.send([]byte{150}); err != nil {
			return err
		}
	}
	if c.s.cfg.Fences && slices.Contains(c.encodings, fence) {
		return c.send([]byte{248, 0, 0, 0, 0x80, 0, 0, 1, 2, 'h', 'i'})
	}
	return nil
}

func rectangle(b []byte) image.Rectangle {
	at := image.Pt(int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])))
	size := image.Pt(int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:])))
	return image.Rectangle{Min: at, Max: at.Add(size)}
}

// update sends the region that is dirty and requested. The caller holds the server's mu.
func (c *client) update() error {
	if c.s.silent {
		return nil
	}
	whole := image.Rectangle{Max: c.s.size}
	if c.known != c.s.size && slices.Contains(c.encodings, desktopSize) {
		c.known = c.s.size
		return c.send(header(1, whole, desktopSize))
	}
	if c.known != c.s.size {
		return nil
	}
	r := c.dirty.Intersect(whole)
	if !c.always {
		r = r.Intersect(c.wanted)
	}
	if r.Empty() {
		return nil
	}
	if c.s.cfg.Prelude && !c.prelude && !c.always {
		c.prelude, c.wanted = true, image.Rectangle{}
		return c.send(header(1, whole, desktopSize))
	}
	b := header(1, r, 0)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		at := 4 * (y*c.s.size.X + r.Min.X)
		b = append(b, c.s.pix[at:at+4*r.Dx()]...)
	}
	c.dirty, c.wanted = image.Rectangle{}, image.Rectangle{}
	return c.send(b)
}

// header is the start of an update of n rectangles, with the first one's place and encoding.
func header(n int, r image.Rectangle, encoding int32) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(n))
	for _, v := range []int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return binary.BigEndian.AppendUint32(b, uint32(encoding))
}

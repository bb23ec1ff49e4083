package lab

import "testing"

// Colours of the standards' own tables: pure red as BT.601, BT.709 and BT.2020 encode it in eight bits.
func TestYCbCr(t *testing.T) {
	for _, c := range []struct {
		name    string
		f       Format
		y, u, v byte
		r, g, b byte
	}{
		{"601 limited", Format{Matrix: BT601}, 81, 90, 240, 254, 0, 0}, // 1.164·65 + 1.596·112 = 254.4
		{"601 full", Format{Matrix: BT601, Range: FullRange}, 76, 85, 255, 254, 0, 0},
		{"709 limited", Format{Matrix: BT709, Range: LimitedRange}, 63, 102, 240, 255, 1, 0},
		{"2020 limited", Format{Matrix: BT2020}, 74, 97, 240, 255, 0, 1},
		{"240M white", Format{Matrix: SMPTE240M}, 235, 128, 128, 255, 255, 255},
		{"unknown, small", Format{Height: 719}, 81, 90, 240, 254, 0, 0},
		{"unknown, large", Format{Height: 720}, 63, 102, 240, 255, 1, 0},
		{"limited black", Format{}, 16, 128, 128, 0, 0, 0},
		{"full black", Format{Range: FullRange}, 0, 128, 128, 0, 0, 0},
		{"beyond white", Format{}, 255, 128, 128, 255, 255, 255},
		{"full grey", Format{Range: FullRange}, 77, 128, 128, 77, 77, 77},
	} {
		if r, g, b := c.f.YCbCr().RGB(c.y, c.u, c.v); r != c.r || g != c.g || b != c.b {
			t.Errorf("%s: (%d, %d, %d) is (%d, %d, %d), want (%d, %d, %d)", c.name, c.y, c.u, c.v, r, g, b, c.r, c.g, c.b)
		}
	}
}

// The tables agree with the formula everywhere.
func TestYCbCrTables(t *testing.T) {
	for _, f := range []Format{{Matrix: BT601}, {Matrix: BT2020}, {Matrix: BT2020, Range: FullRange}} {
		c := f.YCbCr()
		tables := c.Tables()
		for y := range 256 {
			for u := 0; u < 256; u += 5 {
				for v := 0; v < 256; v += 5 {
					r, g, b := c.RGB(byte(y), byte(u), byte(v))
					want := uint32(r)<<16 | uint32(g)<<8 | uint32(b)
					if got := tables.BGRX(byte(y), byte(u), byte(v)); got != want {
						t.Fatalf("%+v: (%d, %d, %d) is %06x by the tables, %06x by the formula", f, y, u, v, got, want)
					}
				}
			}
		}
	}
}

func TestStretch(t *testing.T) {
	if (Format{Pixels: BGRX}).Stretch() != nil || (Format{Pixels: NV12, Range: LimitedRange}).Stretch() != nil {
		t.Error("RGB of full range and Y′CbCr are not stretched")
	}
	table := Format{Pixels: BGR24, Range: LimitedRange}.Stretch()
	for in, want := range map[byte]byte{0: 0, 16: 0, 126: 128, 235: 255, 255: 255} {
		if table[in] != want {
			t.Errorf("%d of limited range is %d, want %d", in, table[in], want)
		}
	}
}

func TestValidateColours(t *testing.T) {
	f := Format{Pixels: NV12, Width: 2, Height: 2, Rate: 60, Matrix: BT2020, Range: FullRange}
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Format{{Matrix: "2100"}, {Range: "wide"}} {
		bad.Pixels, bad.Width, bad.Height, bad.Rate = NV12, 2, 2, 60
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is valid, want an error", bad)
		}
	}
}

package reel

// A frame's body is a list of parts. Each part codes some rectangles of one
// plane and stands by itself, so that parts are encoded and decoded on several
// processors. See docs/formats/reel.md.

// A part's first byte is the number of its plane, and partMoves when a
// rectangle of it comes from elsewhere in the frame before.
const partMoves = 0x80

// What is done with a rectangle.
const (
	opLiteral = 0 // its units follow in the part's literals
	opMove    = 1 // its units stood elsewhere in the frame before
	opFill    = 2 // all its units are equal
)

// How a part's literals are compressed.
const (
	codeRaw = 0 // not at all
	codeS2  = 1 // klauspost/compress/s2 block format
	// codePredicted: residuals in Huffman blocks, see predictCoder.
	codePredicted = 2
	// codeS2Huffman: an S2 block's length, then the block in Huffman blocks.
	codeS2Huffman = 3
	// codeGrey: only the first component's samples, then compressed with one of
	// the codes above but codePredicted; see grey.
	codeGrey = 4
)

// What decoding costs, in nanoseconds a byte, on a modest processor. The
// writer sets a key frame before the way from the last one gets longer than
// maxChain, so that any frame can be had within 50 ms.
const (
	costLiteral   = 1.5
	costPredicted = 4
	costCopy      = 0.08
	costRow       = 50 // nanoseconds for a row that is that of the frame before, at another place
	maxChain      = 30e6
)

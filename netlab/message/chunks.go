package message

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Bounds on what stands between the bytes of a chunked body.
const (
	maxSizeLine = 4 << 10
	maxTrailer  = 64 << 10
)

var errChunk = errors.New("the chunked coding is malformed") // constant

// Chunks reads a chunked body (RFC 9112, 7.1) without its chunks, as browsers do: lines may end with LF alone, sizes
// may have zeros in front and blanks behind. Read returns what has arrived. A body that ends before its last chunk
// gives io.ErrUnexpectedEOF.
type Chunks struct {
	r       *bufio.Reader
	left    int64 // of the chunk
	between bool  // the end of a chunk's line follows
	err     error
	// HasLast says that the last chunk was read: the body is whole, even if the trailer is not.
	HasLast bool
	// Ended counts the chunks that were read with the line end behind them.
	Ended int
	// Trailer holds the fields after the last chunk, once Read has returned io.EOF.
	Trailer []lab.HeaderField
}

// NewChunks reads from r, and no byte beyond the body.
func NewChunks(r *bufio.Reader) *Chunks { return &Chunks{r: r} }

// Read implements io.Reader.
func (c *Chunks) Read(p []byte) (int, error) {
	if c.left == 0 && c.err == nil {
		c.err = c.next()
	}
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); c.left == 0 {
		c.between = true
	}
	if err != nil {
		c.err = unexpected(err)
	}
	if n > 0 {
		return n, nil // an error is returned by the next call
	}
	return 0, c.err
}

// next reads the size of the next chunk, and after the last one the trailer.
func (c *Chunks) next() error {
	most := maxSizeLine
	if c.between {
		line, err := readLine(c.r, &most)
		if err != nil {
			return unexpected(err)
		}
		if line != "" {
			return errChunk
		}
		c.between = false
		c.Ended++
	}
	line, err := readLine(c.r, &most)
	if err != nil {
		return unexpected(err)
	}
	size, _, _ := strings.Cut(line, ";")
	size = strings.Trim(size, " \t")
	if size == "" || strings.Trim(size, "0123456789abcdefABCDEF") != "" {
		return errChunk
	}
	if c.left, err = strconv.ParseInt(size, 16, 64); err != nil {
		return errChunk
	}
	if c.left > 0 {
		return nil
	}
	c.HasLast = true
	rest := &Head{}
	for most = maxTrailer; ; {
		line, err := readLine(c.r, &most)
		if err != nil {
			return unexpected(err)
		}
		if line == "" {
			c.Trailer = rest.Fields
			return io.EOF
		}
		rest.add(line)
	}
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

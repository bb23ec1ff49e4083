package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A disk that fails is no end of the film.
func TestY4MReadError(t *testing.T) {
	const start, frame = "YUV4MPEG2 W2 H2 F60:1 Cmono\n", "FRAME\nabcd"
	broken := errors.New("the disk is broken")
	for _, text := range []string{start, start + frame, start + "FRA"} {
		s, err := newY4M(bufio.NewReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Next(context.Background())
		}
		if !errors.Is(err, broken) {
			t.Errorf("%q and a broken disk: %v", text, err)
		}
	}
}

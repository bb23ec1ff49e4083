package noise

import (
	"io"

	"eidetic/internal/lab"
)

func (l *Load) AddTrace(r io.Reader, start lab.Time, page string) error { return nil }

package noise

import "io"

type Report struct{}

func NewReport([]Load) Report              { return Report{} }
func (Report) Print(io.Writer, bool) error { return nil }
func (Report) Results() []int              { return nil }

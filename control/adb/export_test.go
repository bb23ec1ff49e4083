package adb

import (
	"io"

	"eidetic/internal/lab"
)

// What the tests of this package see of its parsers.
var (
	PIDsOf   = pidsOf
	RanOf    = ranOf
	MemoryOf = memoryOf
	SharesOf = sharesOf

	AppendSetClipboard = appendSetClipboard
)

// ReadAnswer is readAnswer.
func ReadAnswer(r io.Reader) (kind byte, sequence uint64, text string, err error) {
	a, err := readAnswer(r)
	return a.kind, a.sequence, a.text, err
}

// ReadAll makes samples of a list of processes and of readings of them, a tenth of a second apart.
func ReadAll(app, ps string, texts ...string) (list []lab.ProcessSample) {
	r := newReadingsReader(app, func(s lab.ProcessSample) { list = append(list, s) })
	now := lab.Time(200e9)
	for _, step := range append([][2]string{{askPage, "@ 100.00\ng 4096\n.\n"}, {askList, "@ 100.00\n" + ps}}, readingsOf(texts)...) {
		r.begin(step[0], now)
		r.add([]byte(step[1]), now+5e6)
		now += 100e6
	}
	return list
}

func readingsOf(texts []string) (all [][2]string) {
	for _, text := range texts {
		all = append(all, [2]string{"spt", text})
	}
	return all
}

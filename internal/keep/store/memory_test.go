package store

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

func TestReadMemory(t *testing.T) {
	good := `{"t_ns":5,"pid":7,"name":"ren\u0000derer","rss_bytes":4096,"pss_bytes":9}` + "\n"
	list, left, err := ReadMemory(strings.NewReader(good + "no JSON\n\n" + `{"rss_bytes":-1}` + "\n" + good))
	if err != nil || left != 2 || len(list) != 2 || list[0] != (lab.ProcessMemory{At: 5, PID: 7, Name: "ren derer", RSS: 4096, PSS: 9}) {
		t.Errorf("ReadMemory() = %+v, %d left, %v", list, left, err)
	}
	list, left, err = ReadMemory(strings.NewReader(strings.Repeat(good, lab.MostMemory+3)))
	if err != nil || len(list) != lab.MostMemory || left != 3 {
		t.Errorf("ReadMemory() of too many = %d, %d left, %v", len(list), left, err)
	}
}

func FuzzReadMemory(f *testing.F) {
	f.Add(`{"t_ns":5,"pid":7,"name":"renderer","rss_bytes":4096}`)
	f.Fuzz(func(t *testing.T, text string) {
		list, _, _ := ReadMemory(strings.NewReader(text)) // a line may be too long
		for _, m := range list {
			if m.RSS < 0 || m.PSS < 0 || m.At < 0 || len(m.Name) > 300 {
				t.Errorf("%q is read as %+v", text, m)
			}
		}
	})
}

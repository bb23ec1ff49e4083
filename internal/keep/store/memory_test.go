package store

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
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
		defer testlab.Input(t)()
		list, _, _ := ReadMemory(strings.NewReader(text)) // a line may be too long
		for _, m := range list {
			if m.RSS < 0 || m.PSS < 0 || m.At < 0 || len(m.Name) > 300 {
				t.Errorf("%q is read as %+v", text, m)
			}
		}
	})
}

func FuzzReadSamples(f *testing.F) {
	f.Add(`{"t_ns":5,"pid":7,"name":"ren\u0000derer","of":"browser","for_ns":10000000,"ran_ns":5,"waited_ns":7}` + "\n" + `{"t_ns":5,"pid":7,"rss_bytes":4096,"own_bytes":4097}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		list, _, _ := ReadSamples(strings.NewReader(text)) // a line may be too long
		for _, s := range list {
			if s.PID < 0 || s.At < 0 || s.For < 0 || s.Ran < 0 || s.Waited < 0 || s.Own < 0 || s.Own > s.RSS || len(s.Name) > 300 {
				t.Errorf("%q is read as %+v", text, s)
			}
		}
	})
}

func TestReadSamples(t *testing.T) {
	good := `{"t_ns":5,"pid":7,"name":"ren\u0000derer","of":"browser","for_ns":10000000,"ran_ns":5,"waited_ns":7}` + "\n"
	list, left, err := ReadSamples(strings.NewReader(good + `{"t_ns":5,"pid":7,"rss_bytes":4096,"own_bytes":4097}` + "\nno JSON\n"))
	want := lab.ProcessSample{At: 5, PID: 7, Name: "ren derer", Of: lab.OfBrowser, For: 1e7, Ran: 5, Waited: 7}
	if err != nil || left != 2 || len(list) != 1 || list[0] != want {
		t.Errorf("ReadSamples() = %+v, %d left, %v; want %+v, 2", list, left, err, want)
	}
}

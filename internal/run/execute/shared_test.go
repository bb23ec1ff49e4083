package execute

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// recordedAs is an arm whose page was recorded with answers after so many ms.
func recordedAs(page string, answers map[string]int, order ...string) *cellArm {
	var all []*lab.Exchange
	for i, address := range order {
		wait := time.Duration(answers[address]) * time.Millisecond
		all = append(all, &lab.Exchange{ID: page + address, Order: i, Method: "GET", URL: address, Status: 200, FirstByte: wait,
			Chunks: []lab.Chunk{{At: wait + 5*time.Millisecond, Bytes: 1}}, Response: lab.Message{Body: []byte("x")},
			Interim: []lab.Interim{{At: wait / 2, Status: 103}}})
	}
	one := &cellArm{recorded: archive.New(all, nil, nil, archive.CreateOptions{Wall: time.Now()})}
	one.arm.Page = page
	return one
}

func TestShare(t *testing.T) {
	const left, right, third = "http://localhost:3000", "https://staging.test", "https://cdn.test/lib.js"
	control := recordedAs(left+"/", map[string]int{left + "/": 73, left + "/api?a=1": 20, left + "/only": 9, third: 40},
		left+"/", left+"/api?a=1", third, left+"/only")
	treatment := recordedAs(right+"/", map[string]int{right + "/": 107, right + "/api?a=1": 22, third: 60, right + "/api?a=2": 500},
		third, right+"/", right+"/api?a=2", right+"/api?a=1")
	x := &Execution{run: &lab.Run{}, News: News{}}
	x.share([]*cellArm{control, treatment})
	want := map[string]int{"/": 90, "/api?a=1": 21, third: 50, "/only": 9, "/api?a=2": 500}
	for _, one := range []*cellArm{control, treatment} {
		for _, e := range one.recorded.Exchanges() {
			name := withoutServer(e.URL, one.arm.Page)
			if got := int(e.FirstByte.Milliseconds()); got != want[name] || e.Chunks[0].At != e.FirstByte+5*time.Millisecond {
				t.Errorf("%s of %s is answered after %d ms, its body after %v; want %d", name, one.arm.Page, got, e.Chunks[0].At, want[name])
			}
			if e.Interim[0].At > e.FirstByte {
				t.Errorf("%s: an early answer after %v, the answer after %v", name, e.Interim[0].At, e.FirstByte)
			}
		}
	}
	told := strings.Join(x.run.Warnings, "\n")
	if !strings.Contains(told, "/ after 73 ms and 107 ms") || !strings.Contains(told, "timing: recorded") || strings.Contains(told, "/api") {
		t.Errorf("told is %q; want the document and the library, and how to keep the times", told)
	}
	if got := x.run.ServersApart; got == nil || *got != (lab.ServersApart{Answers: 3, Median: 20, Document: 34}) {
		t.Errorf("the servers are apart by %+v; want 20 ms in the median of 3, 34 ms in the document", got)
	}
	again := &Execution{run: &lab.Run{}, News: News{}}
	again.share([]*cellArm{control, treatment}) // of another user, with the same recordings
	if len(again.run.Warnings) != 0 {
		t.Errorf("once shared, the times differ: %q", again.run.Warnings)
	}
}

func TestShareKeepsOrder(t *testing.T) {
	page := "http://a.test/"
	control := recordedAs(page, map[string]int{page + "poll": 10}, page+"poll", page+"poll")
	other := "http://b.test/"
	treatment := recordedAs(other, map[string]int{other + "poll": 30}, other+"poll")
	control.recorded.Exchanges()[1].FirstByte = 99 * time.Millisecond
	x := &Execution{run: &lab.Run{}, News: News{}}
	x.share([]*cellArm{control, treatment})
	var got []time.Duration
	for _, e := range control.recorded.Exchanges() {
		got = append(got, e.FirstByte)
	}
	if got[0] != 20*time.Millisecond || got[1] != 99*time.Millisecond {
		t.Errorf("the answers to two equal requests come after %v; want the first shared, the second as it was", got)
	}
}

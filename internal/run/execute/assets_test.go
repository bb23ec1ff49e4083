package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/netlab/archive"
)

// recordedWith is an arm whose recording has these answers, in order.
func recordedWith(page string, answers ...[2]string) *cellArm {
	var all []*lab.Exchange
	for i, a := range answers {
		all = append(all, &lab.Exchange{ID: page + a[0], Order: i, Method: "GET", URL: a[0], Status: 200, Response: lab.Message{Body: []byte(a[1])}})
	}
	one := &cellArm{recorded: archive.New(all, nil, nil, archive.CreateOptions{Wall: time.Now()})}
	one.arm.Page = page
	return one
}

// The recordings of production and of trunk differ in what one of them has alone, and in what has another content, also
// under a name that its build made of that content.
func TestAssets(t *testing.T) {
	const left, right = "http://www.test", "http://trunk.test"
	control := recordedWith(left+"/", [2]string{left + "/", "one"}, [2]string{left + "/main.3f1c9a2b.js", strings.Repeat("x", 100)},
		[2]string{left + "/same.css", "a"}, [2]string{left + "/old.png", "1234"}, [2]string{"https://cdn.test/lib.js", "lib"}, [2]string{left + "/poll", "1"})
	treatment := recordedWith(right+"/", [2]string{right + "/", "two"}, [2]string{right + "/same.css", "a"}, [2]string{right + "/main.aa07d1e5.js", strings.Repeat("y", 300)},
		[2]string{"https://cdn.test/lib.js", "lib"}, [2]string{right + "/new.png", "12"}, [2]string{right + "/poll", "1"}, [2]string{right + "/poll", "1"})
	want := []lab.AssetRow{
		{Name: "/main.aa07d1e5.js", Found: lab.AssetChanged, Control: 100, Treatment: 300},
		{Name: "/old.png", Found: lab.AssetRemoved, Control: 4},
		{Name: "/new.png", Found: lab.AssetAdded, Treatment: 2},
		{Name: "/poll", Found: lab.AssetAdded, Treatment: 1},
		{Name: "/", Found: lab.AssetChanged, Control: 3, Treatment: 3},
	}
	if d := cmp.Diff(want, assetsOf([]*cellArm{control, treatment})); d != "" {
		t.Errorf("assetsOf() (-want +got):\n%s", d)
	}
	if rows := assetsOf([]*cellArm{control, {cell: control.cell, recorded: control.recorded}}); rows != nil {
		t.Errorf("assetsOf() of one recording for both arms = %+v; want nothing", rows)
	}
	control.of, treatment.of = plan.Cell{Cell: lab.Cell{Name: "home"}}, plan.Cell{Cell: lab.Cell{Name: "home"}}
	if rows := assetsOf([]*cellArm{control, treatment}); rows[0].String() != "home: /main.aa07d1e5.js has another content: 0.1 kB in the control and 0.3 kB in the treatment" ||
		rows[1].String() != "home: /old.png, 0.0 kB, is only in the control" || rows[2].String() != "home: /new.png, 0.0 kB, is only in the treatment" {
		t.Errorf("the rows say %v", rows)
	}
	treatment.cell++
	if rows := assetsOf([]*cellArm{control, treatment}); rows != nil {
		t.Errorf("assetsOf() of two pages = %+v; want nothing", rows)
	}
}

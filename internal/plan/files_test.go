package plan

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/lab"
)

// TestCheckFiles: a plan comes with all that it names, and with nothing else.
func TestCheckFiles(t *testing.T) {
	picture, err := os.ReadFile("../../docs/plans/arne-vase.png")
	if err != nil {
		t.Fatal(err)
	}
	gesture := []byte("{\"gesture\":1,\"width\":100,\"height\":100}\n{\"t_ms\":0,\"x\":1,\"y\":1}\n{\"t_ms\":9,\"x\":1,\"y\":9}\n")
	plan := lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Inject: "a.js"}, Steps: []lab.Step{
		{Open: "https://a.test/"}, {Click: "picture vase.png"}, {Replay: "fling.jsonl"},
	}}
	good := func() map[string][]byte {
		return map[string][]byte{"vase.png": picture, "fling.jsonl": gesture, "a.js": []byte("window.x = 1;\n")}
	}
	from := func(sent map[string][]byte) Options { return Options{From: &Folder{Sent: sent}} }
	if c, err := Check(Request{Plan: plan}, from(good())); err != nil || len(c.Contents) != 3 || c.Scripts["a.js"] == "" || c.Pictures["vase.png"] == nil || c.Gestures["fling.jsonl"] == nil {
		t.Fatalf("Check() = %+v, %v; want the three files, nil", c.Files, err)
	}
	for name, c := range map[string]struct {
		change func(map[string][]byte)
		says   string
	}{
		"missing":    {func(f map[string][]byte) { delete(f, "vase.png") }, "not sent with the plan"},
		"no picture": {func(f map[string][]byte) { f["vase.png"] = gesture }, "no PNG"},
		"no gesture": {func(f map[string][]byte) { f["fling.jsonl"] = picture }, "gesture"},
		"script":     {func(f map[string][]byte) { f["a.js"] = []byte("x\n\"</script>\"") }, "line 2"},
		"unknown":    {func(f map[string][]byte) { f["other"] = nil }, `names no file "other"`},
		"too large":  {func(f map[string][]byte) { f["vase.png"] = append(picture, make([]byte, maxInline)...) }, "MiB"},
	} {
		sent := good()
		c.change(sent)
		_, err := Check(Request{Plan: plan}, from(sent))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
		var at *lab.FieldError
		if name == "missing" && (!errors.As(err, &at) || at.Path != "steps[1]") {
			t.Errorf("%s: %v; want the step", name, err)
		}
	}
	dir := t.TempDir()
	if err := Unpack(dir, map[string][]byte{"a/b.png": picture}); err != nil {
		t.Error(err)
	}
	beside := Request{Plan: lab.Plan{Steps: []lab.Step{{Open: "https://a.test/"}, {Click: "picture a/b.png"}}}}
	if err := beside.Attach(Folder{Path: dir}); err != nil || len(beside.Files["a/b.png"]) != len(picture) {
		t.Errorf("Attach() = %v with %d bytes; want what was unpacked", err, len(beside.Files["a/b.png"]))
	}
	for _, bad := range []string{"../x", "/x", "a/../../x"} {
		if err := Unpack(filepath.Join(dir, "in"), map[string][]byte{bad: nil}); err == nil {
			t.Errorf("Unpack(%q) wrote outside its folder", bad)
		}
	}
}

// Files to choose are those that come with the plan, and no others of the box.
func TestFilesToChoose(t *testing.T) {
	choose := func(name string) Request {
		steps := []lab.Step{{Open: "https://a.test/"}, {Steps: []lab.Step{{Choose: name, At: "1,1"}}}}
		return Request{Plan: lab.Plan{Steps: steps}}
	}
	sent := map[string][]byte{"a/b.txt": []byte("b")}
	c, err := Check(choose("a/b.txt"), Options{From: &Folder{Sent: sent}})
	if err != nil || string(c.Chosen["a/b.txt"]) != "b" || len(c.Contents) != 1 {
		t.Fatalf("Check() = %v, %v; want the file that was sent", c.Files, err)
	}
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]Folder{
		"/etc/passwd": {Path: "/"}, "../x": {Path: dir}, "link": {Path: dir}, "none": {Path: dir}, "not sent": {Sent: sent},
	} {
		var at *lab.FieldError
		_, err := Check(choose(name), Options{From: &from})
		if !errors.As(err, &at) || !strings.HasPrefix(at.Path, "steps[1].steps[0]") {
			t.Errorf("Check(choose %s of %+v) = %v; want an error of the step", name, from, err)
		}
	}
	app := choose("a/b.txt").Plan
	app.App, app.Steps[0] = &lab.App{Command: "editor"}, lab.Step{Launch: lab.LaunchApp}
	_, err = Check(Request{Plan: app}, Options{From: &Folder{Sent: sent}, Scope: ScopePerson})
	if err == nil || !strings.Contains(err.Error(), "choose") {
		t.Errorf("Check(an app chooses) = %v; want an error", err)
	}
}

// Pictures of a few kilobytes that unpack to millions of pixels are bounded together, and one of several pages counts once.
func TestPicturesAreBoundedTogether(t *testing.T) {
	large := image.NewPaletted(image.Rect(0, 0, 2000, 2000), color.Palette{color.Black, color.White})
	for y := range 1000 {
		large.SetColorIndex(y, y, 1)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, large); err != nil {
		t.Fatal(err)
	}
	p, sent := lab.Plan{}, map[string][]byte{}
	for _, name := range []string{"a", "b"} {
		steps := []lab.Step{{Open: "https://" + name + ".test/"}}
		for i := range 4 {
			picture := fmt.Sprintf("%d.png", i)
			sent[picture] = file.Bytes()
			steps = append(steps, lab.Step{Click: "picture " + picture})
		}
		p.Pages = append(p.Pages, lab.PlanPage{Name: name, Page: steps[0].Open, Steps: steps})
	}
	if _, err := Check(Request{Plan: p}, Options{From: &Folder{Sent: sent}}); err != nil {
		t.Errorf("Check(four pictures of 4 million pixels on two pages) = %v; want nil", err)
	}
	p.Pages[1].Steps = append(p.Pages[1].Steps, lab.Step{End: "picture fifth.png", Wait: "1s"})
	sent["fifth.png"] = file.Bytes()
	_, err := Check(Request{Plan: p}, Options{From: &Folder{Sent: sent}})
	var at *lab.FieldError
	if !errors.As(err, &at) || !strings.HasPrefix(at.Path, "pages[1].steps[5]") || !strings.Contains(err.Error(), "at most 16 in a plan") {
		t.Errorf("Check(five of them) = %v; want the fifth's place and the bound", err)
	}
}

// TestNeeds: which steps need the browser's protocol, and which browsers cannot carry them out.
func TestNeeds(t *testing.T) {
	open := lab.Step{Open: "https://a.test/"}
	for name, c := range map[string]struct {
		steps   []lab.Step
		want    bool
		firefox string // what a Firefox says
	}{
		"input alone":  {[]lab.Step{open, {Key: "a"}}, false, ""},
		"selector":     {[]lab.Step{open, {Steps: []lab.Step{{Click: "css #a"}}}}, true, "steps[1].steps[0].click: css in firefox"},
		"way":          {[]lab.Step{open, {Drag: "1,1 to css #a"}}, true, "aim at a picture"},
		"a later page": {[]lab.Step{open, open}, true, "click a link"},
		"launch":       {[]lab.Step{open, {Launch: "https://b.test/"}}, false, "message bus"},
		"start":        {[]lab.Step{{Launch: "https://b.test/"}}, false, ""},
	} {
		if got := (Checked{Cells: []Cell{{Cell: lab.Cell{Plan: lab.Plan{Steps: c.steps}}}}}).NeedsProtocol(); got != c.want {
			t.Errorf("%s: NeedsProtocol() = %v; want %v", name, got, c.want)
		}
		if err := checkNeeds(c.steps, "steps", nil); err != nil {
			t.Errorf("%s: Chromium: %v", name, err)
		}
		err := checkNeeds(c.steps, "steps", &lab.Browser{Name: lab.Firefox})
		if (err == nil) != (c.firefox == "") || err != nil && !strings.Contains(err.Error(), c.firefox) {
			t.Errorf("%s: Firefox: %v; want %q", name, err, c.firefox)
		}
	}
}

func TestCheckState(t *testing.T) {
	launch, open := []lab.Step{{Launch: "https://a.test/"}}, []lab.Step{{Open: "https://a.test/"}}
	for _, c := range []struct {
		state string
		steps []lab.Step
		says  string
	}{
		{"", nil, ""}, {"warm", open, ""}, {"app-cold", launch, ""}, {"app-warm", launch, ""},
		{"hot", nil, "state: must be one of"}, {"app-cold", open, "state: app-cold: nothing would start"},
		{"app-warm", nil, "begin the steps with launch"}, {"", launch, "state: app-cold"}, {"warm", launch, "state: app-cold"},
	} {
		err := check(lab.Plan{Steps: c.steps, Arm: lab.Arm{Page: "https://a.test/", State: c.state}})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("Check(state %q, %d steps) = %v; want an error with %q", c.state, len(c.steps), err, c.says)
		}
	}
}

// A pipe in the place of a file, which came with somebody's folder, is not waited for.
func TestPipeIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.js"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := (Folder{Path: dir}).read("a.js"); err == nil || !strings.Contains(err.Error(), "no file") {
		t.Errorf("read() = %q, %v; want an error that it is no file", text, err)
	}
}

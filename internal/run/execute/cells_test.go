package execute

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// The same page is recorded once for both arms and for users who are alike, and for a user with cookies on its own; a
// recording that is named is kept once.
func TestRecordingsOfCells(t *testing.T) {
	p := lab.Plan{
		Trials: 1, Treatment: &lab.Arm{Link: "3g"},
		Pages: []lab.PlanPage{{Page: "https://a.test/x"}, {Page: "https://a.test/y", Archive: "y.wacz"}, {Name: "z", Page: "https://a.test/x", Treatment: &lab.PageTreatment{Page: "https://a.test/new"}}},
		Users: []lab.PlanUser{{Name: "new"}, {Name: "same"}, {Name: "anna", Cookies: []lab.PlanCookie{{Name: "a", Value: lab.NewSecret("1")}}}},
	}
	arms, recordings := armsOf(checked(t, p))
	var files []string
	for _, r := range recordings {
		files = append(files, r.file)
	}
	want := "archive-01.wacz archive-03.wacz archive-04.wacz archive-07-treatment.wacz archive-09-treatment.wacz"
	if got := strings.Join(files, " "); got != want || len(arms) != 18 {
		t.Errorf("armsOf() records %s for %d arms; want %s for 18", got, len(arms), want)
	}
	for _, a := range arms {
		if a.file == "" || a.of.Page == "y" && a.file != "archive-04.wacz" {
			t.Errorf("the %s of %s replays %q", a.arm.Name, a.of.Name, a.file)
		}
	}
	one, _ := armsOf(checked(t, lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: "a.wacz"}, Treatment: &lab.Arm{Archive: "b.wacz"}}))
	if len(one) != 2 || one[0].file != ArchiveFile || one[1].file != treatmentFile {
		t.Errorf("a run of one page keeps %q and %q; want the names that it always had", one[0].file, one[1].file)
	}
}

// Each of two apps is recorded on its own, whichever way it is started in; and each of two browsers whose profiles only
// have the same name.
func TestRecordingsOfApps(t *testing.T) {
	ofPerson := func(p lab.Plan) plan.Checked {
		t.Helper()
		asked, err := plan.Check(plan.Request{Plan: p}, plan.Options{Scope: plan.ScopePerson})
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	for _, c := range []struct{ a, b lab.Arm }{
		{lab.Arm{App: &lab.App{Command: "/opt/a"}}, lab.Arm{App: &lab.App{Command: "/opt/b"}}},
		{lab.Arm{App: &lab.App{Command: "/opt/1/a"}}, lab.Arm{App: &lab.App{Command: "/opt/2/a"}}},
		{lab.Arm{App: &lab.App{Package: "org.a"}}, lab.Arm{App: &lab.App{Package: "org.b"}}},
		{lab.Arm{App: &lab.App{Package: "org.a/.One"}}, lab.Arm{App: &lab.App{Package: "org.a/.Two"}}},
		{lab.Arm{App: &lab.App{Recipe: "key a", Close: "key c"}}, lab.Arm{App: &lab.App{Recipe: "key b", Close: "key c"}}},
		{lab.Arm{Page: "https://a.test/", Browser: &lab.Browser{Name: "chromium", Profile: "/1/x"}},
			lab.Arm{Browser: &lab.Browser{Name: "chromium", Profile: "/2/x"}}},
	} {
		asked := ofPerson(lab.Plan{Trials: 1, Arm: c.a, Treatment: &c.b})
		if arms, made := armsOf(asked); len(made) != 2 || arms[0].file == arms[1].file {
			t.Errorf("%v and %v: %d recordings, %q and %q; want one of each", c.a.App, c.b.App, len(made), arms[0].file, arms[1].file)
		}
		if c.a.App != nil && !asked.SharedTimes {
			t.Errorf("%v and %v: timing: %s; want shared, as each was recorded on one occasion", c.a.App, c.b.App, asked.Plan.Timing)
		}
	}
	asked := ofPerson(lab.Plan{Trials: 1, Arm: lab.Arm{App: &lab.App{Command: "a"}}, Treatment: &lab.Arm{Link: "3g"}})
	if _, made := armsOf(asked); len(made) != 1 || asked.SharedTimes {
		t.Errorf("one app over two links: %d recordings, timing: %s; want one, recorded", len(made), asked.Plan.Timing)
	}
}

// A user's pages set its cookies at the origins that may have them, in order, and nothing that a person wrote ends a
// header or the script.
func TestUserPages(t *testing.T) {
	u := lab.PlanUser{
		Name: "anna", Storage: map[string]lab.Secret{"a": lab.NewSecret("</script><script>alert(1)</script>")},
		Cookies: []lab.PlanCookie{
			{Name: "s", Value: lab.NewSecret("1"), Domain: ".shop.test", Secure: true, HTTPOnly: true, SameSite: "lax"}, {Name: "t", Value: lab.NewSecret("2"), Path: "/x"},
		},
	}
	origins := []string{"https://www.shop.test", "http://other.test:8080"}
	pages := userPages(u, origins)
	if len(pages) != 2 || pages[0].url != origins[0]+userPath || strings.Join(pages[0].cookies, "|") !=
		"s=1; Max-Age=31536000; Path=/; Domain=shop.test; SameSite=lax; Secure; HttpOnly|t=2; Max-Age=31536000; Path=/x" ||
		strings.Join(pages[1].cookies, "|") != "t=2; Max-Age=31536000; Path=/x" {
		t.Errorf("userPages() = %+v", pages)
	}
	if !strings.Contains(pages[0].body, `location.replace("http://other.test:8080`+userPath+`")`) || !strings.Contains(pages[1].body, "lab.done()") || strings.Contains(pages[1].body, "location") ||
		strings.Contains(pages[0].body, "</script><script>") {
		t.Errorf("the first page: %s", pages[0].body)
	}
	checks := checkPages(lab.PlanUser{Cookies: []lab.PlanCookie{{Name: "s", Domain: "shop.test"}}, Storage: map[string]lab.Secret{"</script>": lab.NewSecret("1")}}, origins)
	if !strings.Contains(checks[0].body, `document.cookie.includes("eidetic-user=kept")`) || strings.Contains(checks[1].body, "document.cookie") ||
		!strings.Contains(checks[0].body, `location.replace("http://other.test:8080`+checkPath+`")`) || !strings.Contains(checks[1].body, `lab.done("kept")`) ||
		strings.Count(checks[0].body, "</script>") != 1 {
		t.Errorf("the pages that look for it: %+v", checks)
	}
	a, err := userArchive(filepath.Join(t.TempDir(), "user.wacz"), pages, time.Unix(1, 0), "test")
	if err != nil || len(a.Exchanges()) != 2 {
		t.Fatalf("userArchive() = %v, %v", a, err)
	}
	if err := allVisited(pages, []lab.Served{{URL: pages[0].url}}); err == nil || !strings.Contains(err.Error(), pages[1].url) {
		t.Errorf("allVisited() = %v; want the page that was not loaded", err)
	}
}

// A device at a port has a browser of its own, whose profile is not ours to prepare, and of which nothing is seen.
func TestCheckPlugged(t *testing.T) {
	cookies := []lab.PlanUser{{Name: "a", Cookies: []lab.PlanCookie{{Name: "a"}}}}
	for field, p := range map[string]lab.Plan{
		"": {}, "treatment.browser": {Treatment: &lab.Arm{Browser: &lab.Browser{Name: "firefox"}}}, "users": {Users: cookies},
		"traces": {Traces: 2}, "trace_all": {TraceAll: true}, "measure.machine_hz": {Measure: &lab.Measure{MachineHz: 10}},
		"state": {Arm: lab.Arm{State: lab.StateRebooted}},
		"steps[1].choose": {
			Steps: []lab.Step{{Open: "https://a.test/"}, {Choose: "a.jpg", At: "1,1"}},
			Files: map[string][]byte{"a.jpg": []byte("a")},
		},
	} {
		p.Page, p.Trials = "https://a.test/", 2
		err := CheckPlugged(checked(t, p), PluggedConfig{})
		wrong := &lab.FieldError{}
		if errors.As(err, &wrong); (err == nil) != (field == "") || wrong.Path != field {
			t.Errorf("CheckPlugged() = %v; want an error of the field %q", err, field)
		}
	}
}

// The traces of each page and user say why for it alone, and the run as a whole says nothing.
func TestCausesOfCells(t *testing.T) {
	run := &lab.Run{Plan: lab.Plan{
		Treatment: &lab.Arm{Link: "3g"}, Pages: []lab.PlanPage{{Name: "home", Page: "https://a.test/"}, {Name: "cart", Page: "https://a.test/cart"}},
	}}
	run.Cells = newCells(checked(t, run.Plan))
	for i, cell := range []string{"home", "home", "cart", "cart", "cart"} {
		one := &lab.Trial{Number: i + 1, Cell: cell, Arm: []string{lab.Control, lab.Treatment}[i%2]}
		if cell == "cart" {
			one.Traced, one.Trace = true, &lab.BrowserTrace{Void: "the buffer was full"}
		}
		run.Trials = append(run.Trials, one)
	}
	concludeCauses(t.TempDir(), run)
	if run.Causes != nil || run.Cells[0].Causes != nil {
		t.Errorf("causes of all %+v, and of a page without traces %+v; want none", run.Causes, run.Cells[0].Causes)
	}
	c := run.Cells[1].Causes
	if c == nil || c.Control.Left != 2 || c.Treatment.Left != 1 {
		t.Fatalf("causes of the page with traces: %+v; want those of its three trials, which cannot be used", c)
	}
	views := run.Views()
	if views[1].Causes != c || views[0].Causes != nil {
		t.Errorf("the views have the causes %+v and %+v", views[0].Causes, views[1].Causes)
	}
}

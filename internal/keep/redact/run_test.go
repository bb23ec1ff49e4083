package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// planted is a run with secrets in all places of its plan that may have some. Each has "hush" in it.
func planted() *lab.Run {
	user := lab.PlanUser{Name: "anna", Cookies: []lab.PlanCookie{{Name: "session", Value: lab.NewSecret("hush-cookie")}}, Storage: map[string]lab.Secret{"token": lab.NewSecret("hush-storage")}}
	page := "https://bob:hush@pass'word@shop.example/cart?token=hush-query-1#hush"
	run := &lab.Run{ID: "1", Page: page, Warnings: []string{"the page " + page + " is slow; anna has the cookie hush-cookie", "typed hush-typed"}}
	run.Plan.Page = page
	run.Plan.Treatment = &lab.Arm{Page: strings.Replace(page, "query-1", "query-2", 1)}
	run.Plan.Users = []lab.PlanUser{user}
	run.Plan.Steps = []lab.Step{{Open: page}, {Name: "log in", Steps: []lab.Step{{Type: "hush-typed"}}}}
	typed := []lab.Event{{Name: "text", Detail: "hush"}, {Name: "paste", Detail: "hush"}} // shorter than what is looked for in texts
	run.Trials = []*lab.Trial{{Number: 1, Page: page, Events: typed, Steps: []*lab.TrialStep{{Input: typed[0], Expect: "opened " + page}}}}
	return run
}

// TestRun: a run for others has no secret of its plan and still tells its pages apart, and the run itself stays as it
// is.
func TestRun(t *testing.T) {
	run := planted()
	before, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	public := OfRun(run).Run(run)
	text, err := json.Marshal(public)
	if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "bob") {
		t.Errorf("Run() = %s, %v; want no secret", text, err)
	}
	if after, _ := json.Marshal(run); string(after) != string(before) {
		t.Errorf("Run() changed its run to %s", after)
	}
	if arms := public.Plan.Arms(); !strings.HasPrefix(arms[0].Page, "https://removed@shop.example/cart?") || arms[0].Page == arms[1].Page {
		t.Errorf("the arms' pages are %q and %q; want host and path, and two different ones", arms[0].Page, arms[1].Page)
	}
	if public.Plan.Users[0].Cookies[0].Name != "session" || public.Trials[0].Number != 1 || public.Plan.Steps[1].Name != "log in" {
		t.Errorf("Run() = %s; want what is no secret as it was", text)
	}
}

func TestUsersOfAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"https://a:b@c'd@h.test/p":    "https://removed@h.test/p",
		"https://h.test/a@b":          "https://h.test/a@b",
		"mail x@y, ftp://u@h":         "mail x@y, ftp://removed@h",
		`"https://h.test","a@b.test"`: `"https://h.test","a@b.test"`,
	} {
		if got := Users(text); got != want {
			t.Errorf("Users(%q) = %q; want %q", text, got, want)
		}
	}
	if got := New().Text("get https://o'brien:hush@h.test/o'b?q=hush"); strings.Contains(got, "hush") || strings.Contains(got, "brien") {
		t.Errorf("Text() = %q; want neither user nor query", got)
	}
}

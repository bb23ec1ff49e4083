package replay

import (
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

func TestRulesOfTheRecording(t *testing.T) {
	a := build(
		exchange{ask: "GET https://a.test/x?sid=abc&q=1", answer: "one"},
		exchange{ask: "GET https://a.test/x?sid=abc&q=2", answer: "two"},
		exchange{
			ask:    "POST https://a.test/y",
			with:   "Content-Type: application/json",
			body:   `{"user":{"session":"abc"},"q":1}`,
			answer: "three",
		},
	)
	a = a.WithRules([]archive.Rule{{URL: "https://a.test/*", Ignore: []string{"sid", "user.*"}}})
	k := newAsker(t, a, Options{Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct{ ask, body, want string }{
		{"GET https://a.test/x?q=2&sid=def", "", "two"},
		{"GET https://a.test/x?q=1", "", "one"},
		{"POST https://a.test/y", `{"q":1,"user":{"session":"def","name":"n"}}`, "three"},
	} {
		with := ""
		if c.body != "" {
			with = "Content-Type: application/json"
		}
		if _, body, line := k.ask("192.0.2.1", c.ask, with, c.body); body != c.want || line.Stage != lab.StageNormalised {
			t.Errorf("%s %s: %q by %s (%v), want %q", c.ask, c.body, body, line.Stage, line.Differs, c.want)
		}
	}
}

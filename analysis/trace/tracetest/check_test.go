package tracetest

import (
	"strings"
	"testing"
)

func TestCheckChromeRefuses(t *testing.T) {
	const named = `{"name":"thread_name","ph":"M","pid":1,"tid":1,"ts":0},`
	for says, events := range map[string]string{
		"no JSON":       `{"traceEvents":[`,
		"no name":       `{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1,"cat":"a"}]}`,
		"pid or tid":    `{"traceEvents":[{"name":"a","ph":"X","pid":1,"ts":0,"dur":1,"cat":"a"}]}`,
		"ts is":         `{"traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":-1,"dur":1,"cat":"a"}]}`,
		"dur is":        `{"traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"no category":   `{"traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":1}]}`,
		"scope":         `{"traceEvents":[{"name":"a","ph":"i","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"phase":         `{"traceEvents":[{"name":"a","ph":"?","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"has no id":     `{"traceEvents":[{"name":"a","ph":"b","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"does not lie":  `{"traceEvents":[` + named + `{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":5,"cat":"a"},{"name":"b","ph":"X","pid":1,"tid":1,"ts":3,"dur":5,"cat":"a"}]}`,
		"has no name":   `{"traceEvents":[{"name":"a","ph":"i","s":"t","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"does not end":  `{"traceEvents":[` + named + `{"name":"a","ph":"b","id":"1","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"before it":     `{"traceEvents":[` + named + `{"name":"a","ph":"e","id":"1","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"has one end":   `{"traceEvents":[` + named + `{"name":"a","ph":"s","id":"1","pid":1,"tid":1,"ts":1,"cat":"a"}]}`,
		"no slice is":   `{"traceEvents":[` + named + `{"name":"a","ph":"s","id":"1","pid":1,"tid":1,"ts":1,"cat":"a"},{"name":"a","ph":"f","id":"1","pid":1,"tid":1,"ts":2,"cat":"a"}]}`,
		"back in time":  `{"traceEvents":[` + named + `{"name":"a","ph":"s","id":"1","pid":1,"tid":1,"ts":3,"cat":"a"},{"name":"a","ph":"f","id":"1","pid":1,"tid":1,"ts":2,"cat":"a"}]}`,
		"that of event": `{"traceEvents":[` + named + `{"name":"a","ph":"s","id":"1","pid":1,"tid":1,"ts":3,"cat":"a"},{"name":"a","ph":"s","id":"1","pid":1,"tid":1,"ts":2,"cat":"a"}]}`,
	} {
		if _, err := CheckChrome(strings.NewReader(events)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("CheckChrome(%s) = %v, want an error that says %q", events, err, says)
		}
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/tell/terminal"
)

// call is a command that is one request of a box's REST interface. All that is not written here follows from the
// request and its answer. A test holds requests, parameters and properties against the OpenAPI document.
type call struct {
	// request is an operation of the document below /api/v1, with its query. What stands in braces are the command's
	// arguments and flags, or properties of what find found; a parameter of the query that is empty is left out.
	request string
	// find is the list in which the box has the thing that a person names; the request wants its {id}.
	find string
	body any // unless the command has one of its own
	// sends says that the command has a body of its own.
	sends bool
	// said is printed when it is done, with {properties} of the answer, of what was found, or arguments; note before it,
	// on standard error, where a program reads what is said.
	said, note string
	ofHead     bool // a panel that does not know the path is no head's
	// list is the property of the answer that has things to print, one a line. A column is its title = the properties
	// that it shows, with | what it shows without them.
	list    string
	columns []string
	empty   string // is printed if there are none
}

// calls are the commands that are one request, by their names.
func calls() map[string]call {
	return map[string]call{
		"workflow ls": {
			request: "GET /workflows", list: "workflows",
			columns: []string{"NAME=name", "VERSION=version", "CHANGED=changed", "BY=by", "PAGE=page", "TAGS=tags"},
			empty:   "There are no workflows. Make one with: appliance workflow put NAME --plan FILE",
		},
		"workflow rm": {request: "DELETE /workflows/{name}", said: "The workflow {name} is removed. Its runs stay."},
		"schedule ls": {
			request: "GET /schedules", list: "schedules",
			columns: []string{"NAME=name", "WORKFLOW=workflow", "WHEN=every cron zone", "NEXT=next|paused", "LAST=last.state last.run last.reason"},
			empty:   "There are no schedules. Make one with: appliance schedule set NAME --workflow WORKFLOW --every 2h",
		},
		"schedule log": {
			request: "GET /schedules/{name}/firings?limit={limit}", list: "firings",
			columns: []string{"DUE=due", "AT=at", "MISSED=missed|0", "WHAT BECAME OF IT=state run reason"}, empty: "It has not been due yet.",
		},
		"schedule rm": {request: "DELETE /schedules/{name}", said: "The schedule {name} is removed. Its runs stay."},
		"webhook ls": {
			request: "GET /webhooks", list: "webhooks",
			columns: []string{"NAME=name", "ID=id", "EVENTS=events", "STATE=paused reason|on", "URL=url"},
			empty:   "There are no webhooks. Make one with: appliance webhook make NAME URL",
		},
		"webhook make": {
			request: "POST /webhooks", sends: true, said: "{secret}",
			note: "The webhook {name} is told of {events}. The box cannot show its secret again:",
		},
		"webhook test": {
			request: "POST /webhooks/{id}/test", find: "webhooks",
			said: "The test is posted as {id}. What came of it: appliance webhook log {name}",
		},
		"webhook log": {
			request: "GET /deliveries?limit={limit}&webhook={id}", find: "webhooks", list: "deliveries",
			columns: []string{"MADE=made", "EVENT=event", "STATE=state", "ATTEMPTS=attempts", "STATUS=status", "AGAIN AT=next", "WHAT=error"},
			empty:   "Nothing was posted yet.",
		},
		"webhook pause": {
			request: "PUT /webhooks/{id}", find: "webhooks", body: map[string]bool{"paused": true},
			said: "The webhook {name} is paused: events wait.",
		},
		"webhook resume": {
			request: "PUT /webhooks/{id}", find: "webhooks", body: map[string]bool{"paused": false}, said: "The webhook {name} goes on.",
		},
		"webhook rm": {request: "DELETE /webhooks/{id}", find: "webhooks", said: "The webhook {name} is removed."},
		"suite results": {
			request: "GET /suite-results", list: "results",
			columns: []string{"ID=id", "SUITE=suite", "STATE=state", "DONE=done", "OF=runs", "FAILED=failed|0", "BROWSERS=browsers", "MADE=made", "BY=by"},
			empty:   "There are no results. Measure a suite with: appliance suite run SUITE --box URL",
		},
		"suite stop":   {request: "DELETE /suite-results/{id}", said: "The result {id} is stopped: appliance suite resume {id} goes on with it."},
		"suite resume": {request: "POST /suite-results/{id}/resume", said: "The result {id} goes on."},
		"token ls": {
			request: "GET /tokens", list: "tokens",
			columns: []string{"ID=id", "NAME=name", "SCOPE=scope", "MADE=created", "LAST USED=used from|never"},
			empty:   "There are no named tokens. Make one with: appliance token make NAME --scope run",
		},
		"token make": {
			request: "POST /tokens", sends: true, said: "{secret}",
			note: "The token {name} has the scope {scope}. The box cannot show it again:",
		},
		"token revoke": {request: "DELETE /tokens/{id}", find: "tokens", said: "The token {name} is revoked."},
		"alerts ack": {
			request: "POST /alerts/{id}/acknowledgement", sends: true, said: "The alert {id} is acknowledged: {text}",
		},
		"alerts resolve": {
			request: "POST /alerts/{id}/resolution", sends: true, said: "The alert {id} is resolved: {text}",
		},
		"alerts accept": {
			request: "POST /alerts/{id}/acceptance", sends: true, said: "The alert {id} is accepted until {until}: {text}",
		},
		"alerts assign": {request: "PATCH /alerts/{id}", sends: true, said: "The alert {id} is kept: {text}"},
		"reference rm":  {request: "DELETE /references/{id}"},
		"boxes code": {
			request: "POST /boxes/codes", ofHead: true, said: "{link}",
			note: "One box can join with this link until {expires}. On the box: appliance join 'LINK'",
		},
		"boxes remove": {
			request: "DELETE /boxes/{name}",
			said:    "The box {name} is removed. What it carried out waits in the queue again; its runs stay.",
		},
		"boxes measure": {
			request: "POST /boxes/{name}/devices/{device}/measurements", said: "Run {id} measures the reference on {name}/{device}.",
		},
		"boxes accept": {request: "PUT /boxes/{name}/devices/{device}/level", said: "What {name}/{device} measures now is its baseline."},
	}
}

// thingCmd is about one thing of a box.
type thingCmd struct {
	Name string `arg:"" help:"${thing}"`
	boxFlags
}

// Run implements the command.
func (c *thingCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"name": c.Name}, nil, false)
}

// listCmd prints a list.
type listCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *listCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, nil, nil, c.JSON)
}

// deviceCmd is about a device of a box in a fleet.
type deviceCmd struct {
	Name   string `arg:"" help:"Name of the box."`
	Device string `arg:"" help:"Name of its device."`
	boxFlags
}

// Run implements the command.
func (c *deviceCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"name": c.Name, "device": c.Device}, nil, false)
}

// things are properties by their names, as JSON has them.
type things = map[string]any

// carryOut makes the request of the selected command, with its arguments and, if it is not nil, a body, and prints the
// answer.
func (f *boxFlags) carryOut(ctx context.Context, std *streams, k *kong.Context, known things, body any, asJSON bool) error {
	group := k.Selected().Parent.Name
	return f.make(ctx, std, group, calls()[group+" "+k.Selected().Name], known, body, asJSON)
}

// make is carryOut of a call of a group of commands.
func (f *boxFlags) make(ctx context.Context, std *streams, group string, c call, known things, body any, asJSON bool) error {
	return f.onBox(std, func(box *client.Client) error {
		if known == nil {
			known = things{}
		}
		if name, _ := known["name"].(string); c.find != "" && name != "" {
			found, err := find(ctx, box, group, c.find, name)
			if err != nil {
				return err
			}
			maps.Copy(known, found)
		}
		if body == nil {
			body = c.body
		}
		method, path, _ := strings.Cut(c.request, " ")
		text, err := box.Exchange(ctx, method, apiPath(path, known), body)
		switch {
		case c.ofHead && isMissing(err):
			return errNoHead
		case err != nil:
			return err
		case c.list != "":
			return c.print(std.out, text, asJSON)
		case asJSON:
			return printJSON(std.out, json.RawMessage(text))
		}
		answer, err := decode[things](text)
		if err != nil && len(text) > 0 { // many requests have no answer but their status
			return err
		}
		maps.Copy(known, answer)
		filled := func(text string) string {
			return fill(text, func(name string) string { return terminal.Plain(words(known[name], name)) })
		}
		said := filled(c.said)
		switch {
		case c.said == "" && c.note == "":
			return nil
		case c.said != "" && said == "":
			return fmt.Errorf("the box's answer cannot be used: it has no %s", strings.Trim(c.said, "{}"))
		case c.note != "":
			fmt.Fprintln(std.err, filled(c.note))
		}
		if said != "" {
			_, err = fmt.Fprintln(std.out, said)
		}
		return err
	})
}

// find returns the thing of that name or identifier in a list of the box.
func find(ctx context.Context, box *client.Client, group, list, name string) (things, error) {
	text, err := box.Exchange(ctx, "GET", apiPath("/"+list, nil), nil)
	if err != nil {
		return nil, err
	}
	answer, err := decode[map[string][]things](text)
	if err != nil {
		return nil, err
	}
	for _, one := range answer[list] {
		if own, _ := one["name"].(string); one["id"] == name || strings.EqualFold(own, name) {
			return one, nil
		}
	}
	return nil, usage(fmt.Errorf("the box has no %s %q; appliance %[1]s ls lists them", group, name))
}

// print prints the list of an answer.
func (c call) print(out io.Writer, text []byte, asJSON bool) error {
	answer, err := decode[map[string]json.RawMessage](text)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, answer[c.list])
	}
	all, err := decode[[]any](answer[c.list])
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		_, err := fmt.Fprintln(out, c.empty)
		return err
	}
	rows := [][]string{make([]string, len(c.columns))}
	for i, column := range c.columns {
		rows[0][i], _, _ = strings.Cut(column, "=")
	}
	for _, one := range all {
		row := make([]string, len(c.columns))
		for i, column := range c.columns {
			row[i] = cell(column, one)
		}
		rows = append(rows, row)
	}
	return terminal.Rows(out, rows)
}

// decode reads JSON, and keeps numbers as they are written.
func decode[T any](text []byte) (v T, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("the box's answer cannot be read: %w", err)
	}
	return v, nil
}

// cell is what a column shows of a thing.
func cell(column string, thing any) string {
	_, paths, _ := strings.Cut(column, "=")
	paths, otherwise, _ := strings.Cut(paths, "|")
	var all []string
	for path := range strings.FieldsSeq(paths) {
		v, name := thing, ""
		for name = range strings.SplitSeq(path, ".") {
			of, _ := v.(things)
			v = of[name]
		}
		if text := words(v, name); text != "" {
			all = append(all, text)
		}
	}
	return cmp.Or(strings.Join(all, " "), otherwise)
}

// words is a property for people: a time in this machine's zone, a list with commas, the name of what is so.
func words(v any, name string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return name
		}
		return ""
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, words(one, name))
		}
		return strings.Join(all, ", ")
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return terminal.Clock(at)
		}
		return v
	}
	return fmt.Sprint(v)
}

// fill puts values in the place of {names}.
func fill(text string, value func(name string) string) string {
	return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(text, func(braced string) string { return value(strings.Trim(braced, "{}")) })
}

// apiPath is the path of a request, with the parameters of its query that are not empty.
func apiPath(request string, known things) string {
	path, query, _ := strings.Cut(request, "?")
	text := func(name string) string {
		if v := known[name]; v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	path = "/api/v1" + fill(path, func(name string) string { return url.PathEscape(text(name)) })
	asked := url.Values{}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' }) {
		name, braced, _ := strings.Cut(pair, "=")
		if v := fill(braced, text); v != "" {
			asked.Set(name, v)
		}
	}
	if len(asked) == 0 {
		return path
	}
	return path + "?" + asked.Encode()
}

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"eidetic/internal/box/automation"
	"eidetic/internal/tell/compare"
	"eidetic/internal/web/panel"
)

// maxWorkflow bounds a workflow with the files of its plan.
const maxWorkflow = 8 << 20

// Exchange makes a request that has no method of its own here, with in as JSON if it is not nil, and returns the
// answer. The path is escaped, with its query.
func (c *Client) Exchange(ctx context.Context, method, path string, in any) ([]byte, error) {
	return c.exchanged(ctx, method, path, "", in)
}

// exchange sends in, if it is not nil, as JSON, and decodes the answer into out, if that is not
// nil. match is the header If-Match, or, if it is *, If-None-Match; it may be empty.
func (c *Client) exchange(ctx context.Context, method, path, match string, in, out any) error {
	text, err := c.exchanged(ctx, method, path, match, in)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return c.garbled("the answer cannot be read")
	}
	return nil
}

func (c *Client) exchanged(ctx context.Context, method, path, match string, in any) (text []byte, err error) {
	asking := *c
	if method != http.MethodGet { // a change that is made again may be refused because it was made
		asking.config.Patience = 0
	}
	switch match {
	case "":
		return asking.send(ctx, method, path, in)
	case "*":
		return asking.send(ctx, method, path, in, "If-None-Match", match)
	}
	return asking.send(ctx, method, path, in, "If-Match", match)
}

// send makes a request that may be made again until it is answered or patience ends, with in, if it is not nil, as JSON.
// head is names of fields, each with its value.
func (c *Client) send(ctx context.Context, method, path string, in any, head ...string) (text []byte, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		head = append(head, "Content-Type", "application/json")
	}
	text, err = c.request(ctx, method, path, body, func(r *http.Request) { setFields(r, head) }, maxWorkflow)
	return text, c.outcome(err)
}

func setFields(r *http.Request, head []string) {
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
}

// NewThing is the version of what is not there yet.
const NewThing = 0

// match is the precondition that there is the version of something, or with [NewThing] nothing.
func match(version int) string {
	if version == NewThing {
		return "*"
	}
	return `"` + strconv.Itoa(version) + `"`
}

func workflowPath(name string) string { return "/api/v1/workflows/" + url.PathEscape(name) }

// Workflows lists the workflows of the box.
func (c *Client) Workflows(ctx context.Context) ([]automation.Workflow, error) {
	var list struct{ Workflows []automation.Workflow }
	return list.Workflows, c.exchange(ctx, http.MethodGet, "/api/v1/workflows", "", nil, &list)
}

// Workflow returns a workflow; version 0 is the newest.
func (c *Client) Workflow(ctx context.Context, name string, version int) (w automation.Workflow, err error) {
	path := workflowPath(name)
	if version > 0 {
		path += "?version=" + strconv.Itoa(version)
	}
	return w, c.exchange(ctx, http.MethodGet, path, "", nil, &w)
}

// PutWorkflow keeps a request's plan on the box, in place of a version, or with [NewThing] as a
// new workflow.
func (c *Client) PutWorkflow(ctx context.Context, name string, q *Request, tags []string, version int) (w automation.Workflow, err error) {
	body := map[string]any{"plan": q}
	if len(tags) > 0 {
		body["tags"] = tags
	}
	return w, c.exchange(ctx, http.MethodPut, workflowPath(name), match(version), body, &w)
}

// RemoveWorkflow removes a workflow with all its versions.
func (c *Client) RemoveWorkflow(ctx context.Context, name string) error {
	return c.exchange(ctx, http.MethodDelete, workflowPath(name), "", nil, nil)
}

// StartWorkflow asks for a run of a workflow in which the plan has the fields of the request
// changed, and returns its ID. As with [Client.Start], it is one run, however often it is asked
// for.
func (c *Client) StartWorkflow(ctx context.Context, name string, version int, q *Request) (id string, err error) {
	asked := map[string]any{"change": q}
	if version != 0 {
		asked["version"] = version
	}
	return c.start(ctx, workflowPath(name)+"/runs", asked)
}

func schedulePath(name string) string { return "/api/v1/schedules/" + url.PathEscape(name) }

// Schedules lists the schedules of the box.
func (c *Client) Schedules(ctx context.Context) ([]automation.Schedule, error) {
	var list struct{ Schedules []automation.Schedule }
	return list.Schedules, c.exchange(ctx, http.MethodGet, "/api/v1/schedules", "", nil, &list)
}

// Schedule returns a schedule.
func (c *Client) Schedule(ctx context.Context, name string) (s automation.Schedule, err error) {
	return s, c.exchange(ctx, http.MethodGet, schedulePath(name), "", nil, &s)
}

// PutSchedule makes or changes a schedule: see [Client.PutWorkflow].
func (c *Client) PutSchedule(ctx context.Context, name string, t automation.Timing, revision int) (s automation.Schedule, err error) {
	return s, c.exchange(ctx, http.MethodPut, schedulePath(name), match(revision), t, &s)
}

// RemoveSchedule removes a schedule with its history.
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	return c.exchange(ctx, http.MethodDelete, schedulePath(name), "", nil, nil)
}

// Firings lists what became of a schedule's newest times.
func (c *Client) Firings(ctx context.Context, name string, limit int) ([]automation.Firing, error) {
	var list struct{ Firings []automation.Firing }
	return list.Firings, c.exchange(ctx, http.MethodGet, schedulePath(name)+"/firings?limit="+strconv.Itoa(limit), "", nil, &list)
}

// StartSchedule starts what a schedule starts, besides its times.
func (c *Client) StartSchedule(ctx context.Context, name string) (f automation.Firing, err error) {
	return f, c.exchange(ctx, http.MethodPost, schedulePath(name)+"/firings", "", nil, &f)
}

// Webhooks lists the webhooks of the box.
func (c *Client) Webhooks(ctx context.Context) ([]automation.Hook, error) {
	var list struct{ Webhooks []automation.Hook }
	return list.Webhooks, c.exchange(ctx, http.MethodGet, "/api/v1/webhooks", "", nil, &list)
}

// MakeWebhook makes a webhook. The box makes a secret if it is empty.
func (c *Client) MakeWebhook(
	ctx context.Context, name, as, address string, events []string, secret Secret,
) (made panel.NewWebhook, err error) {
	body := map[string]any{"name": name, "url": address}
	if as != "" {
		body["as"] = as
	}
	if len(events) > 0 {
		body["events"] = events
	}
	if !secret.IsZero() {
		body["secret"] = secret.Reveal()
	}
	err = c.exchange(ctx, http.MethodPost, "/api/v1/webhooks", "", body, &made)
	if err == nil && (made.Secret == "" && as != automation.AsMail || Plain(made.Secret) != made.Secret) {
		err = c.garbled("the answer holds no secret")
	}
	return made, err
}

func hookPath(id string) string { return "/api/v1/webhooks/" + url.PathEscape(id) }

// PauseWebhook pauses a webhook, or lets it go on.
func (c *Client) PauseWebhook(ctx context.Context, id string, paused bool) (h automation.Hook, err error) {
	return h, c.exchange(ctx, http.MethodPut, hookPath(id), "", map[string]bool{"paused": paused}, &h)
}

// RemoveWebhook removes a webhook.
func (c *Client) RemoveWebhook(ctx context.Context, id string) error {
	return c.exchange(ctx, http.MethodDelete, hookPath(id), "", nil, nil)
}

// TestWebhook has a test posted to a webhook.
func (c *Client) TestWebhook(ctx context.Context, id string) (d automation.Delivery, err error) {
	return d, c.exchange(ctx, http.MethodPost, hookPath(id)+"/test", "", nil, &d)
}

// Deliveries lists the newest deliveries to one webhook, or to all if the ID is empty.
func (c *Client) Deliveries(ctx context.Context, id string, limit int) ([]automation.Delivery, error) {
	var list struct{ Deliveries []automation.Delivery }
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if id != "" {
		query.Set("webhook", id)
	}
	return list.Deliveries, c.exchange(ctx, http.MethodGet, "/api/v1/deliveries?"+query.Encode(), "", nil, &list)
}

// Alerts lists the newest alerts that are bad for a gate: with all also those that were resolved or are accepted for
// now, and with a tag those that have it.
func (c *Client) Alerts(ctx context.Context, all bool, tag string, limit int) ([]automation.Alert, error) {
	var list struct{ Alerts []automation.Alert }
	query := url.Values{"limit": {strconv.Itoa(limit)}, "state": {"bad"}}
	if all {
		query.Set("state", "all")
	}
	if tag != "" {
		query.Set("tag", tag)
	}
	return list.Alerts, c.exchange(ctx, http.MethodGet, "/api/v1/alerts?"+query.Encode(), "", nil, &list)
}

// Acknowledge acknowledges an alert.
func (c *Client) Acknowledge(ctx context.Context, id int64, note string, tags []string) (a automation.Alert, err error) {
	body := map[string]any{"note": note}
	if len(tags) > 0 {
		body["tags"] = tags
	}
	return a, c.exchange(ctx, http.MethodPost, "/api/v1/alerts/"+strconv.FormatInt(id, 10)+"/acknowledgement", "", body, &a)
}

// RunReferences lists the newest references, with a name or a branch those of it.
func (c *Client) RunReferences(ctx context.Context, name, branch string, limit int) ([]automation.RunReference, error) {
	var list struct{ References []automation.RunReference }
	query := url.Values{"limit": {strconv.Itoa(limit)}, "name": {name}, "branch": {branch}}
	return list.References, c.exchange(ctx, http.MethodGet, "/api/v1/references?"+query.Encode(), "", nil, &list)
}

// MakeRunReference makes a run the newest reference of a branch.
func (c *Client) MakeRunReference(ctx context.Context, branch, run, revision string) (r automation.RunReference, err error) {
	return r, c.exchange(ctx, http.MethodPost, "/api/v1/references", "", map[string]string{"branch": branch, "run": run, "revision": revision}, &r)
}

// RemoveRunReference removes a reference; its run stays.
func (c *Client) RemoveRunReference(ctx context.Context, id int64) error {
	return c.exchange(ctx, http.MethodDelete, "/api/v1/references/"+strconv.FormatInt(id, 10), "", nil, nil)
}

// Compare compares a run with an earlier one, which is the ID of a run or a reference such as main@latest.
func (c *Client) Compare(ctx context.Context, run, reference string, margin float64) (b compare.Between, err error) {
	query := url.Values{"reference": {reference}, "margin": {strconv.FormatFloat(margin, 'g', -1, 64)}}
	return b, c.exchange(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(run)+"/comparison?"+query.Encode(), "", nil, &b)
}

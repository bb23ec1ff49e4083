package automation

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/box/mail"
	"eidetic/internal/box/webhook"
	"eidetic/internal/lab"
)

// How a webhook is told.
const (
	AsEvents = ""       // events as JSON, signed
	AsMail   = "mail"   // a message, to a mailto: address
	AsGitHub = "github" // a commit status, at the address of a repository in GitHub's REST interface
	AsGitLab = "gitlab" // the same, at the address of a project
	AsGerrit = "gerrit" // a comment on the change of a culprit, at the address of a project's branch: …/a/changes/PROJECT~BRANCH
)

// Ways lists the ways in which a webhook can be told besides events.
func Ways() []string { return []string{AsMail, AsGitHub, AsGitLab, AsGerrit} }

// checkWay returns an error for a way of being told that does not go with the address and the secret, and the secret
// that is kept.
func (k *Keeper) checkWay(as, address string, secret lab.Secret) (lab.Secret, error) {
	switch as {
	case AsEvents:
		if secret.IsZero() {
			secret = webhook.NewSecret()
		}
		if err := webhook.CheckSecret(secret); err != nil {
			return lab.Secret{}, wrong("secret: %w", err)
		}
	case AsMail:
		to, ok := strings.CutPrefix(address, "mailto:")
		switch {
		case !ok:
			return lab.Secret{}, wrong("url: mail goes to an address such as mailto:perf@shop.example")
		case mail.CheckAddress(to) != nil:
			return lab.Secret{}, wrong("url: %w", mail.CheckAddress(to))
		case !secret.IsZero():
			return lab.Secret{}, wrong("secret: mail has none: the configuration says how the server is logged into (mail)")
		case k.Mail == nil:
			return lab.Secret{}, wrong("as: the configuration names no mail server (mail.server)")
		}
	case AsGitHub, AsGitLab, AsGerrit:
		text := secret.Reveal()
		if len(text) < 8 || len(text) > 200 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return lab.Secret{}, wrong("secret: the token with which %s is called, 8 to 200 characters; of Gerrit USER:PASSWORD", as)
		}
		if user, _, ok := strings.Cut(text, ":"); as == AsGerrit && (!ok || user == "") {
			return lab.Secret{}, wrong("secret: of Gerrit USER:PASSWORD, the password of its REST interface")
		}
		if strings.ContainsAny(address, "?#") {
			return lab.Secret{}, wrong("url: without ? and #: what is told is below it")
		}
	default:
		return lab.Secret{}, wrong("as: there is no %.40q; there are: %s", as, strings.Join(Ways(), ", "))
	}
	return secret, nil
}

// header is with what a code host is called.
func header(as string, secret lab.Secret) map[string]lab.Secret {
	h := map[string]lab.Secret{}
	switch as {
	case AsGitHub:
		h["Authorization"] = lab.NewSecret("Bearer " + secret.Reveal())
		h["Accept"] = lab.NewSecret("application/vnd.github+json")
		h["X-GitHub-Api-Version"] = lab.NewSecret("2022-11-28")
	case AsGitLab:
		h["PRIVATE-TOKEN"] = secret
	case AsGerrit:
		h["Authorization"] = lab.NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(secret.Reveal())))
	}
	return h
}

// judged is what an event says of a revision.
type judged struct {
	revision, change string // change is Gerrit's Change-Id
	state            string // success, failure or error
	context, text    string
}

// A code host is told of whole commit names alone, and of Change-Ids as Gerrit makes them.
var (
	commitName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) // constant
	changeName = regexp.MustCompile(`^I[0-9a-f]{40}$`)               // constant
)

// judge is what an event says of a revision; ok is false if it says nothing of any.
func (e Event) judge() (j judged, ok bool) {
	switch d := e.Data.(type) {
	case Finished:
		if d.From == nil || d.From.Revision == "" {
			return j, false
		}
		j = judged{revision: d.From.Revision, context: "eidetic/" + d.From.Workflow, state: "success", text: d.Headline}
		switch {
		case d.State != "done" || d.Verdict == lab.Unknown:
			j.state = "error"
		case d.Verdict == lab.Slower || d.Verdict == lab.Mixed:
			j.state = "failure"
		}
		if j.text == "" {
			j.text = strings.TrimSpace("the run " + d.State + " " + d.Error)
		}
	case Alert:
		b := d.Bisection
		if b == nil || b.State != "done" || b.Kind != "culprit" {
			return j, false
		}
		j = judged{revision: b.Revision, change: b.Change, context: "eidetic/alert-" + fmt.Sprint(d.ID), state: "failure", text: b.Text}
		switch {
		case d.Resolved != nil:
			j.state, j.text = "success", "resolved by "+d.Resolved.By+": "+d.Resolved.Note
		case d.Accepted != nil:
			j.state, j.text = "success", "accepted by "+d.Accepted.By+" until "+d.Accepted.Until.Format("2006-01-02")+": "+d.Accepted.Reason
		}
	default:
		return j, false
	}
	return j, commitName.MatchString(j.revision)
}

// Payloads of code hosts.
type (
	// gitHubStatus is the body of POST /repos/{owner}/{repo}/statuses/{sha}.
	gitHubStatus struct {
		State       string `json:"state"`       // error, failure, pending or success
		Description string `json:"description"` // at most 140 characters
		Context     string `json:"context"`
	}
	// gitLabStatus is the body of POST /projects/:id/statuses/:sha.
	gitLabStatus struct {
		State       string `json:"state"` // pending, running, success, failed, canceled or skipped
		Name        string `json:"name"`
		Description string `json:"description"` // at most 255 characters
	}
	// gerritReview is a ReviewInput: the body of POST /changes/{change-id}/revisions/{revision-id}/review.
	gerritReview struct {
		Message string `json:"message"`
		Tag     string `json:"tag"`
		Notify  string `json:"notify"`
	}
)

// payload is what a webhook is posted of an event, and the path below its address; ok is false if it is not told of it.
func (e Event) payload(as string) (path string, body any, ok bool) {
	if as == AsEvents || as == AsMail {
		return "", e, true
	}
	j, ok := e.judge()
	if !ok {
		return "", nil, false
	}
	switch as {
	case AsGitHub:
		return "/statuses/" + j.revision, gitHubStatus{j.state, lab.Clip(j.text, 139), j.context}, true
	case AsGitLab:
		state := j.state
		if state != "success" {
			state = "failed"
		}
		return "/statuses/" + j.revision, gitLabStatus{state, j.context, lab.Clip(j.text, 250)}, true
	}
	if !changeName.MatchString(j.change) {
		return "", nil, false
	}
	return "~" + j.change + "/revisions/" + j.revision + "/review", gerritReview{"Eidetic: " + j.text, "autogenerated:eidetic", "OWNER"}, true
}

// message is an event as mail: what it says, and the whole of it.
func message(body []byte) (subject, text string, err error) {
	var e struct {
		Type string
		Data json.RawMessage
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return "", "", err
	}
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case e.Type == EventFinished:
		var f Finished
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return "", "", err
		}
		subject = strings.TrimSpace(fmt.Sprintf("Run %s: %s", f.Run, cmp.Or(f.Headline, f.State)))
		say("%s\n%s\n%d of %d trials are valid.\n%s", cmp.Or(f.Name, f.Page), strings.TrimSpace(f.Headline+" "+f.Detail+" "+f.Error), f.Valid, f.Trials, f.Report)
	case strings.HasPrefix(e.Type, "alert."):
		var a Alert
		if err := json.Unmarshal(e.Data, &a); err != nil {
			return "", "", err
		}
		subject = fmt.Sprintf("Alert %d %s: %s", a.ID, strings.TrimPrefix(e.Type, "alert."), a.Text)
		for _, r := range slices.Concat([]Row{a.Row}, a.Rows) {
			say("%s: %s", cmp.Or(r.Name, r.Page), r.Text)
		}
		if b := a.Bisection; b != nil {
			say("%s", cmp.Or(b.Text, cmp.Or(b.Reason, "A bisection looks for the revision: "+b.State)))
		}
		if a.Owner != "" || a.Bug != "" {
			say("Owner: %s %s", cmp.Or(a.Owner, "nobody"), a.Bug)
		}
		say("/alerts#alert-%d", a.ID)
	default:
		subject = "Test"
		say("This is a test: %s", e.Data)
	}
	return "Eidetic: " + subject, strings.Join(lines, "\n\n") + "\n", nil
}

// errNoTest is the error of a test that a way has no message for.
var errNoTest = errors.New("a code host is told of revisions, and a test has none: see its deliveries after a run of a schedule with a repository") // constant

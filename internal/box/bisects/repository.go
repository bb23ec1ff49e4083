package bisects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/box/bisection"
	"eidetic/internal/box/webhook"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// Repository is where revisions come from and how one comes to the page under test: a command, a hook, or an address of
// its own for each. The box's admin names it in the configuration: its command is run as the box's service.
type Repository struct {
	Git    string        `yaml:"git"`    // a clone, bare or not, that the box may read
	Branch string        `yaml:"branch"` // whose newest revision is measured; "" is HEAD
	File   string        `yaml:"file"`   // in place of Git: a list of revisions, the oldest first
	Good   string        `yaml:"good"`   // the revision before the first run, such as the tag of production
	Deploy string        `yaml:"deploy"` // run by /bin/sh -c, with the revision as $1 and in REVISION
	Hook   string        `yaml:"hook"`   // in place of Deploy: is posted each revision, as the hook of a bisect
	Secret lab.Secret    `yaml:"secret"` // with which posts to the hook are signed
	URL    string        `yaml:"url"`    // in place of Deploy: where each revision is, with {revision}
	Limit  time.Duration `yaml:"limit"`  // of a deployment; 0 is 15 minutes
}

// Check returns the field that is wrong, and why, or nil.
func (r Repository) Check() (field string, err error) {
	switch {
	case (r.Git == "") == (r.File == ""):
		return "", errors.New("either git, a clone that the box may read, or file, a list of revisions, is needed")
	case r.File != "" && r.Branch != "":
		return ".branch", errors.New("a branch is one of git")
	case !filepath.IsAbs(r.Git + r.File):
		return "", fmt.Errorf("%q: write the whole path, from / on", r.Git+r.File)
	case strings.HasPrefix(r.Branch, "-"):
		return ".branch", fmt.Errorf("%q begins with a dash: git would take it for a flag", r.Branch)
	case strings.HasPrefix(r.Good, "-"):
		return ".good", fmt.Errorf("%q begins with a dash: git would take it for a flag", r.Good)
	case one(r.Deploy, r.Hook, r.URL) != 1:
		return "", errors.New("one of deploy, a command that deploys the revision $1, hook, an address that is posted it, or url, where each revision is, is needed")
	case (r.Hook == "") != r.Secret.IsZero():
		return ".secret", errors.New("it belongs to a hook, whose posts are signed with it")
	case r.Hook != "" && webhook.CheckSecret(r.Secret) != nil:
		return ".secret", webhook.CheckSecret(r.Secret)
	case r.URL != "" && plan.CheckPreview(r.URL) != nil:
		return ".url", plan.CheckPreview(r.URL)
	case r.Limit < 0 || r.Limit > 24*time.Hour:
		return ".limit", fmt.Errorf("%v: at most a day", r.Limit)
	}
	return "", nil
}

// one counts those that are said.
func one(all ...string) (n int) {
	for _, s := range all {
		if s != "" {
			n++
		}
	}
	return n
}

// limit is how long a deployment may take.
func (r Repository) limit() time.Duration {
	if r.Limit == 0 {
		return defaultLimit
	}
	return r.Limit
}

// gitLimit is how long git may take.
const gitLimit = time.Minute

// git returns what a command of git prints, which reads and changes nothing.
func (r Repository) git(ctx context.Context, args ...string) (string, error) {
	ctx, done := context.WithTimeout(ctx, gitLimit)
	defer done()
	// The admin trusts the clone by naming it, whoever owns it.
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "--no-optional-locks", "-C", r.Git}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errNoGit
	case errors.As(err, &exit):
		return "", fmt.Errorf("git %s in %s: %w: %.300s", args[0], r.Git, err, bytes.TrimSpace(exit.Stderr))
	case err != nil:
		return "", fmt.Errorf("git %s in %s: %w", args[0], r.Git, err)
	}
	return string(out), nil
}

// Head returns the newest revision.
func (r Repository) Head(ctx context.Context) (string, error) {
	if r.File == "" {
		return r.named(ctx, r.Branch)
	}
	all, err := r.list()
	if err != nil {
		return "", err
	}
	return all[len(all)-1].Name, nil
}

// named returns the revision that a name of git stands for.
func (r Repository) named(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = "HEAD"
	}
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%q names no revision: %w", name, err)
	}
	return strings.TrimSpace(out), nil
}

// Before returns the revision before the first run, or "".
func (r Repository) Before(ctx context.Context) (string, error) {
	if r.Good == "" || r.File != "" {
		return r.Good, nil
	}
	return r.named(ctx, r.Good)
}

// list reads the file of revisions.
func (r Repository) list() ([]bisection.Revision, error) {
	f, err := os.Open(r.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bisection.ParseRevisions(r.File, f)
}

// Between lists the revisions from good to bad, with both.
func (r Repository) Between(ctx context.Context, good, bad string) ([]bisection.Revision, error) {
	if r.File != "" {
		f, err := os.Open(r.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return bisection.ReadRevisions(r.File, f, good, bad)
	}
	if _, err := r.git(ctx, "merge-base", "--is-ancestor", good, bad); err != nil {
		return nil, fmt.Errorf("%.12s is no ancestor of %.12s: what lies between them is not known", good, bad)
	}
	var all []bisection.Revision
	// git cuts names and subjects, and lists one revision more than a bisect may have: what it prints is bounded.
	format := "--format=%H%x09%<(200,trunc)%an%x09%<(200,trunc)%s%x09%<(60,trunc)%(trailers:key=Change-Id,valueonly,separator=%x20)"
	for _, args := range [][]string{
		{"log", "--no-show-signature", format, "--max-count=1", "--end-of-options", good, "--"},
		{"log", "--no-show-signature", format, "--first-parent", "--reverse", fmt.Sprintf("--max-count=%d", mostRevisions), "--end-of-options", good + ".." + bad, "--"},
	} {
		out, err := r.git(ctx, args...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			author, rest, _ := strings.Cut(rest, "\t")
			at := max(strings.LastIndexByte(rest, '\t'), 0) // git lets no tab into what follows a subject
			all = append(all, bisection.Revision{Name: name, Words: shortened(rest[:at]), Author: shortened(author), Change: shortened(rest[at:])})
		}
	}
	if len(all) > mostRevisions {
		return nil, fmt.Errorf("more than %d revisions lie between %.12s and %.12s: at most so many can be tried", mostRevisions, good, bad)
	}
	return all, bisection.CheckRevisions(all)
}

// shortened makes text of outside one line of bounded length.
func shortened(text string) string {
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\ufffd")))
	if r := []rune(text); len(r) > mostWords {
		return string(r[:mostWords-1]) + "…"
	}
	return text
}

// Usable returns why revisions cannot be taken from the repository on this machine, or nil.
func (r Repository) Usable() error {
	if r.Git == "" {
		return nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return errNoGit
	}
	return nil
}

// errNoGit is the error of a machine without git, such as a box: its image has none.
var errNoGit = errors.New("git is not installed on this machine: install it, or name a list of revisions (file) in place of the clone") // constant

// Repository returns a repository of the configuration.
func (k *Keeper) Repository(name string) (Repository, error) {
	r, ok := k.Repositories[name]
	if !ok {
		return r, fmt.Errorf("the configuration has no repository %.60q (repositories)", name)
	}
	return r, r.Usable()
}

// DeployHead deploys the newest revision of a repository. It returns why that could not be done, or "".
func (k *Keeper) DeployHead(ctx context.Context, name string) (revision, reason string, err error) {
	r, err := k.Repository(name)
	if err != nil {
		return "", "", err
	}
	if revision, err = r.Head(ctx); err != nil {
		return "", "", err
	}
	switch {
	case r.URL != "":
	case r.Hook != "":
		reason, err = k.askHead(ctx, name, r, revision)
	default:
		reason, err = bisection.Deploy(ctx, r.Deploy, revision, filepath.Join(k.Dir, "deploy-"+name+".log"), r.limit())
	}
	return revision, reason, err
}

// PlanAt is a plan with its treatment where a revision of a repository is: as it is if each revision is deployed to the
// same place.
func (k *Keeper) PlanAt(name, revision string, p lab.Plan) (lab.Plan, error) {
	r, err := k.Repository(name)
	if err != nil || r.URL == "" {
		return p, err
	}
	return plan.Preview(p, r.URL, revision)
}

// Busy names the bisect that waits or goes on with a repository, or "".
func (k *Keeper) Busy(name string) (id string) {
	k.line.Lock()
	defer k.line.Unlock()
	for _, b := range k.line.All {
		if b.Going() && b.request.Repository == name {
			return b.ID
		}
	}
	return ""
}

// PlanOf is what a bisect measures of a run of one page: its treatment if it has one, or else its control, as one arm,
// recorded after each deployment.
func PlanOf(p lab.Plan) plan.Request {
	scope, opened, arms := p.Scope, p.Opened, p.Arms()
	p = plan.Again(p.WithArms(arms[len(arms)-1:]))
	p.Scope, p.Opened = scope, opened // what the plan may name was decided when it was kept
	p.Archive, p.Name, p.Looks, p.Recordings, p.Find, p.Margin, p.Margins, p.Budgets = "", "", 0, 0, "", 0, nil, nil
	p.Covariates, p.Primary = nil, "" // of a comparison, which the run's plan has filled in
	if p.Timing == lab.TimingShared { // which is for two arms of one run
		p.Timing = ""
	}
	return plan.Request{Plan: p}
}

// MakeOf keeps a bisect of a run's plan, of one page, between two revisions of a repository; without a good one, from
// the revision that the repository names.
func (k *Keeper) MakeOf(ctx context.Context, name, good, bad string, p lab.Plan, q Request) (Bisect, error) {
	r, err := k.Repository(name)
	if err != nil {
		return Bisect{}, &WrongError{Err: err}
	}
	if good == "" {
		if good, err = r.Before(ctx); err != nil {
			return Bisect{}, &WrongError{Err: err}
		}
	}
	if good == "" {
		return Bisect{}, wrong("no run before it says which revision was good, and the repository %s names none (good)", name)
	}
	if q.Revisions, err = r.Between(ctx, good, bad); err != nil {
		return Bisect{}, &WrongError{Err: err}
	}
	q.Plan = PlanOf(p)
	if r.URL != "" {
		measured := ""
		if p.From != nil {
			measured = p.From.Revision
		}
		if q.Plan.Page, err = plan.Marked(q.Plan.Page, r.URL, measured); err != nil {
			return Bisect{}, &WrongError{Err: err}
		}
	}
	q.Repository = name
	b, _, err := k.Make(ctx, q)
	return b, err
}

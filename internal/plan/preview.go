package plan

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// CheckPreview returns an error unless a pattern is where each revision has an address of its own: https:// or http://,
// a host, and {revision} in one of its names or in the path before the page's.
func CheckPreview(pattern string) error {
	if !strings.Contains(pattern, RevisionMark) {
		return fmt.Errorf("%.200q: write %s for the revision", pattern, RevisionMark)
	}
	u, err := url.Parse(strings.ReplaceAll(pattern, RevisionMark, "0"))
	switch {
	case err != nil:
		return fmt.Errorf("%.200q is no address: %w", pattern, errors.Unwrap(err))
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil:
		return fmt.Errorf("%.200q must begin with https:// or http:// and a host, without a user", pattern)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.200q: path, query and fragment come from the plan's page", pattern)
	}
	return nil
}

// inAddress is a revision that can stand in an address without changing what is around it.
var inAddress = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`) // constant

// Preview is the plan with its treatment's pages where a revision has its address: scheme, host and what stands before
// the path are the pattern's, the rest is the page's. RevisionMark as the revision stays.
func Preview(p lab.Plan, pattern, revision string) (lab.Plan, error) {
	if revision != RevisionMark && !inAddress.MatchString(revision) {
		return p, fmt.Errorf("the revision %.60q cannot stand in an address", revision)
	}
	if p.Treatment == nil && !slices.ContainsFunc(p.Pages, func(one lab.PlanPage) bool { return one.Treatment != nil }) {
		return p, errors.New("the plan has no treatment, whose page has another address for each revision")
	}
	base := strings.TrimSuffix(strings.ReplaceAll(pattern, RevisionMark, revision), "/")
	moved := func(page string) (string, error) {
		u, err := url.Parse(page)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("the page %.100q has no host", page)
		}
		u.Scheme, u.Host, u.User = "", "", nil
		return base + u.String(), nil
	}
	if p.Treatment != nil {
		t := *p.Treatment
		if t.Page == "" {
			t.Page = p.Page
		}
		if t.Page != "" {
			var err error
			if t.Page, err = moved(t.Page); err != nil {
				return p, err
			}
		}
		p.Treatment = &t
	}
	p.Pages = slices.Clone(p.Pages)
	for i, one := range p.Pages {
		t := lab.PageTreatment{}
		if one.Treatment != nil {
			t = *one.Treatment
		}
		if t.Page == "" {
			t.Page = one.Page
		}
		if t.Page == "" { // it is the plan's
			continue
		}
		var err error
		if t.Page, err = moved(t.Page); err != nil {
			return p, err
		}
		p.Pages[i].Treatment = &t
	}
	return p, nil
}

// Marked is the page of a run of one revision with RevisionMark in place of it: in a plan of a bisect, the pages of all
// revisions.
func Marked(page, pattern, revision string) (string, error) {
	base := strings.TrimSuffix(pattern, "/")
	if rest, ok := strings.CutPrefix(page, strings.ReplaceAll(base, RevisionMark, revision)); ok && revision != "" {
		return base + rest, nil
	}
	// The run was made before the configuration had the pattern.
	p, err := Preview(lab.Plan{Treatment: &lab.Arm{Page: page}}, pattern, RevisionMark)
	if err != nil {
		return "", err
	}
	return p.Treatment.Page, nil
}

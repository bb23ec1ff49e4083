package plan

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// tag is what a tag may be, as Perfherder has it.
var tag = regexp.MustCompile(`^[a-zA-Z0-9-]{1,24}$`) // constant

// CheckTags returns an error for what is no tag.
func CheckTags(tags []string) error {
	for _, t := range tags {
		if !tag.MatchString(t) {
			return fmt.Errorf("%.40q: a tag has 1 to 24 letters, digits and dashes", t)
		}
	}
	return nil
}

// maxPattern bounds a pattern of paths.
const maxPattern = 500

// checkTags returns an error for tags that nobody can name, and patterns that no path has.
func (c *Checked) checkTags() error {
	var all []error
	check := func(field string, tags []string) {
		if err := CheckTags(tags); err != nil {
			all = append(all, &lab.FieldError{Path: field, Err: err})
		}
	}
	check("tags", c.Tags)
	check("steps", tagsOf(c.Steps))
	for i, e := range c.Pages {
		check(fmt.Sprintf("pages[%d].tags", i), e.Tags)
		check(fmt.Sprintf("pages[%d].steps", i), tagsOf(e.Steps))
	}
	known := tagsIn(c.Plan)
	for _, pattern := range slices.Sorted(maps.Keys(c.Paths)) {
		field := "paths." + pattern
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || len(pattern) > maxPattern || strings.HasPrefix(pattern, "/") {
			all = append(all, fieldError("paths", "%.60q: a pattern is a path in the repository, as git lists it, with * and **", pattern))
			continue
		}
		for _, t := range c.Paths[pattern] {
			if !slices.Contains(known, t) {
				all = append(all, fieldError(field, "neither the plan nor a page or step has the tag %.40q%s", t, nearestOf(t, known)))
			}
		}
	}
	return errors.Join(all...)
}

// tagsIn are all tags of a plan, of its pages and of their steps.
func tagsIn(p lab.Plan) []string {
	all := append(slices.Clone(p.Tags), tagsOf(p.Steps)...)
	for _, e := range p.Pages {
		all = append(append(all, e.Tags...), tagsOf(e.Steps)...)
	}
	return all
}

// tagsOf are the tags of steps, and of those in them.
func tagsOf(steps []lab.Step) (all []string) {
	for _, s := range steps {
		all = append(append(all, s.Tags...), tagsOf(s.Steps)...)
	}
	return all
}

// TagsOf are the tags that changed files need, by the patterns of the plan. all says that the whole plan is needed,
// since no pattern has the file that because names.
func TagsOf(p lab.Plan, files []string) (tags []string, all bool, because string) {
	needed := map[string]bool{}
	for _, file := range files {
		known := false
		for pattern, needs := range p.Paths {
			if matches(strings.Split(pattern, "/"), strings.Split(file, "/")) {
				known = true
				for _, t := range needs {
					needed[t] = true
				}
			}
		}
		if !known {
			return nil, true, file
		}
	}
	return slices.Sorted(maps.Keys(needed)), false, ""
}

// matches says whether a path has a pattern, both in their parts. ** is any number of folders.
func matches(pattern, file []string) bool {
	// reach[i] says whether the pattern's parts so far can have the first i parts of the path.
	reach := make([]bool, len(file)+1)
	reach[0] = true
	for _, part := range pattern {
		next := make([]bool, len(file)+1)
		for i, ok := range reach {
			switch {
			case part == "**":
				next[i] = ok || i > 0 && next[i-1]
			case ok && i < len(file):
				is, err := path.Match(part, file[i])
				next[i+1] = is && err == nil
			}
		}
		reach = next
	}
	return reach[len(file)]
}

// Select leaves out what no tag of a list needs: pages and steps that have tags, and none of these. What has no tags
// stays, but a page or a repetition that no step is left of. needed is false if nothing is left: the plan has tags and
// none of these, no page or step is left, or the list is empty.
func (r Request) Select(tags []string) (selected Request, needed bool, err error) {
	s := selection{tags: tags}
	if len(tags) == 0 || !s.has(r.Tags) {
		return r, false, nil
	}
	fields, err := r.fields()
	if err != nil {
		return r, false, err
	}
	if !s.inner(fields, r.Steps) {
		return r, false, nil
	}
	if list, _ := fields["pages"].([]any); len(r.Pages) > 0 && len(list) == len(r.Pages) {
		kept := keptOf(&s, list, r.Pages, func(e lab.PlanPage) ([]string, []lab.Step) { return e.Tags, e.Steps })
		if len(kept) == 0 {
			return r, false, nil
		}
		fields["pages"] = kept
	}
	if !s.removed {
		return r, true, nil
	}
	selected, err = requestOf(fields)
	selected.file = r.file // whose lines are of other places now
	return selected, true, err
}

// Choose selects what has one of the tags. A request that is the whole plan, from a file, becomes what is left of it;
// another one changes a plan that a box keeps, and gets the pages and steps that are left. why says in words what was
// chosen, and needed is false if nothing was.
func (r Request) Choose(whole Request, tags []string) (chosen Request, why string, needed bool, err error) {
	left, needed, err := whole.Select(tags)
	switch {
	case err != nil:
		return r, "", false, err
	case !needed && len(tags) == 0:
		return r, "Nothing of the plan is needed for the changed files", false, nil
	case !needed:
		return r, "Nothing of the plan has the tags " + strings.Join(tags, ", "), false, nil
	}
	why = "Of the plan is made what has the tags " + strings.Join(tags, ", ")
	if n := len(whole.Pages); n > 0 {
		why += fmt.Sprintf(": %d of %d pages", len(left.Pages), n)
	}
	if r.file != "" {
		return left, why, true, nil
	}
	if len(whole.Pages) > 0 {
		err = r.Set("pages", left.Pages)
	}
	if err == nil && len(whole.Steps) > 0 {
		err = r.Set("steps", left.Steps)
	}
	return r, why, err == nil, err
}

// selection leaves out of a plan's fields what none of its tags needs.
type selection struct {
	tags    []string
	removed bool
}

func (s *selection) has(own []string) bool {
	return len(own) == 0 || slices.ContainsFunc(own, func(t string) bool { return slices.Contains(s.tags, t) })
}

// inner selects among the steps of a plan, a page or a repetition; false says that none of them is left.
func (s *selection) inner(fields map[string]any, from []lab.Step) bool {
	list, _ := fields["steps"].([]any)
	if len(from) == 0 || len(list) != len(from) {
		return true
	}
	kept := keptOf(s, list, from, func(step lab.Step) ([]string, []lab.Step) { return step.Tags, step.Steps })
	fields["steps"] = kept
	return len(kept) > 0
}

// keptOf are the fields of those of a list that are left; of tells the tags and the steps of one.
func keptOf[T any](s *selection, list []any, from []T, of func(T) ([]string, []lab.Step)) (kept []any) {
	for i, one := range from {
		tags, steps := of(one)
		fields, _ := list[i].(map[string]any)
		if !s.has(tags) || !s.inner(fields, steps) {
			s.removed = true
			continue
		}
		kept = append(kept, list[i])
	}
	return kept
}

// Unknown names the tags of a list that nothing of the plan has, each with what it has.
func (r Request) Unknown(tags []string) error {
	known := tagsIn(r.Plan)
	for _, t := range tags {
		if !slices.Contains(known, t) {
			return fmt.Errorf("neither the plan nor a page or step has the tag %s%s", strconv.Quote(lab.Clip(t, 40)), nearestOf(t, known))
		}
	}
	return nil
}

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
	known := slices.Clone(c.Tags)
	for i, e := range c.Pages {
		check(fmt.Sprintf("pages[%d].tags", i), e.Tags)
		known = append(append(known, e.Tags...), tagsOf(e.Steps)...)
	}
	if err := CheckTags(tagsOf(c.Steps)); err != nil {
		all = append(all, fieldError("steps", "tags: %w", err))
	}
	known = append(known, tagsOf(c.Steps)...)
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

// tagsOf are the tags of steps, and of those in them.
func tagsOf(steps []lab.Step) (all []string) {
	for _, s := range steps {
		all = append(append(all, s.Tags...), tagsOf(s.Steps)...)
	}
	return all
}

// TagsOf are the tags that changed files need, by the patterns of the plan. all says that the whole plan is needed, since no
// pattern has the file that because names.
func TagsOf(p lab.Plan, files []string) (tags []string, all bool, because string) {
	for _, file := range files {
		known := false
		for pattern, needs := range p.Paths {
			if matches(strings.Split(pattern, "/"), strings.Split(file, "/")) {
				known, tags = true, append(tags, needs...)
			}
		}
		if !known {
			return nil, true, file
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), false, ""
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

// Select leaves out what no tag of a list needs: pages and steps that have tags, and none of these. What has no tags stays.
// needed is false if nothing is left: the plan has tags and none of these, no page is left, or the list is empty.
func (r Request) Select(tags []string) (selected Request, needed bool, err error) {
	isOf := func(own []string) bool {
		return len(own) == 0 || slices.ContainsFunc(own, func(t string) bool { return slices.Contains(tags, t) })
	}
	if len(tags) == 0 || !isOf(r.Tags) {
		return r, false, nil
	}
	fields, err := r.fields()
	if err != nil {
		return r, false, err
	}
	removed := false
	var steps func(node any, from []lab.Step) any
	steps = func(node any, from []lab.Step) any {
		list, _ := node.([]any)
		kept := []any{}
		for i, s := range from[:min(len(from), len(list))] {
			one, _ := list[i].(map[string]any)
			if !isOf(s.Tags) {
				removed = true
				continue
			}
			if len(s.Steps) > 0 && one != nil {
				one["steps"] = steps(one["steps"], s.Steps)
			}
			kept = append(kept, list[i])
		}
		return kept
	}
	if len(r.Steps) > 0 {
		fields["steps"] = steps(fields["steps"], r.Steps)
	}
	if list, _ := fields["pages"].([]any); len(r.Pages) > 0 && len(list) == len(r.Pages) {
		kept := []any{}
		for i, e := range r.Pages {
			if !isOf(e.Tags) {
				removed = true
				continue
			}
			if one, _ := list[i].(map[string]any); one != nil && len(e.Steps) > 0 {
				one["steps"] = steps(one["steps"], e.Steps)
			}
			kept = append(kept, list[i])
		}
		if len(kept) == 0 {
			return r, false, nil
		}
		fields["pages"] = kept
	}
	if !removed {
		return r, true, nil
	}
	selected, err = requestOf(fields)
	selected.file = r.file // whose lines are of other places now
	return selected, true, err
}

// Unknown names the tags of a list that nothing of the plan has, each with what it has.
func (r Request) Unknown(tags []string) error {
	known := append(slices.Clone(r.Tags), tagsOf(r.Steps)...)
	for _, e := range r.Pages {
		known = append(append(known, e.Tags...), tagsOf(e.Steps)...)
	}
	for _, t := range tags {
		if !slices.Contains(known, t) {
			return fmt.Errorf("neither the plan nor a page or step has the tag %s%s", strconv.Quote(lab.Clip(t, 40)), nearestOf(t, known))
		}
	}
	return nil
}

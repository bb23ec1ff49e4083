package suites

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// Suite is a suite that can be measured.
type Suite struct {
	Name     string      `json:"name" example:"eidetic-1"`
	About    string      `json:"about,omitempty" doc:"What it is, in its own words"`
	Shipped  bool        `json:"shipped" doc:"Whether it is of this program; else it was uploaded"`
	SHA256   string      `json:"sha256" doc:"Of its text; in quotes it is the ETag"`
	Browsers []string    `json:"browsers,omitempty" doc:"Those that are compared unless others are named"`
	Trials   int         `json:"trials,omitempty" doc:"Of each entry and browser, unless its plan says"`
	By       string      `json:"by,omitempty" doc:"Name of the token that uploaded it"`
	Changed  *time.Time  `json:"changed,omitempty" doc:"When it was uploaded"`
	Entries  []SuitePart `json:"entries"`
	YAML     string      `json:"yaml,omitempty" doc:"Its text; absent in a list"`
}

// SuitePart is an entry of a suite.
type SuitePart struct {
	Name        string  `json:"name" example:"load-article"`
	Type        string  `json:"type" example:"load"`
	Visual      string  `json:"visual,omitempty" doc:"Its visual mark" example:"load/speed_index_ms"`
	Interactive string  `json:"interactive,omitempty" doc:"Its interactive mark"`
	Weight      float64 `json:"weight"`
	Answers     int     `json:"answers" doc:"How many right answers its page knows"`
}

// shelved is a suite that was uploaded, on the disk.
type shelved struct {
	Text    []byte     `json:"text"`
	By      string     `json:"by"`
	Scope   plan.Scope `json:"scope"`
	Changed time.Time  `json:"changed"`

	suite *suite.Suite
}

func (k *Keeper) shelf() string { return filepath.Join(k.Dir, ShelfDir) }

func (k *Keeper) place(name string) string { return filepath.Join(k.shelf(), name+".json") }

func (k *Keeper) readShelf() error {
	files, err := os.ReadDir(k.shelf())
	if err != nil {
		return err
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || f.IsDir() {
			continue
		}
		var one shelved
		err := ownruns.ReadFile(k.place(name), maxFile, &one)
		if err == nil {
			one.suite, err = suite.Parse(name, one.Text)
		}
		if err == nil && one.suite.Name != name {
			err = fmt.Errorf("it is the suite %q", one.suite.Name)
		}
		if err != nil {
			k.Log.Error("a suite cannot be read, and is left out", "suite", name, "error", err)
			continue
		}
		k.own[name] = &one
	}
	return nil
}

// find returns a suite, and the scope of who brought it.
func (k *Keeper) find(name string) (*suite.Suite, plan.Scope, error) {
	if slices.Contains(suite.Shipped(), name) {
		s, err := suite.Open(name)
		return s, plan.ScopeAdmin, err
	}
	k.line.Lock()
	defer k.line.Unlock()
	if one := k.own[name]; one != nil {
		return one.suite, one.Scope, nil
	}
	return nil, 0, store.ErrNotFound
}

// Suites lists the suites of this program, and those that were uploaded, without their texts.
func (k *Keeper) Suites() (all []Suite, err error) {
	for _, name := range suite.Shipped() {
		s, err := suite.Open(name)
		if err != nil {
			return nil, err
		}
		all = append(all, describe(s))
	}
	k.line.Lock()
	defer k.line.Unlock()
	for _, one := range k.own {
		all = append(all, one.describe())
	}
	slices.SortFunc(all, func(a, b Suite) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Suite returns a suite with its text, or store.ErrNotFound.
func (k *Keeper) Suite(name string) (Suite, error) {
	s, _, err := k.find(name)
	if err != nil {
		return Suite{}, err
	}
	d := describe(s)
	k.line.Lock()
	if one := k.own[name]; one != nil {
		d = one.describe()
	}
	k.line.Unlock()
	d.YAML = string(s.Text())
	return d, nil
}

func (one *shelved) describe() Suite {
	d := describe(one.suite)
	d.By, d.Changed = one.By, &one.Changed
	return d
}

func describe(s *suite.Suite) Suite {
	d := Suite{
		Name: s.Name, About: s.About, Shipped: s.IsShipped(), SHA256: s.SHA256(), Browsers: s.Browsers, Trials: s.Trials, Entries: []SuitePart{},
	}
	for _, e := range s.Entries {
		d.Entries = append(d.Entries, SuitePart{e.Name, e.Type, e.Visual, e.Interactive, e.Counts(), len(e.Truths)})
	}
	return d
}

// PutSuite keeps a suite under its name. It replaces another of that name only if match is the hash of that one's text,
// or "*". The error is [ErrShipped], [ErrExists], [ErrMany], [lab.ErrShare] or a [WrongError].
func (k *Keeper) PutSuite(name string, text []byte, match, by string, scope plan.Scope) (Suite, error) {
	if slices.Contains(suite.Shipped(), name) {
		return Suite{}, ErrShipped
	}
	s, err := suite.Parse(name+".yaml", text)
	if err != nil {
		return Suite{}, &WrongError{Err: err}
	}
	if s.Name != name {
		return Suite{}, wrong("%s.yaml: suite: it is called %q, and was sent as %q", name, s.Name, name)
	}
	one := &shelved{Text: text, By: by, Scope: scope, Changed: k.Now().UTC(), suite: s}
	content, err := json.Marshal(one)
	if err != nil {
		return Suite{}, err
	}
	k.line.Lock()
	defer k.line.Unlock()
	switch there := k.own[name]; {
	case there == nil && match != "" && match != "*":
		return Suite{}, ErrExists
	case there == nil:
		own := 0
		for _, other := range k.own {
			if other.By == by {
				own++
			}
		}
		if err := lab.Room(len(k.own), own, mostSuites, ErrMany); err != nil {
			return Suite{}, err
		}
	case match != "*" && match != there.suite.SHA256():
		return Suite{}, ErrExists
	}
	if err := atomicfile.WriteFile(k.place(name), content, 0o600); err != nil {
		return Suite{}, fmt.Errorf("keep suite: %w", err)
	}
	k.own[name] = one
	d := one.describe()
	d.YAML = string(text)
	return d, nil
}

// RemoveSuite removes a suite that was uploaded; results hold its text themselves. The error is store.ErrNotFound, or
// [ErrShipped].
func (k *Keeper) RemoveSuite(name string) error {
	if slices.Contains(suite.Shipped(), name) {
		return ErrShipped
	}
	k.line.Lock()
	defer k.line.Unlock()
	if k.own[name] == nil {
		return store.ErrNotFound
	}
	if err := os.Remove(k.place(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove suite: %w", err)
	}
	delete(k.own, name)
	return nil
}

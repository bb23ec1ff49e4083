// Package recipe knows, as data, how each platform's browsers are opened at a URL, made
// fresh, closed and shown full-screen, by keys alone or, on Android, by their package; and
// what a person does to make them trust the box. A name flows in, steps flow out.
//
// After the key that goes to the address bar there is a wait: what is typed before the bar has
// the focus goes into the page.
package recipe

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"eidetic/control/adb"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
)

//go:embed recipes.json
var recipes []byte // constant

// Recipe is what is known of a browser on a platform. Steps are in their one-line form.
type Recipe struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Browser  string `json:"browser"`
	// Of Android: adb opens, clears and stops the package. Settings, Grant and Extras keep one that was cleared from
	// asking its owner anything.
	Package  string        `json:"package,omitempty"`
	Settings *adb.Settings `json:"settings,omitempty"`
	Grant    []string      `json:"grant,omitempty"`  // permissions
	Extras   []string      `json:"extras,omitempty"` // of the intent that opens a URL

	Open  string   `json:"open"`            // {url} is the URL, as a quoted text
	Fresh string   `json:"fresh,omitempty"` // opens a window that remembers nothing
	Close string   `json:"close,omitempty"`
	Kiosk string   `json:"kiosk,omitempty"` // makes the window fill the screen, or not
	Trust []string `json:"trust"`           // what a person does once
	// Proved says on what it was tried; "" is on nothing.
	Proved string `json:"proved,omitempty"`
}

// All returns every recipe.
func All() ([]Recipe, error) {
	decoder := json.NewDecoder(strings.NewReader(string(recipes)))
	decoder.DisallowUnknownFields()
	var all []Recipe
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("recipes.json: %w", err)
	}
	return all, nil
}

// Find returns the recipe of a name.
func Find(name string) (Recipe, error) {
	all, err := All()
	if err != nil {
		return Recipe{}, err
	}
	var names []string
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return Recipe{}, fmt.Errorf("there is no recipe %.60q: use one of %s", name, strings.Join(names, ", "))
}

// Opening returns the steps that open a URL.
func (r Recipe) Opening(url string) ([]lab.Step, error) {
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(url) + `"`
	return gesture.Parse(strings.ReplaceAll(r.Open, "{url}", quoted))
}

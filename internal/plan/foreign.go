package plan

import (
	"bytes"
	"fmt"
)

// foreign are the journeys of other tools, each with what its files have.
var foreign = []struct { // constant
	has  []string // in lower case
	what string
}{
	{[]string{`"title"`, `"steps"`, `"navigate"`}, "a recording of the DevTools Recorder"},
	{[]string{`"tests"`, `"commands"`}, "a project of Selenium IDE"},
	{[]string{"@playwright/test"}, "a test of Playwright"},
	{[]string{"playwright", "page.goto"}, "a script of Playwright"},
	{[]string{"puppeteer", "page.goto"}, "a script of Puppeteer"},
	{[]string{"from selenium"}, "a script of Selenium"},
	{[]string{"selenium-webdriver"}, "a script of Selenium"},
	{[]string{"openqa.selenium"}, "a script of Selenium"},
	{[]string{"cy.visit("}, "a test of Cypress"},
	{[]string{"commands.measure"}, "a script of sitespeed.io and browsertime"},
	{[]string{"k6/http"}, "a script of k6"},
	{[]string{"navigate\thttp"}, "a script of WebPageTest"},
}

// checkForeign returns an error for a text that is no plan but the journey of another tool.
func checkForeign(text []byte) error {
	lower := bytes.ToLower(text)
	for _, f := range foreign {
		all := true
		for _, part := range f.has {
			all = all && bytes.Contains(lower, []byte(part))
		}
		if all {
			return fmt.Errorf("it is %s, and no plan: write its steps as those of a plan, "+
				"such as open, click, type and choose (docs/scenarios.md)", f.what)
		}
	}
	return nil
}

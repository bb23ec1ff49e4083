package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/export"
	"eidetic/internal/tell/report/reporttest"
)

// A run is exported from its folder, its files, or what appliance run --out left.
func TestExport(t *testing.T) {
	out := t.TempDir()
	r := reporttest.Compared(1, 8, 100)
	folder, err := store.Create(out, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Files(folder.Path(), r, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(out, "nope")
	picture := filepath.Join(out, "run.png")
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"folder":            {[]string{folder.Path(), "--format", "junit"}, exitGood, "<testsuites "},
		"what --out left":   {[]string{out, "--format", "csv"}, exitGood, "run,name,trial"},
		"run.json":          {[]string{filepath.Join(out, "run.json"), "--format", "perfherder"}, exitGood, `{"framework":`},
		"report.json":       {[]string{filepath.Join(out, "report.json"), "--format", "github"}, exitGood, "::error title=links"},
		"with a picture":    {[]string{out, "--format", "markdown", "--picture", picture, "--link", "run.png"}, exitGood, "](<run.png>)"},
		"no such run":       {[]string{missing, "--format", "csv"}, exitUsage, "no such file"},
		"an ID and no box":  {[]string{"20261121-091400-demo", "--format", "csv"}, exitUsage, "name the box with --box"},
		"no such format":    {[]string{out, "--format", "xls"}, exitUsage, "is not one of junit, perfherder"},
		"no format":         {[]string{out}, exitUsage, "is not one of junit"},
		"picture of a file": {[]string{filepath.Join(out, "run.json"), "--format", "picture"}, exitCannot, "the run's folder"},
		"picture, not md":   {[]string{out, "--format", "csv", "--picture", picture}, exitUsage, "--picture goes with"},
		"broken":            {[]string{picture, "--format", "csv"}, exitUsage, "is not a run.json"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "broken" {
				if err := os.WriteFile(picture, []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("EIDETIC_BOX", "")
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), append([]string{"export"}, c.args...), &streams{strings.NewReader(""), &stdout, &stderr})
			if status != c.status || !strings.Contains(stdout.String()+stderr.String(), c.says) {
				t.Errorf("status %d, %.300q, %.300q; want %d and %q", status, stdout.String(), stderr.String(), c.status, c.says)
			}
			if c.status != exitGood && stdout.Len() > 0 {
				t.Errorf("a document is begun: %.100q; want all of it or nothing", stdout.String())
			}
			if name == "with a picture" {
				if head, err := os.ReadFile(picture); err != nil || !bytes.HasPrefix(head, []byte("\x89PNG")) {
					t.Errorf("the picture: %.8q, %v; want a PNG", head, err)
				}
			}
		})
	}
	var help bytes.Buffer
	run(t.Context(), []string{"export", "--help"}, &streams{strings.NewReader(""), &help, &help})
	for _, f := range export.Formats() {
		if !strings.Contains(help.String(), f.Name) {
			t.Errorf("the help lacks %s", f.Name)
		}
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/netlab/archive"
)

// drawnIn makes the half in namespaces of this process draw its trials: the folder has what the pages' servers serve.
const drawnIn = "EIDETIC_TEST_DRAWN_IN"

// drawInside carries out the task that the outer half has handed over, without a browser: each load takes as long as
// its page says, with the noise of a real one.
func drawInside(dir string) error {
	var task sandbox.Task
	if err := json.NewDecoder(os.NewFile(3, "task")).Decode(&task); err != nil {
		return err
	}
	p := task.Plan
	run := &lab.Run{ID: task.ID, Name: p.Name, Plan: p, State: store.StateDone, Page: p.FirstPage(), Link: lab.Link{Name: "native"}, Trials: []*lab.Trial{},
		Environment: lab.Environment{Appliance: "test", Host: lab.Host{Processor: "drawn", Cores: 2, MemoryBytes: 8e9}}}
	rng := rand.New(rand.NewPCG(uint64(len(p.Name))+p.Seed, 7))
	for _, cell := range p.Cells() {
		run.Cells = append(run.Cells, lab.CellResult{Name: cell.Name, Page: cell.Page, User: cell.User})
		arms := cell.Plan.Arms()
		for i := range p.Trials * len(arms) {
			arm := arms[i%len(arms)]
			works, err := worksFor(dir, arm.Arm)
			if err != nil {
				return err
			}
			t := &lab.Trial{Number: len(run.Trials) + 1, Cell: cell.Name, Block: 1 + i/10, Arm: arm.Name, Valid: true}
			for _, g := range metric.Guards() {
				t.Measurements = append(t.Measurements, lab.Measurement{Name: g.String(), Unit: "ms", Value: 300 + works + 15*rng.NormFloat64()})
			}
			run.Trials = append(run.Trials, t)
		}
	}
	switch {
	case p.IsMany():
		reporttest.CompareMany(run)
	default:
		run.Cells = nil
		reporttest.Compare(run)
	}
	if p.Treatment == nil {
		run.Comparison = nil
	}
	f, err := store.Create(task.Out, run)
	if err != nil {
		return err
	}
	return errors.Join(recordDrawn(dir, p, filepath.Join(f.Path(), execute.ArchiveFile)), f.Close())
}

// recordDrawn is the run's recording, which a bisect replays: the page of its first arm, as it is served now.
func recordDrawn(dir string, p lab.Plan, file string) error {
	if p.Archive != "" {
		return nil
	}
	body, err := servedNow(dir, p.FirstPage())
	if err != nil {
		return err
	}
	return archive.Save(file, archive.New([]*lab.Exchange{{
		Wall: time.Now(), Method: http.MethodGet, URL: p.FirstPage(), Protocol: "http/1.1", Status: http.StatusOK, Reason: "OK",
		Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}}, Body: body},
		Chunks:   []lab.Chunk{{Bytes: len(body)}},
	}}, nil, nil, archive.CreateOptions{Software: "test", Wall: time.Now()}))
}

// servedNow is what the server of a page serves.
func servedNow(dir, page string) ([]byte, error) {
	folder := map[string]string{"18481": "production", "18482": "trunk", "18483": "preview"}[lab.ParseURL(page).Port()]
	return os.ReadFile(filepath.Join(dir, folder, "index.html"))
}

// worksFor is for how many ms the page of an arm works: that of its recording, or as it is served now.
func worksFor(dir string, a lab.Arm) (float64, error) {
	text, err := []byte(nil), error(nil)
	if a.Archive == "" {
		text, err = servedNow(dir, a.Page)
	} else if kept, openErr := archive.Open(a.Archive); openErr != nil {
		err = openErr
	} else {
		text = kept.Exchanges()[0].Response.Body
	}
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`performance\.now\(\) \+ (\d+)`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%+v: no work in %s", a, text)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// TestPathOfAutomate types the path of docs/automate.md, from nothing to a guarded repository, as a reader does: its
// blocks in their order, in one shell. Everything is real, the service, its queue, git, the deployments, the alerts and
// the bisect, but for the trials, which are drawn.
func TestPathOfAutomate(t *testing.T) {
	testlab.NeedNamespaces(t)
	testlab.NeedProgram(t, "git")
	testlab.NeedProgram(t, "python3")
	guide, err := os.ReadFile("../../docs/automate.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	blocks := regexp.MustCompile("(?ms)^```sh path\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 8 {
		t.Fatalf("docs/automate.md has %d blocks of the path", len(blocks))
	}
	for i, b := range blocks {
		script += fmt.Sprintf("echo '== block %d'\n%s", i+1, b[1])
	}
	var mu sync.Mutex
	told := ""
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		told += string(body) + "\n"
	}))
	defer receiver.Close()
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf("#!/bin/sh\n%s=1 %s=%q exec %q \"$@\"\n", asAppliance, drawnIn, dir, self)
	if err := os.WriteFile(filepath.Join(bin, "appliance"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RECEIVER="+receiver.URL+"/", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	said, err := os.Create(filepath.Join(bin, "said")) // a pipe would wait for what the path leaves
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	shell.Stdout, shell.Stderr = said, said
	err = shell.Run()
	_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // what the path left, if it did not get to its end
	out, readErr := os.ReadFile(said.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "serve.log"))
	if err != nil {
		t.Fatalf("the path ends with %v:\n%s\nserve.log:\n%s", err, out, log)
	}
	text := string(out)
	for _, want := range []string{
		`It is the reference main@1 of "shop"`, "No difference of more than 5 % from the reference was found", "search: status 1",
		"slower than the reference for home / desk, home / phone", "trunk: status 1", "by Eve", "before: status 1",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the path does not say %q", want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{`"type":"alert.raised"`, `"type":"alert.bisected"`, `"author":"Eve"`, `"subject":"search: ask the server twice"`} {
		if !strings.Contains(told, want) {
			t.Errorf("the webhook was not told %s: %s", want, told)
		}
	}
	if t.Failed() {
		t.Logf("%s\nserve.log:\n%s", text, log)
	}
}

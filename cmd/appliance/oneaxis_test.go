package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/timeline"
)

// beatC notes an interval of its own and prints when it began, again and again.
const beatC = `
#include "eidetic.h"
#include <unistd.h>
int main(void) {
	struct timespec t, pause = {0, 50000000};
	char text[40], net[64] = "";
	if (readlink("/proc/self/ns/net", net, sizeof net - 1) < 0) return 1;
	printf("net %s\n", net);
	for (int i = 0;; i++) {
		snprintf(text, sizeof text, "beat %d", i);
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (eidetic_note("begin", text, "#808000") == 0) printf("beat %d %lld\n", i, t.tv_sec * 1000000000LL + t.tv_nsec);
		fflush(stdout);
		nanosleep(&pause, 0);
		eidetic_note("end", text, 0);
		nanosleep(&pause, 0);
	}
}`

// storyPages are a page that asks its back end, has a worker work on the answer, and its frame show it.
func storyPages() map[string][2]string {
	return map[string][2]string{
		"/": {"text/html", `<!doctype html><title>story</title><link rel="icon" href="data:,"><body>story<iframe src="/frame"></iframe><script>
const w = new Worker("/w.js");
w.onmessage = () => { lab.mark("worker told"); frames[0].postMessage(1, "*"); };
onmessage = () => { lab.mark("frame told"); document.body.style.background = "#080"; setTimeout(() => lab.done(), 1500); };
onload = async () => { lab.mark("asks"); await (await fetch("/api/stock")).text(); lab.mark("answered"); w.postMessage(1); };
</script>`},
		"/frame": {"text/html", `<!doctype html><title>f</title><body>frame<script>
onmessage = () => { lab.mark("frame shows"); document.body.style.background = "#008"; parent.postMessage(1, "*"); };</script>`},
		"/w.js": {"text/javascript", `onmessage = () => { lab.begin("works"); for (const end = performance.now() + 100; performance.now() < end;); lab.end("works"); postMessage(1); };`},
	}
}

// storySite serves them. Its back end takes 120 ms, and keeps its spans by a clock that is an hour ahead.
func storySite(t *testing.T) (url string, spans func() string) {
	t.Helper()
	var mu sync.Mutex
	var kept strings.Builder
	n := byte(0)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/stock" {
			page := storyPages()[r.URL.Path]
			w.Header().Set("Content-Type", page[0])
			fmt.Fprint(w, page[1])
			return
		}
		ahead := func() int64 { return time.Now().Add(time.Hour).UnixNano() }
		begun := ahead()
		_ = lab.Wait(r.Context(), storyServed)
		middle := ahead()
		_ = lab.Wait(r.Context(), storyServed/4)
		ended := ahead()
		if of := strings.Split(r.Header.Get("traceparent"), "-"); len(of) == 4 {
			mu.Lock()
			n += 2
			id := func(i byte) string { return hex.EncodeToString([]byte{9, 9, 9, 9, 9, 9, 9, n + i}) }
			const span = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"stock"}}]},"scopeSpans":[{"spans":[{` +
				`"traceId":"%s","spanId":"%s","parentSpanId":"%s","name":"%s","startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}` + "\n"
			fmt.Fprintf(&kept, span+span, of[1], id(0), of[2], "GET /api/stock", begun, ended, of[1], id(1), id(0), "SELECT stock", begun, middle)
			mu.Unlock()
		}
		fmt.Fprint(w, "7 left")
	}))
	t.Cleanup(site.Close)
	return site.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return kept.String()
	}
}

// storyServed is the longer part of what the back end takes for an answer.
const storyServed = 100 * time.Millisecond

// storyHeard is when an event of the story was, as its timeline says.
type storyHeard struct{ earliest, latest, lasted lab.Time }

// TestStoryOnOneAxis: a program in C in the device's network, a page with its frame and its worker, and a back end whose
// clock is an hour ahead tell one story, which the timeline has in its order, and as long as it took, within its bounds.
func TestStoryOnOneAxis(t *testing.T) {
	testlab.Long(t, "all of TestFourWriters, TestAnnotateSpans and the conformance cases of annotations in one run")
	needLab(t)
	testlab.NeedRoot(t)
	gcc, enter := testlab.NeedProgram(t, "gcc"), testlab.NeedProgram(t, "nsenter")
	url, spans := storySite(t)
	out, work := t.TempDir(), t.TempDir()
	if dir := os.Getenv("STORY_OUT"); dir != "" { // for a picture
		out = dir
	}
	plan := filepath.Join(work, "plan.yaml")
	text := "name: one story\npage: " + url + "/\ntrials: 1\nlimit_s: 60\nmeasure:\n  traceparent: true\n  level: detail\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	beat := compiled(t, gcc, work)
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	measured := appliance(t, "run", "--plan", plan, "--out", out)
	var said bytes.Buffer
	measured.Stdout, measured.Stderr = &said, &said
	if err := measured.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = measured.Wait() // its trial is looked at, whatever it says of the machine
	}()
	network, spaces := awaitDevice(ctx, t, measured.Process.Pid)
	folder := awaitFile(ctx, t, filepath.Join(out, "runs", "*", "run.json"))
	socket := filepath.Join(work, "socket")
	told := make(chan int, 1)
	annotating, stop := context.WithCancel(t.Context())
	defer stop()
	var noted bytes.Buffer
	go func() {
		told <- run(annotating, []string{"annotate", "--run", filepath.Dir(folder), "--socket", socket}, &streams{nil, &noted, &noted})
	}()
	awaitFile(ctx, t, socket)
	inside := exec.CommandContext(ctx, enter, "--net=/proc/self/fd/3", "--pid=/proc/self/fd/4", beat)
	inside.ExtraFiles = spaces
	inside.Env = append(os.Environ(), "EIDETIC_ANNOTATE="+socket)
	var beats bytes.Buffer
	inside.Stdout, inside.Stderr = &beats, &beats
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	<-ended
	_ = inside.Wait() // the namespace's end ended it
	stop()
	if status := <-told; status != exitGood {
		t.Fatalf("annotate = %d, %s", status, noted.String())
	}
	if !strings.Contains(beats.String(), "net "+network) {
		t.Errorf("the program is not in the device's network %s: %.100s", network, beats.String())
	}
	otlp := filepath.Join(work, "traces.json")
	if err := os.WriteFile(otlp, []byte(spans()), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), []string{"annotate", "--run", filepath.Join(out, "latest"), "--otlp", otlp}, &streams{nil, &noted, &noted}); status != exitGood {
		t.Fatalf("annotate --otlp = %d, %s\n%s", status, noted.String(), said.String())
	}
	dir, kept := readRun(t, out)
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if len(kept.Trials) == 0 {
		t.Fatalf("no trial: %s", said.String())
	}
	tl := timeline.NewReader(files).Of(kept.Trials[0])
	checkStory(t, tl, beats.String())
	t.Logf("%q", tl.Notes)
}

// compiled compiles the program in C.
func compiled(t *testing.T, gcc, work string) string {
	t.Helper()
	var code bytes.Buffer
	if status := run(t.Context(), []string{"annotate", "--code", "c"}, &streams{nil, &code, &code}); status != exitGood {
		t.Fatalf("annotate --code c = %d, %s", status, code.String())
	}
	for name, text := range map[string]string{"eidetic.h": code.String(), "beat.c": beatC} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), gcc, "-Wall", "-Wextra", "-Werror", "-O1", "-o", "beat", "beat.c")
	cmd.Dir = work
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	return filepath.Join(work, "beat")
}

// awaitFile waits for a file of a pattern.
func awaitFile(ctx context.Context, t *testing.T, pattern string) string {
	t.Helper()
	for {
		if names, err := filepath.Glob(pattern); err != nil || len(names) > 0 {
			if err != nil {
				t.Fatal(err)
			}
			return names[0]
		}
		if err := lab.Wait(ctx, 5*time.Millisecond); err != nil {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
	}
}

// awaitDevice waits for a browser among the descendants of a process, and opens the namespaces of its network and its
// processes.
func awaitDevice(ctx context.Context, t *testing.T, of int) (network string, spaces []*os.File) {
	t.Helper()
	for {
		parents, all := map[int]int{}, []int{}
		stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is constant
		for _, name := range stats {
			text, _ := os.ReadFile(name) // nothing of one that has ended
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
			if err != nil || len(fields) < 2 {
				continue
			}
			parents[pid], _ = strconv.Atoi(fields[1])
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			if bytes.Contains(command, []byte("--user-data-dir=")) && !bytes.Contains(command, []byte("--type=")) {
				all = append(all, pid)
			}
		}
		for _, pid := range all {
			up := parents[pid]
			for up > 1 && up != of {
				up = parents[up]
			}
			dir := fmt.Sprintf("/proc/%d/ns/", pid)
			name, err := os.Readlink(dir + "net")
			net, errNet := os.Open(dir + "net")
			processes, errProcesses := os.Open(dir + "pid")
			if up == of && errors.Join(err, errNet, errProcesses) == nil {
				t.Cleanup(func() { _ = errors.Join(net.Close(), processes.Close()) })
				return name, []*os.File{net, processes}
			}
		}
		if err := lab.Wait(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("no browser starts: %v", err)
		}
	}
}

// checkStory holds the timeline to what happened.
func checkStory(t *testing.T, tl *trace.Timeline, beats string) {
	t.Helper()
	heard := map[string]storyHeard{}
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			if track.Kind == trace.Annotation || track.Kind == trace.Request && strings.HasSuffix(e.Name, "/api/stock") {
				heard[e.Name[strings.LastIndexByte(e.Name, '/')+1:]] = storyHeard{e.Earliest, e.Latest, e.End - e.Start}
			}
		}
	}
	delete(heard, "stock")
	for _, track := range tl.Tracks { // a request and the span that served it end with the same word
		for _, e := range track.Events {
			at := storyHeard{e.Earliest, e.Latest, e.End - e.Start}
			switch {
			case track.Kind == trace.Request && strings.HasSuffix(e.Name, "/api/stock"):
				heard["request"], heard["answer"] = at, storyHeard{e.End, e.End, 0}
			case track.Name == "back end: stock" && strings.HasPrefix(e.Name, "GET"):
				heard["served"], heard["served until"] = at, storyHeard{e.Earliest + at.lasted, e.Latest + at.lasted, 0}
			case e.Name == "works" && track.Kind == trace.Annotation:
				heard["has worked"] = storyHeard{e.Earliest + at.lasted, e.Latest + at.lasted, 0}
			}
		}
	}
	order := []string{"asks", "request", "served", "served until", "answer", "answered", "works", "has worked", "worker told", "frame shows", "frame told"}
	for i, name := range order {
		at, ok := heard[name]
		switch {
		case !ok:
			t.Errorf("%q is not on the timeline: %v", name, heard)
		case at.latest < at.earliest:
			t.Errorf("%q has the bounds %d to %d", name, at.earliest, at.latest)
		case i > 0 && heard[order[i-1]].earliest > at.latest+lab.Time(time.Millisecond): // what a page's rounded clock hides
			t.Errorf("%q was %.1f ms at the latest, before %q at the earliest, by %.1f ms", name, float64(at.latest-tl.Zero)/1e6, order[i-1],
				float64(heard[order[i-1]].earliest-at.latest)/1e6)
		}
	}
	const took = lab.Time(storyServed + storyServed/4)
	if at := heard["served"]; at.lasted < took || heard["request"].lasted < took {
		t.Errorf("the back end took %.1f ms, its request %.1f; want %.1f and more", float64(at.lasted)/1e6, float64(heard["request"].lasted)/1e6, float64(took)/1e6)
	}
	if at := heard["SELECT stock"]; at.lasted < lab.Time(storyServed) || at.lasted > heard["served"].lasted {
		t.Errorf("what the back end asked for took %.1f ms", float64(at.lasted)/1e6)
	}
	if at := heard["works"]; at.lasted < 99e6 || heard["worker told"].latest-heard["works"].earliest < 99e6 {
		t.Errorf("the worker worked for %.1f ms; want 100", float64(at.lasted)/1e6)
	}
	if d := heard["answered"].latest - heard["asks"].earliest; d < took {
		t.Errorf("the page waited for %.1f ms at most; want %.1f and more", float64(d)/1e6, float64(took)/1e6)
	}
	found := 0
	for line := range strings.Lines(beats) {
		var n int
		var at lab.Time
		if k, _ := fmt.Sscanf(line, "beat %d %d", &n, &at); k != 2 {
			continue
		}
		note, ok := heard[fmt.Sprint("beat ", n)]
		if !ok { // of another trial, or of none
			continue
		}
		found++
		_, goesOn := heard[fmt.Sprint("beat ", n+1)] // the trial's end cuts its last one
		// The program stamps the note after it has read its clock.
		if note.earliest > at.Add(testlab.Hang) || note.latest < at || note.latest-note.earliest > 1e6 || goesOn && note.lasted < 50e6 {
			t.Errorf("beat %d began at %d and took 50 ms and more; the timeline has it at %d to %d for %.1f ms", n, at, note.earliest, note.latest, float64(note.lasted)/1e6)
		}
	}
	if found < 3 {
		t.Errorf("%d notes of the program in C are in the trial: %.300s", found, beats)
	}
}

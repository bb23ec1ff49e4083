package sandbox

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
)

// What the inner half tells, the outer half hears, in its order, and the error last.
func TestEventsCrossThePipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	w := newEventWriter(write)
	news := w.news()
	go func() {
		news.Say("recording")
		news.Step(experiment.Step{Trial: 1, Of: 3, Doing: "filming", Done: &lab.Trial{Number: 1}})
		news.Film(execute.FilmTurns)
		w.write(event{Error: "no screen"})
		write.Close()
	}()
	var heard []string
	told := readEvents(read, execute.News{
		Say: func(text string) { heard = append(heard, "say "+text) },
		Step: func(s experiment.Step) {
			if s.Done != nil {
				t.Errorf("the event of a step holds a whole trial: %+v", s.Done)
			}
			heard = append(heard, "step "+s.Doing)
		},
		Film: func(f execute.FilmNews) { heard = append(heard, "film "+string(f)) },
	})
	if got, want := strings.Join(heard, ", "), "say recording, step filming, film turns"; got != want {
		t.Errorf("readEvents() passes on %q; want %q", got, want)
	}
	if told == nil || told.Error() != "no screen" {
		t.Errorf("readEvents() = %v; want the error of the inner half", told)
	}
}

// A pipe that ends in the middle of an event, as after a SIGKILL, is no error of its own.
func TestEventsThatAreCutOff(t *testing.T) {
	heard := 0
	told := readEvents(strings.NewReader(`{"Say":"a"}`+"\n"+`{"Say":"b`), execute.News{Say: func(string) { heard++ }})
	if told != nil || heard != 1 {
		t.Errorf("readEvents() = %v after %d events; want nil after 1", told, heard)
	}
}

// Only the first process of namespaces of its own may be an inner half.
func TestInsideRefusesAnOrdinaryProcess(t *testing.T) {
	if err := Inside(t.Context(), Inner{}); !errors.Is(err, ErrNotInside) {
		t.Errorf("Inside() = %v; want ErrNotInside", err)
	}
	if err := VisitInside(t.Context(), Inner{}); !errors.Is(err, ErrNotInside) {
		t.Errorf("VisitInside() = %v; want ErrNotInside", err)
	}
}

func TestTraceDirs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lte.trace")
	if err := os.WriteFile(file, []byte("1\n2\n3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string][]string{"lte; 3s: trace=" + file: {dir}, "lte": nil} {
		task := Task{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Link: link}}}
		if _, got, err := task.read(); err != nil || !slices.Equal(got, want) {
			t.Errorf("the folders of the traces of %s: %q, %v; want %q", link, got, err, want)
		}
	}
}

func TestTrustedRoots(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if pool, err := TrustedRoots(""); pool != nil || err != nil {
		t.Errorf(`TrustedRoots("") = %v, %v; want nil, nil: the system's alone`, pool, err)
	}
	if pool, err := TrustedRoots(string(text)); pool == nil || err != nil {
		t.Errorf("TrustedRoots() = %v, %v; want a pool, nil", pool, err)
	}
	if _, err := TrustedRoots("junk"); err == nil {
		t.Error("TrustedRoots(junk) = nil; want an error")
	}
}

// HTTP/3 is offered in Alt-Svc or in an HTTPS record; another port does not count.
func TestOffersHTTP3(t *testing.T) {
	exchange := func(url, altSvc string) *lab.Exchange {
		return &lab.Exchange{URL: url, Response: lab.Message{Header: []lab.HeaderField{{Name: "alt-svc", Value: altSvc}}}}
	}
	a := archive.New([]*lab.Exchange{
		exchange("https://a.test/", `h3=":443"; ma=600`), exchange("https://b.test/", `h3=":8443"`),
		exchange("http://c.test/", `h3=":443"`), exchange("https://d.test:8443/", `h3=":443"`),
	}, []archive.DNS{
		{Name: "e.test", Records: []string{`e.test. 60 IN HTTPS 1 . alpn="h3,h2"`}},
		{Name: "f.test", Records: []string{`f.test. 60 IN HTTPS 1 . alpn="h2"`, "junk"}},
	}, nil, archive.CreateOptions{})
	if got, want := strings.Join(offersHTTP3(a), " "), "a.test e.test"; got != want {
		t.Errorf("offersHTTP3() = %q; want %q", got, want)
	}
}

// The folder of an archive is named as the inner half sees it, and the file need not exist.
func TestRealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got, err := realPath(filepath.Join(link, "new.wacz")); err != nil || got != filepath.Join(dir, "new.wacz") {
		t.Errorf("realPath() = %q, %v; want the file in %s, nil", got, err, dir)
	}
	if _, err := realPath(filepath.Join(link, "none", "new.wacz")); err == nil {
		t.Error("realPath() of a folder that is missing = nil; want an error")
	}
}

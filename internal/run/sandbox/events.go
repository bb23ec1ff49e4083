package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
)

// event is one line of what the inner half tells the outer one; one of its fields is set.
type event struct {
	Say  string           `json:",omitempty"`
	Step *experiment.Step `json:",omitempty"`
	Film execute.FilmNews `json:",omitempty"`
	// Error is why the plan was not carried out.
	Error string `json:",omitempty"`
}

// eventWriter is the inner half's end of the pipe.
type eventWriter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newEventWriter(f *os.File) *eventWriter {
	return &eventWriter{encoder: json.NewEncoder(f)}
}

// write ignores errors: the end of the outer half is the end of this process.
func (w *eventWriter) write(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.encoder.Encode(e)
}

// news passes the news of an execution on as events.
func (w *eventWriter) news() execute.News {
	return execute.News{
		Say:  func(text string) { w.write(event{Say: text}) },
		Step: func(s experiment.Step) { s.Done = nil; w.write(event{Step: &s}) },
		Film: func(f execute.FilmNews) { w.write(event{Film: f}) },
	}
}

// readEvents passes events on until the pipe ends, which is the end of the inner
// half, and returns the error that the inner half told.
func readEvents(r io.Reader, news execute.News) (told error) {
	decoder := json.NewDecoder(r)
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			return told
		}
		switch {
		case e.Error != "":
			told = errors.New(e.Error)
		case e.Step != nil:
			news.Step(*e.Step)
		case e.Film != "":
			news.Film(e.Film)
		case e.Say != "":
			news.Say(e.Say)
		}
	}
}

package panel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
)

// The examples of docs/api.md work and have the documented answers.
func TestDocumentedExamples(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config, _, _ := whole(t)
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation, config.Bisects = keeperOf(t, config), bisectsOf(t, config)
	config.Suites = suitesOf(t, config)
	config, _ = headOf(t, config)
	daily(t, config.Store, 30, 20) // a step, so that there is an alert
	if err := config.Automation.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	// An example is a request, followed by the status and body of its answer.
	example := regexp.MustCompile("(?s)```http\n(\\w+) (\\S+)\n(.*?)```\n```json (\\d+)\n(.*?)```")
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if len(examples) != strings.Count(string(doc), "```http") || len(examples) == 0 {
		t.Fatalf("%d examples with an answer; docs/api.md has %d", len(examples), strings.Count(string(doc), "```http"))
	}
	for _, e := range examples {
		method, path, body, status, want := e[1], e[2], e[3], e[4], e[5]
		t.Run(method+" "+path, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			answer, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var got, expected any
			if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(want), &expected); err != nil {
				t.Fatalf("the documented answer is not JSON: %v", err)
			}
			if strconv.Itoa(answer.StatusCode) != status {
				t.Errorf("status %d, documented is %s: %v", answer.StatusCode, status, got)
			}
			if err := within(expected, got, ""); err != nil {
				t.Error(err)
			}
		})
	}
}

// within returns an error where got lacks an expected value; "…" matches anything.
func within(expected, got any, at string) error {
	switch e := expected.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %T, documented is an object", at, got)
		}
		for name, v := range e {
			if err := within(v, g[name], at+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) < len(e) {
			return fmt.Errorf("%s: %v, documented is %v", at, got, expected)
		}
		for i, v := range e {
			if err := within(v, g[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		if e == "…" && got != nil {
			return nil
		}
	}
	if expected != got {
		return fmt.Errorf("%s: %v, documented is %v", at, got, expected)
	}
	return nil
}

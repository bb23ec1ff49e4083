package archive

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// threePages is a recording of three pages, the first of which was opened twice. The documents were asked for just
// before or after the page was noted.
func threePages() *Archive {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var list []*lab.Exchange
	add := func(at time.Duration, urls ...string) {
		for i, url := range urls {
			start := at + time.Duration(i)*50*time.Millisecond
			list = append(list, &lab.Exchange{
				Order: len(list), ID: "urn:uuid:" + url, Method: "GET", URL: url, Status: 200, Protocol: "h2", Wall: wall.Add(start), Start: start,
				FirstByte: 10 * time.Millisecond, Response: lab.Message{Body: []byte("x")}, Chunks: []lab.Chunk{{At: 20 * time.Millisecond, Bytes: 1}},
			})
		}
	}
	add(0, "https://a.test/", "https://a.test/a.js")
	add(10*time.Second, "https://a.test/old", "https://a.test/two", "https://ads.test/x.png") // the first is redirected
	add(20*time.Second, "https://a.test/three", "https://a.test/c.js")
	add(30*time.Second, "https://a.test/", "https://ads.test/y.png")
	pages := []Page{
		{URL: "https://a.test/", Wall: wall.Add(5 * time.Millisecond)}, {URL: "https://a.test/two", Wall: wall.Add(10*time.Second - time.Millisecond)},
		{URL: "https://a.test/three#top", Wall: wall.Add(20*time.Second + 20*time.Millisecond)}, {URL: "https://a.test/", Wall: wall.Add(30 * time.Second)},
	}
	return New(list, nil, pages, CreateOptions{Wall: wall})
}

func orders(a *Archive) (list []int) {
	for _, e := range a.Exchanges() {
		list = append(list, e.Order)
	}
	return list
}

func TestChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change Change
		want   []int
		pages  int
		says   string
	}{
		{"leave out", Change{LeaveOut: []string{"*://ads.test/*"}}, []int{0, 1, 2, 3, 5, 6, 7}, 4, ""},
		{"keep", Change{Keep: []string{".js"}}, []int{1, 6}, 4, ""},
		{"a page that is redirected", Change{Pages: []string{"https://a.test/two"}}, []int{2, 3, 4}, 1, ""},
		{"a page whose document came first", Change{Pages: []string{"https://a.test/three#top"}}, []int{5, 6}, 1, ""},
		{"a page that was opened twice", Change{Pages: []string{"https://a.test/"}}, []int{0, 1, 7, 8}, 2, ""},
		{"both", Change{Pages: []string{"https://a.test/"}, LeaveOut: []string{"ads"}}, []int{0, 1, 7}, 2, ""},
		{"until", Change{Until: 15 * time.Second}, []int{0, 1, 2, 3, 4}, 4, ""},
		{"no such page", Change{Pages: []string{"https://a.test/four"}}, nil, 0, "has no page https://a.test/four"},
		{"nothing left", Change{Keep: []string{"nothing"}}, nil, 0, "nothing would be left"},
		{"no change", Change{LeaveOut: []string{"nothing"}}, nil, 0, ErrNoChange.Error()},
		{"an answer that is not there", Change{Answers: []AnswerChange{{"nothing", Edit{Status: 404}}}}, nil, 0, `matches "nothing"`},
		{"a bad edit", Change{Answers: []AnswerChange{{"a.js", Edit{Status: 99}}}}, nil, 0, "not a final status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := threePages()
			got, left, _, err := a.Changed(c.change)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("Changed() = %v; want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o := orders(got); !slices.Equal(o, c.want) || left != 9-len(o) || len(got.Pages()) != c.pages {
				t.Errorf("Changed() kept %v, left %d out, with %d pages; want %v and %d", o, left, len(got.Pages()), c.want, c.pages)
			}
		})
	}
}

// Answers change in what is made, and not in what it was made of.
func TestChangedAnswers(t *testing.T) {
	a := threePages()
	got, left, edited, err := a.Changed(Change{Answers: []AnswerChange{
		{"*.js", Edit{FirstByte: 2 * time.Second}}, {"*/c.js", Edit{Status: 503}},
	}})
	if err != nil || left != 0 || edited != 2 {
		t.Fatalf("Changed() left %d out and edited %d, %v; want 0 and 2", left, edited, err)
	}
	e := got.Exchanges()[6]
	if e.Status != 503 || e.FirstByte != 2*time.Second || e.Chunks[0].At != 2010*time.Millisecond || a.Exchanges()[6].Status != 200 {
		t.Errorf("the answer is %+v; want 503 after 2 s, and the first recording as it was", e)
	}
	path := filepath.Join(t.TempDir(), "a.wacz")
	if err := Save(path, got); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := again.Find("*/c.js"); err != nil || e.Status != 503 || len(again.Pages()) != 4 {
		t.Errorf("read again: %+v, %d pages, %v; want 503 and four pages", e, len(again.Pages()), err)
	}
	if _, _, _, err := a.Changed(Change{}); !errors.Is(err, ErrNoChange) {
		t.Errorf("Changed(nothing) = %v; want ErrNoChange", err)
	}
}

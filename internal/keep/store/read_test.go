package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

func TestDecodeRunRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":         {"{\n\"id\":\n!", "line 3"},
		"wrong type":       {"{\n\"id\": 7}", "line 2"},
		"no ID":            {`{"state":"done"}`, "is not a run ID"},
		"no state":         {`{"id":"a"}`, "is not running"},
		"null trial":       {`{"id":"a","state":"done","trials":[null]}`, "trials[0]: null"},
		"trial 0":          {`{"id":"a","state":"done","trials":[{}]}`, "trials[0].number: 0"},
		"trial twice":      {`{"id":"a","state":"done","trials":[{"number":1},{"number":1}]}`, "a duplicate"},
		"file that leaves": {`{"id":"a","state":"done","trials":[{"number":1,"files":{"video":"../../x"}}]}`, "leaves the trial's folder"},
		"absolute file":    {`{"id":"a","state":"done","trials":[{"number":1,"files":{"video":"/etc/passwd"}}]}`, "leaves the trial's folder"},
		"null span":        {`{"id":"a","state":"done","trials":[{"number":1,"spans":[{"children":[null]}]}]}`, "spans: null"},
		"deep":             {strings.Repeat("[", 65), "nested deeper"},
		"many objects":     {"[" + strings.Repeat("{},", maxObjects) + "{}]", "more than 400000 objects"},
		"many values":      {"[" + strings.Repeat("0,", maxValues+1) + "0]", "more than 6000000 values"},
		"large":            {strings.Repeat(" ", MaxRunBytes+1), "larger than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if run, err := DecodeRun(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("DecodeRun() = %v, %v; want error %q", run, err, c.want)
			}
		})
	}
}

func TestDecodeServed(t *testing.T) {
	const line = `{"method":"GET","url":"https://a/","stage":"exact","score":1}` + "\n"
	for name, c := range map[string]struct {
		text        string
		lines, more int
		cut         bool
		err         string
	}{
		"whole":           {line + line, 2, 0, false, ""},
		"no last newline": {line + strings.TrimSuffix(line, "\n"), 2, 0, false, ""},
		"empty lines":     {"\n" + line + "\n\n", 1, 0, false, ""},
		"cut off":         {line + `{"meth`, 1, 0, true, ""},
		"beyond limit":    {strings.Repeat(line, 7), 5, 2, false, ""},
		"damaged":         {line + "!\n" + line, 1, 0, false, "line 2"},
		"long line":       {line + `{"url":"` + strings.Repeat("x", MaxLineBytes) + `"}` + "\n", 1, 0, false, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeServed(strings.NewReader(c.text), 5)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("DecodeServed() error = %v; want %q", err, c.err)
			}
			if len(got.Lines) != c.lines || got.More != c.more || got.Cut != c.cut {
				t.Errorf(
					"DecodeServed() = %d lines, %d more, cut %v; want %d, %d, %v",
					len(got.Lines),
					got.More,
					got.Cut,
					c.lines,
					c.more,
					c.cut,
				)
			}
		})
	}
}

// Whatever DecodeRun accepts can be written and read again as the same run.
func FuzzDecodeRun(f *testing.F) {
	good, err := json.Marshal(sample("a", StateDone))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(good), `{"id":"a","state":"running"}`,
		`{"id":"a","state":"done","trials":[{"number":3,"spans":[{"children":[{}]}],"files":{"reel":"a/b"}}]}`,
		`{"id":"a","state":"done","plan":{"arms":[{"name":"control","link":[1]},3],"live":"x"},"environment":{"browser":{"a":{"b":[{"c":1}]}}},"summary":[{"arm":"control","n":1}]}`, `[[[["\"[{`, "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		run, err := DecodeRun(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		second, err := DecodeRun(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("DecodeRun() of a run that was accepted before: %v: %s", err, again)
		}
		third, err := json.Marshal(second)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(again), string(third)); diff != "" {
			t.Error(diff)
		}
		// What the index keeps of it is short.
		if _, p := pastOf(run, false); len(p.Facts) > maxFacts || len(p.Summary) > 64 {
			t.Errorf("%d facts, %d summaries", len(p.Facts), len(p.Summary))
		} else if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecodeServed(f *testing.F) {
	for _, seed := range []string{`{"method":"GET","url":"https://a/","differs":["x"]}` + "\n", "{}\n{", "\n\n", `{"score":1e400}`, "null\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		got, err := DecodeServed(bytes.NewReader(b), 3)
		if got == nil || len(got.Lines) > 3 || err != nil && got.Cut {
			t.Errorf("DecodeServed() = %v, %v; want at most 3 lines, and no error of a cut line", got, err)
		}
	})
}

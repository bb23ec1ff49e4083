package archive

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"
)

// TestHARForms: what exporters write instead of HAR 1.2 is read, or costs its entry and is told.
func TestHARForms(t *testing.T) {
	entry := func(old, other string) string {
		text := fmt.Sprintf(oddEntry, "odd", `{"size":3,"mimeType":"text/javascript","text":"ab>"}`)
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the entry", old)
		}
		return strings.Replace(text, old, other, 1)
	}
	const headers, content = `[{"name":"Content-Type","value":"text/javascript"}]`, `"text":"ab>"`
	for name, one := range map[string]struct{ entry, told string }{
		"fields in an object":        {entry(headers, `{"Content-Type":["text/javascript"]}`), ""},
		"fields as pairs":            {entry(headers, `[["Content-Type","text/javascript"],null]`), ""},
		"fields as lines":            {entry(headers, `["Content-Type: text/javascript"]`), ""},
		"fields as a text":           {entry(headers, `"Content-Type: text/javascript\r\nX-A: 1"`), ""},
		"fields with keys":           {entry(headers, `[{"key":"Content-Type","value":"text/javascript"}]`), ""},
		"a field that is no pair":    {entry(headers, `[{"name":"Content-Type","value":"text/javascript"},7]`), "header fields that cannot be read"},
		"cookies as texts":           {entry(`"status":200,`, `"status":200,"cookies":["a=1"],`), ""},
		"a status in words":          {entry(`"status":200,`, `"status":"200 OK",`), ""},
		"a method in lower case":     {entry(`"GET"`, `" get"`), ""},
		"blanks around the address":  {entry(`"http://h.test/odd"`, `" http://h.test/odd\n"`), ""},
		"no number":                  {entry(`"time":1`, `"time":NaN,"_x":[-Infinity,undefined,]`), ""},
		"a line end in a text":       {entry(`"status":200`, "\"statusText\":\"a\n\\x\",\"status\":200"), ""},
		"a text that is an object":   {entry(`"headers":[]`, `"headers":[],"postData":{"text":{"a":1}}`), ""},
		"an encoding that is none":   {entry(content, content+`,"encoding":"utf-8"`), ""},
		"base64 in capitals":         {entry(content, `"text":"YWI-","encoding":"BASE64"`), ""},
		"base64 in a data URL":       {entry(content, `"text":"data:a/b;base64,YW I+\r\n","encoding":"base64"`), ""},
		"a date that cannot be read": {entry("2026-05-01T12:00:00Z", "1/5/26"), "a date that cannot be read"},
	} {
		a := oddHAR(t, fmt.Sprintf(oddEntry, "before", `{}`), one.entry, fmt.Sprintf(oddEntry, "after", `{}`))
		e, told := byURL(a)["http://h.test/odd"], strings.Join(a.Warnings(), "\n")
		if e == nil || string(e.Response.Body) != "ab>" || e.Method != "GET" || e.Status != 200 || e.Response.Get("Content-Type") != "text/javascript" ||
			len(a.Exchanges()) != 3 || a.Lost() != 0 || (one.told == "") != (told == "") || !strings.Contains(told, one.told) {
			t.Errorf("%s: read %+v of %d exchanges, told %q; want the entry whole, and told %q", name, e, len(a.Exchanges()), told, one.told)
		}
		if e != nil && !e.Wall.Equal(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: its time is %v; want the entry's, or that of the entry before it", name, e.Wall)
		}
	}
	a := oddHAR(t, entry(`"status":200`, `"status":2 00`), fmt.Sprintf(oddEntry, "after", `{}`))
	if len(a.Exchanges()) != 1 || a.Lost() != 1 || !strings.Contains(fmt.Sprint(a.Warnings()), "entry 0") {
		t.Errorf("an entry that is no JSON: %d exchanges, %d lost, told %q; want it left out and named", len(a.Exchanges()), a.Lost(), a.Warnings())
	}
}

// TestHARFiles: the file around the entries is odd.
func TestHARFiles(t *testing.T) {
	one := fmt.Sprintf(oddEntry, "one", `{"text":"ż"}`)
	log := `{"pages":["x",{"id":1}],"creator":{"name":5},"entries":[` + one + `,]}`
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(`{"log":` + log + `}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"odd parts": `{"log":` + log + `}`, "a log alone": log, "UTF-16": wide, "a mark and line ends": "\xef\xbb\xbf\r\n\r\n\r\n" + log,
	} {
		e := byURL(openOdd(t, text))["http://h.test/one"]
		if e == nil || string(e.Response.Body) != "ż" {
			t.Errorf("%s: read %+v; want the entry", name, e)
		}
	}
}

func TestHARTimes(t *testing.T) {
	want := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"2026-03-01T10:00:00Z", "2026-03-01T15:30:00+0530", "2026-03-01 10:00:00", "2026-03-01 11:00:00.000 +0100", "2026-03-01T10:00:00,000Z",
		"Sun Mar 01 2026 11:00:00 GMT+0100 (CET)", "Sun, 01 Mar 2026 10:00:00 GMT", "/Date(1772359200000+0100)/", "1772359200", "1772359200000", " 1772359200.0 ",
	} {
		if got := harTime(text); !got.Equal(want) {
			t.Errorf("harTime(%q) = %v, want %v", text, got, want)
		}
	}
	if texts := []string{"", "soon", "01/02/2026", "/Date()/", "NaN"}; slices.ContainsFunc(texts, func(text string) bool { return !harTime(text).IsZero() }) {
		t.Error("a text that is no date has a time")
	}
}

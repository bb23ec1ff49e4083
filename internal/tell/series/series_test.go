package series

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// file is a CSV file whose numbers step up by 30 at the 31st and down again at the 61st.
func file(shuffled bool) string {
	r := rand.New(rand.NewPCG(7, 7))
	var rows []string
	for i := range 90 {
		v := 500 + 10*r.NormFloat64()
		if i >= 30 && i < 60 {
			v += 30
		}
		rows = append(rows, fmt.Sprintf("2026-%02d-%02d,c%d,%.1f", 1+i/28, 1+i%28, i, v))
	}
	if shuffled {
		r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	}
	return "date,commit,ms\n" + strings.Join(rows, "\n") + "\n"
}

func TestFind(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		table, err := Read("f", strings.NewReader(file(shuffled)), "", "date", 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Find(table, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Points) != 2 || r.Column != "ms" || r.Values != 90 {
			t.Fatalf("%+v; want two points in ms", r)
		}
		for i, want := range []struct {
			value int
			size  float64
			time  string
		}{{31, 30, "2026-02-03"}, {61, -30, "2026-03-05"}} {
			p := r.Points[i]
			if p.Value != want.value || p.Time != want.time || p.Change.Low > want.size || p.Change.High < want.size || p.Confidence < 0.975 {
				t.Errorf("point %+v; want %+v", p, want)
			}
			if !shuffled && p.Line != want.value+1 {
				t.Errorf("line %d; want %d", p.Line, want.value+1)
			}
		}
		for _, w := range []struct {
			direction string
			recent    int
			want      bool
		}{{Up, 0, true}, {Down, 0, true}, {Up, 30, false}, {Down, 30, true}, {Either, 29, false}} {
			if got := r.Worse(w.direction, w.recent); got != w.want {
				t.Errorf("Worse(%s, %d) = %v; want %v", w.direction, w.recent, got, w.want)
			}
		}
	}
}

func TestRead(t *testing.T) {
	table, err := Read("f", strings.NewReader("\xef\xbb\xbfwhen, a ,b\n3,1,x\n1,NA,y\n2,2.5e3,z\n10,,z\n"), "#2", "when", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 || table.Missing != 2 || table.Rows[0].Value != 2500 || table.Rows[0].Line != 4 || table.Rows[1].Value != 1 {
		t.Errorf("%+v", table)
	}
	if table, err = Read("f", strings.NewReader("a\n1\n2\n3\n4\n"), "", "", 2); err != nil || len(table.Rows) != 2 || table.Rows[0].Value != 3 {
		t.Errorf("the newest two: %+v, %v", table, err)
	}
}

// TestMissing: what spreadsheets, databases and programs write where there is no number.
func TestMissing(t *testing.T) {
	for _, cell := range []string{
		"", "#N/A", "#DIV/0!", "#NAME?", "#NV", "#ÜBERLAUF!", "<NA>", `\N`, "(null)", "nil", "--", "—", "n.a.", ".", "?",
	} {
		table, err := Read("f", strings.NewReader("v\tw\n1\tx\n"+cell+"\ty\n2\tz\n"), "", "", 0)
		if err != nil || table.Column != "v" || table.Missing != 1 || len(table.Rows) != 2 {
			t.Errorf("%q: %+v, %v; want two values and one that is missing", cell, table, err)
		}
	}
	for _, cell := range []string{"#1a", "#", "#5", "# 5", "-Inf", "5 5"} {
		if _, err := Read("f", strings.NewReader("v\tw\n1\tx\n"+cell+"\ty\n"), "v", "", 0); err == nil {
			t.Errorf("%q is taken for a number or for none", cell)
		}
	}
}

// TestNewestFirst: rows of one day keep the order that the file has of days.
func TestNewestFirst(t *testing.T) {
	for _, text := range []string{"t,v\n2,4\n2,3\n1,2\n1,1\n", "t,v\n1,1\n1,2\n2,3\n2,4\n"} {
		table, err := Read("f", strings.NewReader(text), "v", "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range table.Rows {
			if row.Value != float64(i+1) {
				t.Errorf("%q: value %d is %v; want %d", text, i+1, row.Value, i+1)
			}
		}
	}
}

// TestGroupsOfThousands: what sets thousands apart in spreadsheets of other countries is no part of the number.
func TestGroupsOfThousands(t *testing.T) {
	for text, want := range map[string]float64{
		"t;v\n1;1 101,5\n": 1101.5, "t;v\n1;12\u202f345\u202f678\n": 12345678, "t|v\n1|1'101.5\n": 1101.5, "t,v\n1,-1 101\n": -1101,
	} {
		table, err := Read("f", strings.NewReader(text), "v", "t", 0)
		if err != nil || len(table.Rows) != 1 || table.Rows[0].Value != want {
			t.Errorf("%q: %+v, %v; want %v", text, table, err, want)
		}
	}
	for text, want := range map[string][2]float64{ // a column's own sign
		"t;v\n1;7,5\n2;1.234\n": {7.5, 1234}, "t;v\n1;2.155\n2;-1.234 ms\n": {},
		"t;v\n1;1.234,25\n2;999.000\n": {1234.25, 999000}, "t,v\n1,\"7,5\"\n2,\"1,234\"\n": {7.5, 1.234},
		"t,v\n1,\"1,234.567\"\n2,\"1,234\"\n": {1234.567, 1234}, "t\tv\n1\t7.25\n2\t12,34,567\n": {7.25, 1234567},
		"t;v\n1;7.5\n2;1.234\n": {7.5, 1.234}, "t;v\n1;7.5\n2;7,25\n": {7.5, 7.25},
	} {
		table, err := Read("f", strings.NewReader(text), "", "t", 0)
		if want[0] == 0 {
			if err == nil {
				t.Errorf("%q: two units are read", text)
			}
		} else if err != nil || len(table.Rows) != 2 || table.Rows[0].Value != want[0] || table.Rows[1].Value != want[1] {
			t.Errorf("%q: %+v, %v; want %v", text, table, err, want)
		}
	}
	for text, want := range map[string][2]float64{ // that of the columns beside it
		"t;v;n\n1;2.155;19,47\n2;3.400;7,5\n": {2155, 3400}, "t;v;n\n1;2.155;19,47\n2;3.400;7.5\n": {2.155, 3.4},
		"t;v;n\n1;0.155;19,47\n2;3.400;7,5\n": {0.155, 3.4}, "t;v;n\n1;2.155;1.102.345\n2;3.400;1.103.346\n": {2.155, 3.4},
		"t,v,n\n1,\"2,155\",19.47\n2,\"3,400\",x\n": {2155, 3400},
	} {
		table, err := Read("f", strings.NewReader(text), "v", "t", 0)
		if err != nil || len(table.Rows) != 2 || table.Rows[0].Value != want[0] || table.Rows[1].Value != want[1] {
			t.Errorf("%q: %+v, %v; want %v", text, table, err, want)
		}
	}
	if _, err := Read("f", strings.NewReader("t;v\n1;1 2\n"), "v", "t", 0); err == nil {
		t.Error("1 2 is a number")
	}
}

// endless is a file without an end.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

func TestHostileFiles(t *testing.T) {
	many := "a\n" + strings.Repeat("1\n", MaxRows+1)
	for _, tt := range []struct{ name, text, column, times, want string }{
		{"empty", "", "", "", "f:1: the file is empty"},
		{"no header", "1,2\n3,4\n", "", "", "f:1: the first row is numbers"},
		{"no column", "a,b\n1,2\n", "c", "", `f:1: --column "c": there is no such column; there are: "a" (#1), "b" (#2)`},
		{"which column", "a,b\n1,2\n", "", "", "2 columns have numbers only: choose with --column"},
		{"no header, and texts", "7.5,3,cycles\n7.6,4,cycles\n", "", "", "a header with the columns' names is missing"},
		{"no numbers", "a,b\nx,y\n", "", "", "0 columns have numbers only"},
		{"one odd cell", "a,b,c\nx,1,y\nx,inf,y\nx,3,2\n", "", "", `line 3: column "b": "inf" is not a number`},
		{"not a number", "a,b\n1,2\nzwei,3\n", "a", "", `f:3: column "a": "zwei" is not a number`},
		{"no header beside times", "2026-01-01,2\n2026-01-02,4\n", "", "", "f:1: the first row is numbers"},
		{"two units", "a\n1 ms\n1 s\n", "", "", `f:3: column "a": "1 s" is in another unit than the values before, "ms"`},
		{"thousands or not", "a,b\n\"1,234\",x\n", "a", "", `"1,234" may mean two numbers`},
		{"infinite", "a\n1\nInf\n", "a", "", `f:3: column "a": "Inf" is not a number`},
		{"nothing but odd cells", "d,n,a\n2026-01-01,c1,\"1,101\"\n2026-01-02,c2,\"1,102\"\n", "", "d", `line 2: column "a": "1,101" may mean two numbers`},
		{"no word, and odd cells", "d,a\n2026-01-01,\"1,101\"\n", "", "", `line 2: column "a": "1,101" may mean two numbers`},
		{"dates and numbers", "a,t\n1,2026-01-01\n2,1770200000\n", "a", "t", `f:3: column "t": "1770200000" is in another form than "2026-01-01" in line 2`},
		{"numbers and dates", "a,t\n1,@17\n2,\n3,3/4/2026\n", "a", "t", `f:4: column "t": "3/4/2026" is in another form than "@17" in line 2`},
		{"not a time", "a,t\n1,2026-01-01\n2,soon\n", "a", "t", `f:3: column "t": "soon" is not a time`},
		{"a decimal comma", "a,b\n1,2\n1,5,2\n", "a", "", "f:3: 3 cells, and the header has 2: put what has a ',' in it in quotes"},
		{"cut off", "a,b\n1,2\n1", "a", "", "f:3: 1 cells, and the header has 2, and no line end behind them"},
		{"a hole between blanks", "a   b\n1   2\n1\n", "a", "", "f:3: 1 cells, and the header has 2: separate the columns by commas or tabs"},
		{"day or month", "a,t\n1,3/4/2026\n2,2/5/2026\n", "a", "t", `f:2: column "t": in "3/4/2026" the day may be any of its numbers`},
		{"day and month", "a,t\n1,3/14/2026\n2,14/3/2026\n", "a", "t", `f:3: column "t": "14/3/2026" has its day and month elsewhere`},
		{"two digits", "a,t\n1,11/12/10\n2,10/12/11\n", "a", "t", `f:2: column "t": in "11/12/10" the day may be any of its numbers`},
		{"no day", "a,t\n1,13/32/2026\n", "a", "t", `f:2: column "t": "13/32/2026" is not a time`},
		{"quote", "a,b\n\"1,2\n", "a", "", "f:2: "},
		{"columns", strings.Repeat("a,", maxColumns) + "b\n", "a", "", "at most 1000 are possible"},
		{"rows", many, "a", "", "--last 10000 takes the newest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read("f", strings.NewReader(tt.text), tt.column, tt.times, 0)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v; want one with %q", err, tt.want)
			}
		})
	}
	for name, e := range map[string]endless{"rows": {"a\n"}, "a field": {"aaaaaaaaaaaaaaaa"}, "a quoted field": {"\"aaaaaaaaaaa\n"}} {
		if _, err := Read("f", e, "a", "", 0); err == nil {
			t.Errorf("an endless file of %s was read", name)
		}
	}
}

// TestFilesOfTheWorld: one series as git, spreadsheets and benchmarks write it.
func TestFilesOfTheWorld(t *testing.T) {
	for name, text := range map[string]string{
		"git":         "t,v\n2026-02-03 9:01:02 +0200,7.5\n2026-02-04 9:01:02 +0200,1234.25\n",
		"git's own":   "t,v\nTue Feb 3 09:01:02 2026 +0200,7.5\nWed Feb 4 09:01:02 2026 +0200,1234.25\n",
		"mail":        "t,v\n\"Tue, 03 Feb 2026 09:01:02 GMT\",7.5\n\"Wed, 04 Feb 2026 09:01:02 GMT\",1234.25\n",
		"dots":        "t,v\n2026.02.03 9:01:02 -0100,7.5\n2026.02.04,1234.25\n",
		"slashes":     "t,v\n2026/02/03 09:01,7.5\n2026/02/04 09:01,1234.25\n",
		"no colon":    "t,v\n2026-02-03T09:01:02.5+0530,7.5\n2026-02-04T09:01:02+0530,1234.25\n",
		"UTC":         "t,v\n2026-02-03 09:01:02 UTC,7.5\n2026-02-04 09:01:02 UTC,1234.25\n",
		"spreadsheet": "\ufefft;v\r\n2026-02-04;1.234,25\r\n2026-02-03;7,5\r\n",
		"semicolons":  "t;v\n2026-02-04;1234.25\n2026-02-03;7.5\n",
		"day first":   "t;v\n4.2.2026;1234,25\n03.02.2026 09:01;7,5\n",
		"Excel's own": "sep=;\r\nt;v\r\n04.02.2026;1234,25\r\n03.02.2026;7,5\r\n",
		"UTF-16":      "\xff\xfet\x00\t\x00v\x00\n\x001\x00\t\x007\x00,\x005\x00\n\x002\x00\t\x001\x002\x003\x004\x00,\x002\x005\x00",
		"PostgreSQL":  "t,v\n2026-02-03 23:30:00.123456+05,1234.25\n2026-02-03 18:15:00+00,7.5\n",
		"JavaScript": "t,v\nTue Feb 03 2026 09:01:02 GMT+0100 (Central European Standard Time),7.5\n" +
			"Tue Feb 03 2026 09:01:02 GMT+0000 (Coordinated Universal Time),1234.25\n",
		"Java":                   "t,v\n2026-02-03T09:01:02+01:00[Europe/Berlin],7.5\n2026-02-03T09:01:02Z[UTC],1234.25\n",
		"Go":                     "t,v\n2026-02-03 09:01:02.5 +0100 CET m=+0.1,7.5\n2026-02-03 09:01:02 +0000 UTC,1234.25\n",
		"a web server's log":     "t,v\n[03/Feb/2026:09:01:02 +0100],7.5\n03/Feb/2026:09:01:02 +0000,1234.25\n",
		"before and after noon":  "t,v\n\"Feb 3, 2026, 11:01\u202fAM\",7.5\n\"February 3, 2026, 1:00:02 PM\",1234.25\n",
		"US":                     "t,v\n3/14/2026 9:01 PM,1234.25\n3/2/2026 09:01:02 am,7.5\n",
		"UK":                     "t,v\n\"14/03/2026, 09:01\",1234.25\n02/04/2025 10:00,7.5\n",
		"dashes":                 "t,v\n14-03-2026,1234.25\n02-04-2025,7.5\n",
		"short years":            "t,v\n3/14/26,1234.25\n12/2/25,7.5\n",
		"either order":           "t,v\n2/2/2026,1234.25\n1/1/2026,7.5\n",
		"empty cells left out":   "t,v,n\n1,7.5\n2,1234.25,x\n3\n",
		"Markdown":               "| t | v |\n|---|--:|\n| 1 | 7.5 |\n| 2 | 1234.25 |\n",
		"a rule of a client's":   "t   v\n--- -------\n1   7.5\n2   1234.25\n",
		"a header again":         "t,v\n1,7.5\nt,v\n2,1234.25\n",
		"months":                 "t,v\n2026-02,1234.25\n2025-12,7.5\n",
		"weeks":                  "t,v\n2026-W01,1234.25\n2025-W52,7.5\n",
		"basic":                  "t,v\n20260204T090102Z,1234.25\n20260203T090102Z,7.5\n",
		"names":                  "t,v\n\"Feb 4, 2026\",1234.25\n3 Feb 2026,7.5\n",
		"seconds":                "t,v\n@1770200000,1234.25\n@1770100000,7.5\n",
		"UTF-16, no mark":        "t\x00;\x00v\x00\n\x001\x00;\x007\x00,\x005\x00\n\x002\x00;\x001\x002\x003\x004\x00,\x002\x005\x00",
		"UTF-16BE, no mark":      "\x00t\x00;\x00v\x00\n\x001\x00;\x007\x00,\x005\x00\n\x002\x00;\x001\x002\x003\x004\x00,\x002\x005",
		"Macintosh":              "t,v\r1,7.5\r2,1234.25\r",
		"in quotes":              "t,v\n1,\"7,5\"\n2,\"1234,25\"\n",
		"US in quotes":           "t,v\n1,\"7.5\"\n2,\"1,234.25\"\n",
		"SQL":                    "t;v\n'1';'7.5'\n'2';'1234.25'\n",
		"units":                  "t,v\n1,7.5 ms\n2,1234.25 ms\n",
		"per cent":               "t;v\n1;7,5%\n2;1.234,25%\n",
		"Arabic":                 "t;v\n1;٧٫٥\n2;١٬٢٣٤٫٢٥\n",
		"comments":               "# of a tool\n# for a person, and more\nt,v\n1,7.5\n2,1234.25\n",
		"a header as comment":    "# of a tool\n#n,v,t\n1,7.5,1\n2,1234.25,2\n",
		"a separator at the end": "t,v\n1,7.5,\n2,1234.25, ,\n",
		"columns of blanks":      "t   v\n1   7.5\n2  1234.25  \n",
		"a comma in the header":  "\"n, and more\";\"t\";\"v\"\n0;1;7,5\n0;2;1234,25\n",
		"blanks in the header":   "t ; v ;n\n1;7,5;x\n2;1234,25;x\n",
		"Windows-1252":           "t;gr\xf6\xdfe;v\n1;\x80;\xa07,5\n2;x;1\xa0234,25\n",
		"marks not seen":         "\u200et,\ufeffv\n\u200e2026-02-03\u200e,\u200b7.5\n\u200e2/4/2026,1234.25\u202c\n",
		"Excel's months":         "t,v\n3-Feb-26,7.5\n04-FEB-26 09:01:02,1234.25\n",
		"money":                  "t;v\n1;7,5 €\n2;1234,25 €\n",
		"money before":           "t,v\n1,$7.50\n2,\"$1,234.25\"\n",
		"two signs of micro":     "t,v\n1,7.5 \u00b5s\n2,1234.25 \u03bcs\n",
		"one bad byte":           "t,v,größe\n1,7.5,ä\xff\n2,1234.25,\n",
		"tabs, empty cells":      "n\tt\tnote\tv\n\t2026-02-03\t\t7.5\n\t2026-02-04\t\t1234.25\n",
		"tabs":                   "t\tv\tnote\n2026-02-03\t7,5\ta, b\n2026-02-04\t1234,25\tc\n",
	} {
		table, err := Read("f", strings.NewReader(text), "v", "t", 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(table.Rows) != 2 || table.Rows[0].Value != 7.5 || table.Rows[1].Value != 1234.25 {
			t.Errorf("%s: read %+v, want 7.5 and 1234.25", name, table.Rows)
		}
	}
	for text, want := range map[string]string{
		"v;w\n1.2,3,4;0\n":           `f:2: column "v": "1.2,3,4" may mean two numbers`,
		"v\tw\n1,234\t0\n":           `f:2: column "v": "1,234" may mean two numbers`,
		"v;w\n950;x\n1.050;y\n":      `f:3: column "v": "1.050" may mean two numbers`,
		"{\"v\":1}\n{\"v\":2}\n":     "f:1: this is JSON, and a CSV file is needed: make one, such as with jq -r '[.date",
		"\n[{\"v\":1}]":              "f:1: this is JSON, and a CSV file is needed: make one, such as with jq -r '.[] |",
		"window.BENCHMARK_DATA = {":  "f:1: this is the data of github-action-benchmark",
		"PK\x03\x04\x14\x00":         "f:1: this is a workbook",
		"\x1f\x8b\x08\x00":           "f:1: this is compressed by gzip",
		"goos: linux\nB 1 2 ns/op\n": "f:1: this is what go test -bench prints",
		"v,w\n1,3.5\" disk\n":        "f:2: bare \" in non-quoted-field: a cell with quotes in it stands in quotes",
		"<!DOCTYPE HTML>\n":          "f:1: this is a page in HTML",
		"v,w,v\n1,2,3\n":             `f:1: --column "v": several columns have this name: choose by number; there are: "v" (#1)`,
	} {
		if _, err := Read("f", strings.NewReader(text), "v", "", 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want one with %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(false), "ms", "date", 5)
	f.Add("a;b\n1;2", "", "", 0)
	f.Add("a\n\"x\n", "#1", "#1", -1)
	f.Add("a,b,c\n3/4/2026,1\n14-3-26 3:04 pm,2,x\n", "b", "a", 0)
	f.Fuzz(func(t *testing.T, text, column, times string, last int) {
		defer testlab.Input(t)()
		table, err := Read("f", strings.NewReader(text), column, times, last)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("the error %q does not name the file", err)
			}
			return
		}
		if len(table.Rows) > MaxRows {
			t.Errorf("%d rows", len(table.Rows))
		}
		if len(table.Rows) > 60 {
			return // change points of many take long
		}
		if _, err := Find(table, Options{}); err != nil && len(table.Rows) > 1 {
			t.Error(err)
		}
	})
}

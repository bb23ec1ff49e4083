package inject

import (
	"bytes"
	"encoding/base64"
	stdhtml "html"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"eidetic/internal/rigs/testlab"
)

// tokens are what a tokeniser that is not ours reads: the start tags with
// their attributes, and everything else as it stands.
func tokens(text []byte) (list []html.Token) {
	for z := html.NewTokenizer(bytes.NewReader(text)); z.Next() != html.ErrorToken; {
		list = append(list, z.Token())
	}
	return list
}

func TestFramesInMarkup(t *testing.T) {
	script := "<script>" + testScript.Text() + "</script>"
	plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
	for _, tt := range []struct{ name, in, want string }{
		{"double quotes", `<iframe srcdoc="<p>x">`, script + "<p>x"},
		{"single quotes", `<iframe srcdoc='<p class="a">x'>`, script + `<p class="a">x`},
		{"no quotes", `<iframe srcdoc=<p>x`, script + "<p"},
		{"a quote without quotes", `<iframe srcdoc=a"b'c>`, script + `a"b'c`},
		{"references", `<iframe srcdoc="&lt;!doctype html&gt;&#60;html lang=&quot;en&quot;>&LT;head&GT;&copy;">`, `<!doctype html><html lang="en"><head>` + script + "©"},
		{"upper case, among others", `<IFRAME sandbox="allow-scripts" SrcDoc = "x" srcdoc=y>`, script + "x"},
		{"no scripts allowed", `<iframe sandbox srcdoc="x">`, "x"},
		{"empty", `<iframe srcdoc>`, ""},
		{"behind a comment", `<!-- <iframe srcdoc="a"> --><iframe srcdoc="b">`, script + "b"},
		{"behind a script", `<script>"<iframe srcdoc='a'>"</script><iframe srcdoc="b">`, script + "b"},
		{"behind a hidden end", `<script><!-- <script>"</script><iframe srcdoc='a'>" --></script><iframe srcdoc="b">`, script + "b"},
		{"behind a greater-than in a value", `<p title="a > b"><iframe srcdoc="b">`, script + "b"},
		{"behind text that is no tag", `a < b <1 </ x><iframe srcdoc="b">`, script + "b"},
		{"behind a text area", `<textarea><iframe srcdoc="a"></textarea ><iframe srcdoc="b">`, script + "b"},
		{"in a frame's own text", `<iframe src=x><iframe srcdoc="a"></iframe><iframe srcdoc="b">`, script + "b"},
	} {
		for _, n := range []int{1, 3, 1000} {
			out, _ := change(t, plan, []byte("<!doctype html><title>x</title>"+tt.in), n)
			got, found := "", false
			for _, token := range tokens(out) {
				for _, a := range token.Attr {
					if token.Data == "iframe" && a.Key == "srcdoc" && !found {
						got, found = a.Val, true
					}
				}
			}
			if !found || got != tt.want {
				t.Errorf("%s, in pieces of %d: the frame's document is %.60q … %.30q", tt.name, n, got, got[max(0, len(got)-30):])
			}
		}
	}
}

func TestPolicyInMarkup(t *testing.T) {
	plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
	for in, want := range map[string]string{
		`<meta http-equiv="Content-Security-Policy" content="script-src 'self'">`:         "script-src 'self' " + testScript.hash,
		`<META content="script-src &#39;none&#39;" HTTP-EQUIV=content-security-policy />`: "script-src " + testScript.hash,
		`<meta http-equiv=Content-Security-Policy content='connect-src b.example'>`:       "connect-src b.example https://a.example" + BoxPath,
		`<meta http-equiv=Content-Security-Policy content=img-src>`:                       "img-src",
		`<meta name=description content="script-src 'self'">`:                             "script-src 'self'",
	} {
		out, _ := change(t, plan, []byte("<!doctype html><head>"+in+"</head>"), 5)
		for _, token := range tokens(out) {
			for _, a := range token.Attr {
				if a.Key == "content" && strings.TrimSpace(a.Val) != want {
					t.Errorf("%s: the policy is %q, want %q", in, a.Val, want)
				}
			}
		}
	}
}

// TestMarkupIsHeldBackOnlyForFrames: a browser has all that it could use of
// what it was sent.
func TestMarkupIsHeldBackOnlyForFrames(t *testing.T) {
	m := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader()).newMarkup()
	for _, piece := range []struct{ in, out string }{
		{"<p title='", "<p title='"}, {"a<iframe ", "a<iframe "}, {"'>text<", "'>text"}, {"!-", "<!-"}, {"- <ifr", "- <ifr"}, {"--><i", "-->"},
		{"mg src=x", "<img src=x"}, {">x<ifr", ">x"}, {"ame src=x", ""}, {">y", "<iframe src=x>y"}, {"</iframe", "</iframe"},
	} {
		if got := string(m.feed([]byte(piece.in), false)); got != piece.out {
			t.Errorf("%q gives %q, want %q", piece.in, got, piece.out)
		}
	}
	long := []byte("><iframe srcdoc=\"" + strings.Repeat("x", maxTag))
	if got := m.feed(long, false); !bytes.Equal(got, long) || len(m.held) > 0 {
		t.Errorf("a tag of %d bytes is held back", len(long))
	}
	if got := m.feed([]byte(`"></iframe><iframe srcdoc=x>`), true); !bytes.Contains(got, []byte(escapeAttribute(element)+"x")) {
		t.Errorf("behind a long one, %q", got)
	}
}

// sameButFrames compares what another tokeniser reads before and after.
func sameButFrames(t interface {
	Helper()
	Fatalf(string, ...any)
}, before, after []byte) {
	t.Helper()
	a, b := tokens(before), tokens(after)
	if len(a) != len(b) {
		t.Fatalf("%q has %d tokens, %q has %d", before, len(a), after, len(b))
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Data != b[i].Data || len(a[i].Attr) != len(b[i].Attr) {
			t.Fatalf("token %d: %v became %v", i, a[i], b[i])
		}
		for j, attr := range b[i].Attr {
			was := a[i].Attr[j]
			if attr.Key == "srcdoc" && a[i].Data == "iframe" { // a value inside that had no quotes has them now
				sameButFrames(t, []byte(was.Val), []byte(strings.Replace(attr.Val, element, "", 1)))
				continue
			}
			if attr.Key == "content" && a[i].Data == "meta" {
				continue // TestPolicyInMarkup
			}
			if attr != was {
				t.Fatalf("token %d: %v became %v", i, a[i], b[i])
			}
		}
	}
}

// TestMarkupChangesNothingElse holds documents made of what confuses
// tokenisers against another one, in pieces of any size.
func TestMarkupChangesNothingElse(t *testing.T) {
	parts := []string{
		"<iframe srcdoc=\"", "<iframe", " srcdoc='", " srcdoc=", "\"", "'", ">", "<", "/", "=", " ", "x", "&lt;", "&", "&amp", "</iframe>", "<meta ", "http-equiv=content-security-policy ",
		"content=\"script-src 'self'\"", "<script>", "</script>", "<!--", "-->", "--!>", "<style>", "</style ", "<title>", "</title>", "<textarea", "</textarea>", "<!doctype html>", "<p title=\"", "-", "é", "\n",
	}
	rapid.Check(t, func(r *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 30).Draw(r, "parts"), ""))
		n := rapid.IntRange(1, len(text)).Draw(r, "piece")
		m := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader()).newMarkup()
		var out []byte
		for rest := text; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			out = append(out, m.feed(rest[:min(n, len(rest))], len(rest) <= n)...)
		}
		sameButFrames(r, text, out)
	})
}

// element is the script as it stands in a document.
var element = "<script>" + testScript.Text() + "</script>"

// unseeded removes the script, at whatever depth of documents in attributes.
func unseeded(text string) string {
	for script, i := element, 0; i <= maxDepth; i++ {
		text = strings.ReplaceAll(text, script, "")
		script = escapeAttribute(script)
	}
	return text
}

// TestNestedFrames: the script is once in each document that an attribute holds, and a browser reads it
// there unescaped.
func TestNestedFrames(t *testing.T) {
	plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
	quoted := func(s string) string { return `"` + stdhtml.EscapeString(s) + `"` }
	deepest := `<!doctype html><p title="a&amp;b">é`
	for _, x := range []struct {
		name, in string
		levels   int
	}{
		{"one", `<iframe srcdoc=` + quoted(deepest) + `>`, 1},
		{"two", `<iframe srcdoc=` + quoted(`<body><iframe srcdoc=`+quoted(deepest)+`></iframe>`) + `>`, 2},
		{"two kinds of quotes", `<iframe srcdoc='<body><iframe srcdoc="<!doctype html><p>x"></iframe>'>`, 2},
		{"unquoted inside", `<iframe srcdoc="<iframe srcdoc=x></iframe>">`, 2},
		{"three", `<iframe srcdoc=` + quoted(`<iframe srcdoc=`+quoted(`<iframe srcdoc=`+quoted(deepest)+`>`)+`>`) + `>`, 3},
		{"in a comment inside", `<iframe srcdoc="<!-- <iframe srcdoc='x'> -->">`, 1},
	} {
		out := plan.newMarkup().feed([]byte("<p>"+x.in), true)
		level := 0
		for doc := string(out); ; level++ {
			inner := ""
			for _, token := range tokens([]byte(doc)) {
				for _, a := range token.Attr {
					if a.Key == "srcdoc" {
						inner = a.Val
					}
				}
			}
			if level > 0 && strings.Count(doc, element) != 1 {
				t.Errorf("%s: the document at level %d has the script %d times", x.name, level, strings.Count(doc, element))
			}
			if inner == "" {
				break
			}
			doc = inner
		}
		if level != x.levels {
			t.Errorf("%s: %d levels, want %d: %s", x.name, level, x.levels, unseeded(string(out)))
		}
		if x.name != "unquoted inside" { // where quotes are added
			sameButFrames(t, []byte("<p>"+x.in), out)
		}
	}
}

// TestManyFrames: a small document of many frames does not become a huge one.
func TestManyFrames(t *testing.T) {
	plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
	for name, in := range map[string]string{
		"side by side": strings.Repeat("<iframe srcdoc=x>", 3*maxFrames),
		"in one":       `<iframe srcdoc="` + strings.Repeat("<iframe srcdoc=x>", 3*maxFrames) + `">`,
	} {
		out := plan.newMarkup().feed([]byte(in), true)
		if n := len(in) - len(unseeded(string(out))); n > 0 || len(out) > 2*maxFrames*len(element) {
			t.Errorf("%s: %d bytes became %d", name, len(in), len(out))
		}
	}
}

func TestDataURL(t *testing.T) {
	pack := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for in, want := range map[string]string{
		"data:text/html,<p>x":                                      "data:text/html;base64," + pack(element+"<p>x"),
		"data:text/html,%3C!doctype%20html%3E<p>%C3%A9#part":       "data:text/html;base64," + pack("<!doctype html>"+element+"<p>é") + "#part",
		"DATA:Text/HTML;charset=UTF-8;base64," + pack("<html><p>"): "data:Text/HTML;charset=UTF-8;base64," + pack("<html>"+element+"<p>"),
		"data:text/html,<meta charset=koi8-r>%":                    "data:text/html;charset=koi8-r;base64," + pack(element+"<meta charset=koi8-r>%"),
		"data:text/plain,<p>":                                      "",
		"data:,x":                                                  "",
		"data:text/html;base64,%":                                  "",
		"data:text/html":                                           "",
		"https://a.example/":                                       "",
	} {
		if got, ok := testScript.dataURL(in, ""); got != want || ok != (want != "") {
			t.Errorf("dataURL(%q) = %q, %v; want %q", in, unseeded(got), ok, want)
		}
	}
	homed := strings.Replace(element, "<script>", `<script data-home="https://a.example">`, 1)
	plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
	if got := string(plan.newMarkup().feed([]byte(`<iframe src=data:text/html,x title=y>`), true)); got != `<iframe src="data:text/html;base64,`+pack(homed+"x")+`" title=y>` {
		t.Errorf("the frame became %q", got)
	}
}

func FuzzDataURL(f *testing.F) {
	f.Add("data:text/html;charset=x;base64,PHA+")
	f.Add("data:text/html,%3Cp%3")
	f.Fuzz(func(t *testing.T, raw string) {
		defer testlab.Input(t)()
		out, ok := testScript.dataURL(raw, "")
		if !ok {
			return
		}
		// A changed URL has all of the document, and changing it again changes that document only.
		_, body, _ := strings.Cut(out, ",")
		body, _, _ = strings.Cut(body, "#")
		text, err := base64.StdEncoding.DecodeString(body)
		if err != nil || strings.Count(string(text), element) < 1 {
			t.Fatalf("dataURL(%q) = %q: %v", raw, out, err)
		}
		if again, ok := testScript.dataURL(out, ""); !ok || len(again) < len(out) {
			t.Fatalf("dataURL(%q) = %q, %v", out, again, ok)
		}
	})
}

func FuzzMarkup(f *testing.F) {
	f.Add([]byte(`<script><!-- <script></script></script><iframe srcdoc='&lt;p'><meta http-equiv=content-security-policy content="a">`), 3)
	f.Add([]byte(`<ifrAme srCdoc=&!">`), 32)
	f.Add([]byte("<ifrAme srCdoC=\"<ifrAme srCdoC='&lt;ifrAme srCdoC=0>'>\">0"), 89)
	f.Add([]byte(`<iframe srcdoc="<p><iframe srcdoc='&lt;iframe srcdoc=&amp;quot;x&amp;quot;>'>"><iframe src=data:text/html,%3cp>`), 7)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		defer testlab.Input(t)()
		n = max(n, 1+len(text)/64)
		plan := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
		whole := bytes.Clone(plan.newMarkup().feed(text, true))
		m := plan.newMarkup()
		var out []byte
		for rest := text; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			out = append(out, m.feed(rest[:min(n, len(rest))], len(rest) <= n)...)
		}
		if !bytes.Equal(whole, out) {
			t.Fatalf("in pieces of %d %q gives %q, whole %q", n, text, out, whole)
		}
		// Quotes may be put where there are none; then those inside become references.
		bare := func(b []byte) string {
			text := string(b)
			for range 2 * maxDepth {
				text = stdhtml.UnescapeString(text)
			}
			return strings.ReplaceAll(text, `"`, "")
		}
		back := []byte(unseeded(string(out)))
		lower := bytes.ToLower(text)
		if bare(back) != bare(text) && !bytes.Contains(lower, []byte("<meta")) && !bytes.Contains(lower, []byte("text/html")) {
			t.Fatalf("without the script %q is %q", text, back)
		}
	})
}

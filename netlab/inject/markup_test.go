package inject

import (
	"bytes"
	stdhtml "html"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
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
	if got := m.feed([]byte(`"></iframe><iframe srcdoc=x>`), true); !bytes.Contains(got, []byte(testScript.attribute+"x")) {
		t.Errorf("behind a long one, %q", got)
	}
}

// sameButFrames compares what another tokeniser reads before and after.
func sameButFrames(t interface {
	Helper()
	Fatalf(string, ...any)
}, before, after []byte) {
	t.Helper()
	script := "<script>" + testScript.Text() + "</script>"
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
			if attr.Key == "srcdoc" && a[i].Data == "iframe" {
				attr.Val = strings.Replace(attr.Val, script, "", 1)
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

func FuzzMarkup(f *testing.F) {
	f.Add([]byte(`<script><!-- <script></script></script><iframe srcdoc='&lt;p'><meta http-equiv=content-security-policy content="a">`), 3)
	f.Add([]byte(`<ifrAme srCdoc=&!">`), 32)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
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
		bare := func(b []byte) string { return strings.ReplaceAll(stdhtml.UnescapeString(string(b)), `"`, "") }
		back := bytes.ReplaceAll(out, []byte(testScript.attribute), nil)
		if bare(back) != bare(text) && !bytes.Contains(bytes.ToLower(text), []byte("<meta")) {
			t.Fatalf("without the script %q is %q", text, back)
		}
	})
}

package replay

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestEchoes: an answer by which a client knows its request again says what the client has said, in whatever coding it
// was recorded; what only looks like it stays.
func TestEchoes(t *testing.T) {
	zipped := func(text string) string {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return packed.String()
	}
	const js, script = "Content-Type: application/json", "Content-Type: text/javascript"
	call := func(id, method string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}` }
	a := build(
		exchange{ask: "GET https://a.test/p?callback=jQuery35_111&q=1", header: script + "\nContent-Encoding: gzip",
			answer: zipped("/**/typeof jQuery35_111 === 'function' && jQuery35_111({\"n\":\"jQuery35_111(\"});")},
		exchange{ask: "GET https://a.test/w?cb=__jp0&q=1", header: script, answer: "__jp0([1])"},
		exchange{ask: "GET https://a.test/w?cb=__jp0&q=22222222", header: script, answer: "other([2])"},
		exchange{ask: "GET https://a.test/v?fmt=json&fn=took_1022200", header: script + "\nContent-Encoding: gzip",
			answer: zipped("// for took_1022200\nwindow.took_1022200 && window.took_1022200({});")},
		exchange{ask: "GET https://a.test/m?fmt=min&fn=e100", header: script, answer: "!function(e){e100({})}()"},
		exchange{ask: "GET https://a.test/side?fn=side", header: script, answer: "side({})"},
		exchange{ask: "POST https://a.test/rpc", with: js, body: call("7", "sum"), header: js, answer: `{"jsonrpc":"2.0","id":7,"result":{"id":7}}`},
		exchange{ask: "POST https://a.test/rpc", with: js, body: call(`"x1"`, "max"), header: js, answer: `{"id":"x1","result":9,"jsonrpc":"2.0"}`},
		exchange{ask: "POST https://a.test/rpc", with: js, body: "[" + call("1", "a") + "," + call("2", "b") + "]", header: js,
			answer: `[{"jsonrpc":"2.0","id":2,"result":"b"},{"jsonrpc":"2.0","id":1,"result":"a"}]`},
		exchange{ask: "POST https://a.test/plain", with: js, body: `{"id":7,"method":"sum"}`, header: js, answer: `{"id":7}`},
	)
	k := newAsker(t, a, Options{Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct {
		ask, body, want string
		stage           lab.Stage
	}{
		{"GET https://a.test/p?callback=jQuery35_222&q=1", "", `/**/typeof jQuery35_222 === 'function' && jQuery35_222({"n":"jQuery35_111("});`,
			lab.StageNormalised},
		{"GET https://a.test/w?cb=__jp1&q=1", "", "__jp1([1])", lab.StageNormalised},
		{"GET https://a.test/w?cb=__jp1&q=22222222", "", "other([2])", lab.StageNormalised},
		{"GET https://a.test/v?fmt=json&fn=took_619000", "", "// for took_619000\nwindow.took_619000 && window.took_619000({});", lab.StageNormalised},
		{"GET https://a.test/m?fmt=min&fn=e200", "", "This request is not in the archive.\n", lab.StageMiss},
		{"GET https://a.test/side?fn=foot", "", "This request is not in the archive.\n", lab.StageMiss},
		{"POST https://a.test/rpc", call("7", "sum"), `{"jsonrpc":"2.0","id":7,"result":{"id":7}}`, lab.StageExact},
		{"POST https://a.test/rpc", call("8", "sum"), `{"id":8,"jsonrpc":"2.0","result":{"id":7}}`, lab.StageNormalised},
		{"POST https://a.test/rpc", call(`"<y>"`, "max"), `{"id":"\u003cy\u003e","jsonrpc":"2.0","result":9}`, lab.StageNormalised},
		{"POST https://a.test/rpc", "[" + call("2", "a") + "," + call("1", "b") + "]",
			`[{"id":1,"jsonrpc":"2.0","result":"b"},{"id":2,"jsonrpc":"2.0","result":"a"}]`, lab.StageNormalised},
		{"POST https://a.test/rpc", call("7", "other"), "This request is not in the archive.\n", lab.StageMiss},
		{"POST https://a.test/plain", `{"id":8,"method":"sum"}`, "This request is not in the archive.\n", lab.StageMiss},
	} {
		with := ""
		if strings.HasPrefix(c.ask, "POST") {
			with = js
		}
		resp, got, line := k.ask("192.0.2.1", c.ask, with, c.body)
		if got != c.want || line.Stage != c.stage || line.Stage != lab.StageMiss && line.BodySHA256 != hexSum([]byte(got)) {
			t.Errorf("%s %s: %q by %s, want %q by %s", c.ask, c.body, got, line.Stage, c.want, c.stage)
		}
		if coding := resp.Header.Get("Content-Encoding"); coding != "" {
			t.Errorf("%s has the coding %s, want none for a body that is changed", c.ask, coding)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// asking is a page that asks a person everything that a page can, and sends the answers.
const asking = `<!doctype html><link rel="icon" href="data:,"><h1 id="h">asking</h1><script>
var answers = [alert("Hi"), confirm("Sure?"), prompt("Name?", "Ann"), prompt("Again?"), print(), alert.name, "" + confirm === "" + Function.prototype.toString.call(confirm)];
navigator.geolocation.getCurrentPosition(function () { tell("placed"); }, function (e) { tell("error " + e.code); });
function tell(place) {
	answers.push(place);
	fetch("/answers?" + encodeURIComponent(answers.join("|"))).then(function () { h.textContent = answers.join(", "); });
}
</script>`

// others is a page that asks for other programs, and then has a person choose all that a browser has a window for. It
// sends what came of it.
const others = `<!doctype html><link rel="icon" href="data:,"><h1 id="h">others</h1><iframe id="f"></iframe><script>
setTimeout(async function () {
	if (location.search != "?still") {
		location = "mailto:a@shop.test";
		f.src = "foo:frame";
	}
	const said = [];
	const ask = async function (name, f) {
		await f().then(function (got) { said.push(name + " " + got.length); }, function (e) { said.push(name + " " + e.name); });
	};
	const challenge = new Uint8Array(16), user = {id: challenge, name: "a", displayName: "a"}, pubKeyCredParams = [{type: "public-key", alg: -7}];
	await ask("get", () => navigator.credentials.get({publicKey: {challenge}}));
	await ask("create", () => navigator.credentials.create({publicKey: {challenge, user, pubKeyCredParams, rp: {name: "shop"}}}));
	for (const [device, f] of [["usb", "requestDevice"], ["serial", "requestPort"], ["hid", "requestDevice"]]) {
		if (navigator[device]) {
			await ask(device, () => navigator[device][f]({filters: []}));
		}
	}
	if (self.PaymentRequest) {
		const total = {label: "all", amount: {currency: "EUR", value: "1"}};
		await ask("pay", () => new PaymentRequest([{supportedMethods: "https://pay.test/"}], {total}).show());
	}
	fetch("/answers?" + encodeURIComponent(said.concat(f.src).join("|"))).then(function () { h.textContent = said.join(); });
}, 300);
</script>`

// refused is what a page hears of a person who chooses nothing.
var refused = []string{
	"get NotAllowedError", "create NotAllowedError", "usb NotFoundError", "serial NotFoundError", "hid 0", "pay AbortError",
} // constant

// barred is a page that came by POST and loads itself once more. Then it does what a browser tells or asks a person in
// a bar or a small window of its own.
const barred = `<!doctype html><link rel="icon" href="data:,"><h1>barred</h1><form id="f" method="post"></form><script>
setTimeout(async function () {
	if (!sessionStorage.step) {
		sessionStorage.step = "posted";
		return f.submit();
	}
	if (sessionStorage.step == "posted") {
		sessionStorage.step = "again";
		return location.reload();
	}
	const said = [];
	if (location.search != "?still") {
		said.push(open("/popup"));
		const videoCapabilities = [{contentType: 'video/mp4; codecs="avc1.42E01E"'}];
		const media = {initDataTypes: ["cenc"], videoCapabilities};
		await navigator.requestMediaKeySystemAccess("com.widevine.alpha", [media]).then(() => {}, () => {});
		said.push(navigator.registerProtocolHandler("web+shop", "/?u=%s"));
		said.push(await navigator.storage.persist());
		if (/Firefox/.test(navigator.userAgent)) { // Chromium says in the page that it saves a file
			location = "/saved";
		}
	}
	fetch("/answers?" + encodeURIComponent(said.join("|")));
}, 300);
</script>`

// TestNoBars: nothing that a browser has to say of a page stands in the film.
func TestNoBars(t *testing.T) {
	needLab(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/saved" {
			w.Header().Set("Content-Disposition", "attachment; filename=saved.html")
		}
		io.WriteString(w, barred)
	}))
	t.Cleanup(site.Close)
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		load := func(page string) (string, *lab.Trial) {
			out := t.TempDir()
			got := finishCmd(t, appliance(t, "measure", strings.Replace(site.URL, "127.0.0.1", "localhost", 1)+page,
				"--trials", "1", "--tolerance", "10s", "--browser", program, "--on-dialog", "dismiss", "--no-serve", "--out", out))
			dir, run := readRun(t, out)
			if len(run.Trials) == 0 {
				t.Fatalf("status %d: %s%s", got.status, got.out, got.err)
			}
			return answered(t, dir, run.Trials[0]), run.Trials[0]
		}
		_, still := load("/?still")
		said, trial := load("/")
		if said != "||false" {
			t.Errorf("the page was answered %q; want no popup and no lasting storage", said)
		}
		if trial.FinalFrame != still.FinalFrame {
			t.Errorf("the page does not look as one that does nothing; invalid because of %q", trial.Invalid)
		}
	})
}

// answered are the answers that a run's trials sent.
func answered(t *testing.T, dir string, trial *lab.Trial) string {
	t.Helper()
	for _, line := range bag(t, dir, trial) {
		if _, query, ok := strings.Cut(line, "/answers?"); ok {
			text, err := url.QueryUnescape(strings.Fields(query)[0])
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	return ""
}

// TestDialogues: a page's dialogues are answered as the plan says, or end the run by their name, with a picture.
func TestDialogues(t *testing.T) {
	needLab(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, asking)
		case "/gone":
			http.NotFound(w, r)
		case "/others":
			fmt.Fprint(w, others)
		case "/alert":
			fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><h1>hello</h1><script>setTimeout(alert, 300, "Cookies?")</script>`)
		}
	}))
	t.Cleanup(site.Close)
	address := strings.Replace(site.URL, "127.0.0.1", "localhost", 1) // no browser asks for a passkey of an address
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		measure := func(page string, more ...string) (result, string, *lab.Run) {
			out := t.TempDir()
			got := finishCmd(t, appliance(t, append([]string{"measure", address + page, "--trials", "1", "--tolerance", "10s", "--browser", program, "--no-serve", "--out", out}, more...)...))
			dir, run := readRun(t, out)
			return got, dir, run
		}
		got, dir, run := measure("/", "--on-dialog", "dismiss")
		if len(run.Trials) == 0 {
			t.Fatalf("status %d: %s%s", got.status, got.out, got.err)
		}
		trial := run.Trials[0]
		if text := answered(t, dir, trial); text != "|false||||alert|true|error 1" {
			t.Errorf("dismissed, the page was answered %q", text)
		}
		sure := func(d lab.Dialogue) bool { return d.Kind == "confirm" && d.Text == "Sure?" && d.Answered }
		if !trial.Valid && !slowed(trial) || len(trial.Dialogues) != 6 || !slices.ContainsFunc(trial.Dialogues, sure) {
			t.Errorf("dismissed, the trial is invalid because of %q, with the dialogues %+v; want it valid, with six", trial.Invalid, trial.Dialogues)
		}

		_, dir, run = measure("/others", "--on-dialog", "dismiss")
		if len(run.Trials) == 0 {
			t.Fatal("others dismissed: no trial")
		}
		trial = run.Trials[0]
		said := strings.Split(answered(t, dir, trial), "|")
		for _, one := range said[:len(said)-1] { // of those that this browser has
			if !slices.Contains(refused, one) {
				t.Errorf("others dismissed, the page was answered %q; want one of %q", one, refused)
			}
		}
		if len(said) < 3 || said[0] != refused[0] || said[1] != refused[1] || said[len(said)-1] != "foo:frame" {
			t.Errorf("others dismissed, the page was answered %q; want passkeys first, and its frame's address last", said)
		}
		asked, shown := len(said)+1, `another program ("mailto:a@shop.test")`
		if strings.Contains(program, "firefox") { // has no other programs, and asks nobody
			asked, shown = len(said)-1, "choose (CredentialsContainer.get)"
		}
		if !trial.Valid && !slowed(trial) || len(trial.Dialogues) != asked {
			t.Errorf("others dismissed, the trial is invalid because of %q, with the dialogues %+v; want it valid, with %d", trial.Invalid, trial.Dialogues, asked)
		}

		got, dir, _ = measure("/alert")
		if got.status != exitCannot || !strings.Contains(got.err, `alert("Cookies?")`) || !strings.Contains(got.err, "--on-dialog accept") {
			t.Errorf("shown: status %d, %s; want %d, what was asked, and how to answer", got.status, got.err, exitCannot)
		}
		report, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil || !strings.Contains(string(report), "The screen when the first trial ended") {
			t.Errorf("shown: %v, the report has no picture of it", err)
		}
		if testing.Short() {
			return // what is shown in other ways is left to make test-all
		}
		if got, _, _ = measure("/gone"); got.status != exitCannot || !strings.Contains(got.err, "check the path") || strings.Contains(got.out, "replayed again") {
			t.Errorf("gone: status %d, %s%s; want %d, why, and no word of replaying a recording of nothing", got.status, got.out, got.err, exitCannot)
		}
		if _, _, run = measure("/others?still", "--on-dialog", "dismiss"); len(run.Trials) == 0 || run.Trials[0].FinalFrame != trial.FinalFrame {
			t.Errorf("others dismissed: the page does not look as one that asks for no other program")
		}
		if _, _, run = measure("/others"); len(run.Trials) == 0 {
			t.Fatalf("others shown: no trial")
		}
		if text := fmt.Sprint(run.Trials[0].Invalid); !strings.Contains(text, shown) {
			t.Errorf("others shown: the trial is invalid because of %q; want %q", text, shown)
		}
		if _, _, run = measure("/", "--on-dialog", "accept"); len(run.Trials) == 0 {
			t.Fatalf("accepted: no trial")
		}
		// A permission is nothing that a page can be given: the browser asks for it.
		if text := fmt.Sprint(run.Trials[0].Invalid); !strings.Contains(text, "permission (getCurrentPosition)") {
			t.Errorf("accepted: the trial is invalid because of %q; want the permission", text)
		}
	})
}

package panel

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// The page of tokens in a real browser: log in, make a token, use it, revoke it, log out.
func TestAccessInBrowser(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token), Version: "v1", Fingerprint: strings.Repeat("3b1c", 16)})
	evil := newToken(t, s, `<img src=x onerror=document.title='owned'>`, "read")
	ask(t, s, http.MethodGet, "/api/v1/runs", sending(evil.Secret, ""))
	b := browsers.New(t)
	if err := b.Open(s.URL + "/access"); err != nil {
		t.Fatal(err)
	}
	step := func(what, script, want string) (got string) {
		t.Helper()
		got, err := reporttest.Eval[string](b, `(async () => {`+until+script+`})()`)
		if err != nil || want != "" && got != want {
			t.Errorf("%s: %q (%v), want %q", what, got, err, want)
		}
		return got
	}
	step("log-in", fmt.Sprintf(`
		await until(() => !document.getElementById("login").hidden);
		document.getElementById("token").value = %q;
		document.querySelector("#login button").click();
		await until(() => document.querySelectorAll("#list tr").length === 1);
		return [document.getElementById("me").textContent, document.getElementById("fingerprint").textContent.split("\n").length,
			document.querySelectorAll("#list img").length, document.title].join(" | ");`, token),
		"box (admin) | 2 | 0 | Access – Eidetic")
	refused := len(b.Problems())
	secret := step("a new token", `
		document.querySelector("#make input").value = "nightly";
		document.querySelector("#make button").click();
		await until(() => document.querySelectorAll("#list tr").length === 2 && !document.getElementById("made").hidden);
		return document.getElementById("secret").textContent;`, "")
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", sending(secret, "")); got.StatusCode != 200 {
		t.Errorf("the token that the page shows = %d, want 200", got.StatusCode)
	}
	if dir := os.Getenv("PANEL_SHOTS"); dir != "" { // for a person to look at
		err := b.View(1100, 1000, "light")
		_, evalErr := reporttest.Eval[bool](b, `[...document.querySelectorAll("td")].forEach(td => {
			if (td.textContent.includes("<img")) td.textContent = td.textContent.replace(/<img.*'>/, "ada");
		}) ?? true`)
		shot, shotErr := b.Shot()
		if err = errors.Join(err, evalErr, shotErr); err == nil {
			err = os.WriteFile(filepath.Join(dir, "access.png"), shot, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	step("revoking", `
		[...document.querySelectorAll("#list tr")].find(r => r.textContent.includes("nightly")).querySelector("button").click();
		await until(() => document.getElementById("sure").open);
		document.getElementById("yes").click();
		await until(() => document.querySelectorAll("#list tr").length === 1 && document.querySelector("#acts tr").textContent.includes("DELETE"));
		return document.querySelector("#acts tr").children[2].textContent.replace(/tokens.*/, "tokens");`, "DELETE /api/v1/tokens")
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", sending(secret, "")); got.StatusCode != 401 {
		t.Errorf("the token that was revoked on the page = %d, want 401", got.StatusCode)
	}
	if got := b.Problems()[refused:]; len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
	step("log-out", `
		document.getElementById("leave").click();
		await until(() => !document.getElementById("login").hidden);
		return [document.getElementById("all").hidden, document.querySelector("#me").textContent].join(" | ");`, "true | ")
}

// fleetSection is how the box stands with its head: what it holds, leaving, a wrong link, joining.
func fleetSection() pageTest {
	return pageTest{path: "/access", script: `
		await until(() => document.querySelectorAll("#parts tr").length === 2);
		says.push($("belongs").textContent.includes("head.example.org:8443, as lab-1"), $("fleetProblem").textContent.includes("connection refused"));
		says.push([...document.querySelectorAll("#parts tr")].map(r => r.children[2].textContent).join(", "), seen("join"));
		press(document, "Leave the fleet");
		await until(() => $("sure").open);
		says.push($("consequence").textContent.includes("their runs are stopped"));
		$("yes").click();
		await until(() => seen("join"));
		await until(() => document.activeElement === $("fleetTitle"));
		says.push(seen("part"), seen("held"));
		set($("join").elements.link, evil);
		$("join").requestSubmit();
		await until(() => $("fleetRefused").textContent.includes("does not begin with"));
		set($("join").elements.link, "  eidetic-head://head.example.org:8443/mJxk2Vq8LwPzR4tYbN7c?pin=3b1c ");
		$("join").requestSubmit();
		await until(() => document.querySelectorAll("#parts tr").length === 2);
		says.push(seen("join"), $("fleetRefused").textContent);`,
		want: []string{"true", "true", "running, trial 3 of 40, handing in", "false", "true", "false", "false", "false", ""}}
}

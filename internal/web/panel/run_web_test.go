package panel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/capture/reel"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/frames"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
)

// The films of a pair: the page of each fills line by line, that of the treatment 30 frames later.
const (
	pairW, pairH = 320, 200
	pairFrames   = 150
	pairStart    = 20
	pairFills    = 50
	pairLater    = 30
)

func pairFilm(later int) *filmtest.Film {
	page := filmtest.NewPage(pairW, pairH, 3)
	scene := func(pix []byte, n int) {
		filmtest.Fill(pix, pairW, image.Rect(0, 0, pairW, pairH), 250, 250, 255)
		if rows := pairLines(n, later) * pairH / 20; rows > 0 {
			top := make([]byte, 4*pairW*pairH)
			page.Show(top, pairW, pairH, 0, 0)
			copy(pix, top[:4*pairW*rows])
		}
	}
	return filmtest.New(pairW, pairH, 60, scene, filmtest.Beat(pairFrames, 60, 60, 0))
}

func pairLines(n, later int) int { return min(max(n-pairFills-later+1, 0), 20) }

// filmedPairs keeps a run of eight pairs, of which one trial is left out and the first two have films. Changes are
// made to it before it is saved.
func filmedPairs(t testing.TB, st *store.Store, changes ...func(dir string, run *lab.Run)) *lab.Run {
	t.Helper()
	run := reporttest.Compared(5, 9, 500)
	run.ID, run.Name, run.Wall = "20261123-091400-pairs", "the new checkout", time.Date(2026, 11, 23, 9, 14, 0, 0, time.UTC)
	last := run.Trials[17]
	last.Valid, last.Invalid = false, []string{"14 frames were lost between the screen and the recorder: <b>too busy</b>"}
	reporttest.Compare(run)
	folder, err := store.Create(st.Root(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := reporttest.Files(folder.Path(), run, reporttest.Options{Requests: 2}); err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials[:4] {
		later := 0
		if trial.Arm == lab.Treatment {
			later = pairLater
		}
		f := pairFilm(later)
		trial.Files["reel"], trial.StartFrame, trial.StartTime = "screen.reel", pairStart, f.Info(pairStart).Time
		trial.VisualProgress, trial.LoadHistogram, trial.FrameTimes = nil, nil, nil
		for i := pairStart; i < f.Len(); i++ {
			trial.VisualProgress = append(trial.VisualProgress, float64(pairLines(i, later)*5))
		}
		dir := filepath.Join(folder.Path(), "trials", store.TrialName(trial.Number))
		for _, made := range []string{"screen.reel", "strip"} { // by Files, of another film
			if err := os.RemoveAll(filepath.Join(dir, made)); err != nil {
				t.Fatal(err)
			}
		}
		writeReel(t, folder.Path(), trial.Number, f)
		writeStrip(t, dir, trial.StartTime)
	}
	for _, change := range changes {
		change(folder.Path(), run)
	}
	if err := report.Write(folder.Path(), run); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(run); err != nil {
		t.Fatal(err)
	}
	return run
}

// writeStrip makes the filmstrip of a trial from its reel: a picture every tenth of a second.
func writeStrip(t testing.TB, dir string, start lab.Time) {
	t.Helper()
	r, err := reel.Open(filepath.Join(dir, "screen.reel"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []map[string]any
	err = os.Mkdir(filepath.Join(dir, "strip"), 0o755)
	for i := pairStart; i < r.Len() && err == nil; i += 6 {
		var picture image.Image
		var b bytes.Buffer
		if picture, err = frames.Picture(r, i); err == nil {
			err = jpeg.Encode(&b, picture, nil)
		}
		name := fmt.Sprintf("strip-%03d.jpg", len(list))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "strip", name), b.Bytes(), 0o600)
		}
		list = append(list, map[string]any{"frame": i, "time_ms": float64(r.Info(i).Time-start) / 1e6, "file": name})
	}
	text, jsonErr := json.Marshal(list)
	if err = errors.Join(err, jsonErr); err == nil {
		err = os.WriteFile(filepath.Join(dir, "strip", "strip.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runPage: somebody reads what was found, goes from a dot to its pair's films, and steps through both.
func runPage() pageTest {
	return pageTest{"/run?run=20261123-091400-pairs", `
	const key = (k, shift) => $("place").dispatchEvent(new KeyboardEvent("keydown", { key: k, shiftKey: shift, bubbles: true, cancelable: true }));
	const shown = n => until(() => $("views").dataset.place === String(n));
	const frames = () => [...document.querySelectorAll("#views canvas[role]")].map(c => c.dataset.frame).join("+");
	const asked = () => new URLSearchParams(location.search);
	await until(() => document.querySelectorAll(".metric svg").length === 8);
	const plainly = text => text.replace(/[+−]?\d[\d.\u202f]*/g, "N");
	says.push("found: " + plainly($("found").textContent), "arms: " + $("arms").innerText.replace(/\s+/g, " "), "facts: " + $("facts").textContent.split(" · ").slice(1).join(" · "));
	const card = document.querySelector(".metric"), [arms, diffs] = card.querySelectorAll("svg");
	says.push("metrics: " + [...document.querySelectorAll(".metric h2")].map(h => h.textContent).join(", "), "effect: " + plainly(card.querySelector(".hint").textContent));
	says.push("dots: " + [arms.querySelectorAll("a").length, arms.querySelectorAll(".left-out").length, diffs.querySelectorAll("a").length, arms.querySelectorAll("a[tabindex='0']").length, arms.querySelector("a").getAttribute("href").replace(/trial=\d+/, "trial=N")].join(" "));
	arms.querySelector("a").focus();
	arms.querySelector("a").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
	says.push("keys: " + (document.activeElement === arms.querySelectorAll("a")[1]));
	diffs.querySelectorAll("a")[7].dispatchEvent(new PointerEvent("pointerenter"));
	says.push("pointer: " + card.querySelectorAll("figcaption")[1].textContent.replace(/\+\d+/, "+N"));
	const [values, pairs] = card.querySelectorAll(".numbers");
	values.open = pairs.open = true;
	await until(() => card.querySelectorAll("tbody").length === 2);
	says.push("tables: " + [...card.querySelectorAll("tbody")].map(b => b.rows.length).join(" "));
	const lines = await Promise.all([...card.querySelectorAll("a[download]")].map(async a => [a.download, ...decodeURIComponent(a.href.split(",").slice(1).join(",")).split("\r\n")]));
	says.push("csv: " + lines.map(l => [l[0], l[1], l.length].join(" ")).join("; "));
	says.push("left out: " + $("left-out").textContent, "links: " + [...document.querySelectorAll("#ways a")].filter(a => a.checkVisibility()).map(a => a.getAttribute("href")).join(" "));
	// From a dot to the films.
	diffs.querySelector("a").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
	await until(() => seen("both") && $("views").dataset.place);
	says.push("pair: " + [$("pair").value, document.activeElement.id, asked().get("pair"), card.querySelector(".chosen").getAttribute("aria-current")].join(" "));
	says.push("part: " + $("part").textContent.split(":")[0] + "; " + $("readout").textContent);
	const [one, two] = document.querySelectorAll("#views canvas[role]");
	const whole = c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	const lossless = async (c, trial) => {
		const bitmap = await createImageBitmap(await (await fetch("/api/v1/runs/20261123-091400-pairs/trials/" + trial + "/frames/" + c.dataset.frame)).blob(), { colorSpaceConversion: "none" });
		const other = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
		other.getContext("2d").drawImage(bitmap, 0, 0);
		const want = whole(other), got = whole(c);
		return want.length === got.length && want.every((v, i) => v === got[i]);
	};
	const exact = async () => [await lossless(one, 2), await lossless(two, 1)].join();
	says.push("lossless " + await exact());
	const at = Number($("place").ariaValueNow);
	key("ArrowRight"); await shown(at + 1); key("ArrowRight", true); await shown(at + 11);
	says.push("on " + frames() + " " + await exact());
	key("ArrowLeft"); await shown(at + 10); key("PageUp"); await shown(at + 9);
	says.push("back " + frames() + " " + await exact());
	key("End"); await until(() => frames() === "149+149" && $("views").dataset.place === $("place").ariaValueNow);
	key("PageUp"); await until(() => frames() === "99+99");
	says.push("late " + frames() + " " + await exact());
	// The same visual progress.
	$("lock").querySelector("[value=progress]").click();
	await until(() => frames() === "69+99");
	says.push("progress: " + $("readout").textContent);
	key("PageUp"); await until(() => frames() === "68+98"); key("Home"); await until(() => frames() === "20+20"); key("ArrowRight"); await until(() => frames() === "50+80");
	says.push("level: " + $("readout").textContent + " " + await exact(), "address " + ["pair", "at", "lock", "zoom", "outline"].map(k => asked().get(k)).join(" "));
	$("levels").querySelector("details").open = true;
	await until(() => $("levels").querySelector("tbody"));
	says.push("levels: " + $("levels").querySelectorAll("tbody tr").length + " " + [...$("levels").querySelectorAll("tbody tr")][1].innerText.replace(/\s+/g, " "));
	// What differs between the films, at the same time.
	$("lock").querySelector("[value=time]").click();
	await until(() => frames() === "50+50");
	set($("outline"), "arms");
	const marks = i => { const c = document.querySelectorAll("#views .marks")[i], d = whole(c); let n = 0; for (let k = 3; k < d.length; k += 4) if (d[k]) n++; return n; };
	await until(() => marks(0) && marks(1));
	says.push("between: " + (marks(0) === marks(1)) + " " + $("differ").textContent);
	set($("zoom"), "2");
	says.push("zoom " + one.getBoundingClientRect().width * devicePixelRatio + " " + two.getBoundingClientRect().width * devicePixelRatio);
	set($("region"), "0,0,320,9999");
	says.push("refused: " + $("unseen").textContent);
	set($("region"), "0,0,320,100");
	await until(() => asked().get("region") === "0,0,320,100" && !seen("comparing") && $("views").dataset.place);
	says.push("region: " + $("unseen").textContent + document.querySelector("#views a").getAttribute("href"));
	set($("pair"), "2");
	await until(() => asked().get("pair") === "2" && !seen("comparing") && $("views").dataset.place);
	says.push("next: " + document.querySelector("#place h3").textContent);
	says.push("title: " + document.title);`, []string{
		`found: ▲ Treatment (link Ng) is slower. SpeedIndex N ms (N %, N % interval N to N, N pairs of trials, p < N); N of N guarded metrics are slower.`,
		`arms: Control: link lte Treatment: link 3g`,
		`facts: www.shop.example · link lte · Chromium 142.0.7444.59 · 17 of 18 trials valid · 20261123-091400-pairs`,
		`metrics: SpeedIndex, Looks finished, First visual change, Last visual change`,
		`effect: Slower. Shift N ms (N %), N % interval N to N ms, of N pairs.`,
		`dots: 18 1 8 1 /trial?run=20261123-091400-pairs&trial=N`,
		`keys: true`,
		`pointer: Pair 8, trials 15 and 16: +N ms`,
		`tables: 18 8`,
		`csv: 20261123-091400-pairs-speed_index_ms.csv trial,arm,speed_index_ms,valid 21; 20261123-091400-pairs-speed_index_ms-pairs.csv pair,control_trial,treatment_trial,control,treatment,difference 11`,
		`left out: Trial 18 (control): 14 frames were lost between the screen and the recorder: <b>too busy</b>`,
		`links: / /runs/20261123-091400-pairs/report.html /history?name=the+new+checkout&page=https%3A%2F%2Fwww.shop.example%2F /trial?run=20261123-091400-pairs&trial=1 /plan?run=20261123-091400-pairs`,
		`pair: 1 films-head 1 true`,
		`part: The films part at 517 ms; At 517 ms: control frame 51, 517 ms, visual progress 10 %; treatment frame 51, 517 ms, visual progress 0 %`,
		`lossless true,true`,
		`on 62+62 true,true`,
		`back 60+60 true,true`,
		`late 99+99 true,true`,
		`progress: At 100 % of visual progress: control frame 69, 817 ms, visual progress 100 %; treatment frame 99, 1317 ms, visual progress 100 %; the treatment +500 ms`,
		`level: At 5 % of visual progress: control frame 50, 500 ms, visual progress 5 %; treatment frame 80, 1000 ms, visual progress 5 %; the treatment +500 ms true,true`,
		`address 1 5 progress fit before`,
		`levels: 21 5 500.0 1000.0 500.0`,
		`between: true 3200 pixels differ between the films.`,
		`zoom 640 640`,
		`refused: The region is not inside the frame of 320 × 200 pixels: write X,Y,WIDTH,HEIGHT.`,
		`region: /trial?run=20261123-091400-pairs&trial=2&frame=50&region=0%2C0%2C320%2C100`,
		`next: Control, link lte: trial 3`,
		`title: the new checkout – Eidetic`,
	}, 10, "&pair=1&at=1150", `
	await until(() => $("views").dataset.place && document.querySelectorAll(".metric svg").length === 8 && document.querySelectorAll("#place img").length > 2);
	for (const [i, m] of [...document.querySelectorAll(".metric")].entries()) m.hidden = i > 0`}
}

// BenchmarkPairSteps steps through both films of a pair.
func BenchmarkPairSteps(b *testing.B) {
	for name, film := range stepsFilms() {
		b.Run(name, func(b *testing.B) {
			st, err := store.Open(b.Context(), b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			run := filmedPairs(b, st, func(dir string, run *lab.Run) {
				for _, trial := range run.Trials[:2] {
					trial.StartFrame, trial.StartTime, trial.VisualProgress = 0, film.Info(0).Time, make([]float64, stepsFrames)
					if err := os.Remove(filepath.Join(dir, "trials", store.TrialName(trial.Number), "screen.reel")); err != nil {
						b.Fatal(err)
					}
					writeReel(b, dir, trial.Number, film)
				}
			})
			stepThrough(b, st, "/run?run="+run.ID+"&pair=1&at=0&zoom=fit", "place", "views", "place")
		})
	}
}

package report

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// talking writes a run of two pairs whose pages send two jobs to a worker, and returns its page of timelines.
func talking(t *testing.T) string {
	t.Helper()
	run := reporttest.Compared(3, 2, 120)
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials {
		at := func(op, text, group string, ms lab.Time) lab.Annotation {
			now := trial.StartTime + ms*1e6
			return lab.Annotation{Op: op, Text: text, Group: group, Source: "page", Earliest: now, Latest: now + 2e6}
		}
		noted(t, dir, trial, []lab.Annotation{
			at(lab.AnnotateMark, "=early, \"job\"", "page", -60), at(lab.AnnotateSend, "job 1", "page", 100), at(lab.AnnotateReceive, "job 1", "worker", 140),
			at(lab.AnnotateSend, "job 2", "page", 300), at(lab.AnnotateReceive, "job 2", "worker", 350),
		}, []trace.Shown{{Process: "Renderer", Thread: "CrRendererMain", Main: true, Name: "FunctionCall", Group: trace.ScriptGroup,
			Start: trial.StartTime + 160e6, End: trial.StartTime + 200e6}})
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	return "file://" + filepath.Join(dir, TimelineName)
}

// atTimelines are what the scripts of these tests begin with.
const atTimelines = `
	const $ = s => document.querySelector(s), next = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
	const key = async k => { $("#timelines").dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true})); await next(); };
	const type = async (s, v) => { $(s).value = v; $(s).dispatchEvent(new Event("input")); await next(); };
	const find = async v => { await type("#tl-search", v); while (!/^\d+ found$/.test($("#tl-found").textContent)) await next(); };
	const heading = s => $(s).hidden ? "" : $(s + " h2").textContent, view = () => { const v = timelines.at(); return v.from.toFixed(0) + "-" + v.to.toFixed(0); };
	await next();
`

// TestTimelineAddresses: an address shows a trial, a range (also before the start), a time, what is found first, and rows.
func TestTimelineAddresses(t *testing.T) {
	page, b, n := talking(t), browsers.New(t), 0
	const all = "-194-1920"
	for address, want := range map[string][]string{ // trials, range, event, view, hidden rows
		"":                          {"2,1", "", "", all, "0"},
		"#3":                        {"3,1", "", "", all, "0"},
		"#4&range=100-400":          {"2,4", "What took the time from 100.0 to 400.0 ms", "", "91-409", "0"},
		"#range=-80-150":            {"2,1", "What took the time from -80.0 to 150.0 ms", "", "-87-157", "0"},
		"#range=-80--20.5":          {"2,1", "What took the time from -80.0 to -20.5 ms", "", "-82--19", "0"},
		"#range=400-100":            {"2,1", "", "", all, "0"},
		"#range=-":                  {"2,1", "", "", all, "0"},
		"#view=-50-250":             {"2,1", "", "", "-50-250", "0"},
		"#find=job%202&rows=worker": {"2,1", "", "job 2", all, "12"},
	} {
		n++ // else only the fragment would change
		if err := b.Open(fmt.Sprint(page, "?", n, address)); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[[]string](b, `(async () => {`+atTimelines+`
			return [timelines.shown().map(c => c.n).join(), heading("#taken"), heading("#picked"), view(), String(document.querySelectorAll(".tl-row[hidden]").length)];
		})()`)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", address, d)
		}
	}
}

// TestTimelineDock: with a range and an event the table of the range is not cut on a wide screen, nor the page on a narrow
// one, and the event's row is in sight above them.
func TestTimelineDock(t *testing.T) {
	page, b := talking(t), browsers.New(t)
	for i, width := range []int64{390, 1600} {
		if err := b.View(width, 900, "light"); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(fmt.Sprint(page, "?", i, "#range=-80-900&find=FunctionCall")); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+atTimelines+`
			const rect = e => e.getBoundingClientRect(), row = timelines.shown()[0].picked.r.line, dock = $("#dock"), table = $("#taken .scroll");
			const seen = () => rect(row).top > 40 && rect(row).bottom <= rect(dock).top + 1 && rect(dock).bottom <= innerHeight + 1;
			for (const end = performance.now() + 60000; !seen() && performance.now() < end;) await next(); // it scrolls smoothly
			return [seen(), table.scrollWidth <= table.clientWidth, document.documentElement.scrollWidth].join(" ");
		})()`)
		if want := fmt.Sprint("true true ", width); err != nil || got != want {
			t.Errorf("%d px: the row is in sight, the table whole, the page as wide: %q (%v), want %q", width, got, err, want)
		}
	}
}

// TestTimelineArrowsKeysAndFiles: arrows lead between rows and from what was chosen; n, N and z go on; a click is one
// finger or the left button, that stays where it is; tables are saved.
func TestTimelineArrowsKeysAndFiles(t *testing.T) {
	b := browsers.New(t)
	if err := b.Open(talking(t)); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[[]string](b, `(async () => {`+atTimelines+`
		const out = [], arrows = () => [...document.querySelectorAll(".tl-arrows")].map(svg => [...svg.children].map(p => (p.getAttribute("d").match(/M/g) || []).length).join("/")).join(" ");
		await key("0");
		out.push("all " + arrows());
		// The first arrow leads from the row of the page to the worker's, 40 ms later.
		const c = timelines.shown()[0], row = name => c.rows.find(r => r.track.name === name), scale = () => timelines.scale(c.axis.clientWidth);
		const [x1, y1, x2, y2] = document.querySelector(".tl-arrows .line").getAttribute("d").match(/[\d.-]+/g).map(Number);
		out.push("takes " + ((x2 - x1) / scale().k).toFixed(0) + " " + [[y1, "page"], [y2, "worker"]].map(([y, name]) => { const r = row(name).canvas; return y >= r.offsetTop && y <= r.offsetTop + r.clientHeight; }));
		await type("#tl-filter", "page");
		out.push("one row " + arrows());
		await type("#tl-filter", "");
		await find("job");
		for (const k of ["n", "n", "N", "N", "N"]) { await key(k); out.push([k, $("#tl-found").textContent, heading("#picked"), $("#picked .tl-at").textContent, arrows()].join("; ")); }
		await key("z");
		out.push("z " + view());
		await key("Escape"); await key("0"); await type("#tl-search", ""); await find("FunctionCall"); await key("n"); await key("z");
		out.push("z " + view());
		await key("Escape"); await key("0");
		const r = row("Requests"), first = r.track.ev.find((e, i) => c.data.flows.some(f => c.rows[f[0]] === r && f[1] === i));
		timelines.clicked[0](c, r, first);
		await next();
		out.push("request " + arrows().split(" ")[0]);

		await key("Escape"); await key("0");
		const call = c.rows.find(o => o.track.kind === "browser").canvas;
		const pointer = (kind, id, ms, o) => { const box = call.getBoundingClientRect(); call.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerId: id, button: 0, clientX: box.left + timelines.scale(box.width).x(ms), clientY: box.top + 8, ...o})); };
		const gestures = {
			right: () => { pointer("pointerdown", 1, 180, {button: 2}); pointer("pointerup", 1, 180, {button: 2}); },
			tap: () => { pointer("pointerdown", 1, 180); pointer("pointerup", 1, 180); },
			pinch: () => { pointer("pointerdown", 1, 180); pointer("pointerdown", 2, 600); pointer("pointermove", 2, 1000); pointer("pointerup", 2, 1000); pointer("pointerup", 1, 180); },
			still: () => { pointer("pointerdown", 1, 180); pointer("pointerdown", 2, 600); pointer("pointerup", 1, 180); pointer("pointerup", 2, 600); },
		};
		for (const name in gestures) { await key("Escape"); await key("0"); const before = view(); gestures[name](); await next(); out.push(name + " " + heading("#picked") + (view() === before ? "" : " and zooms")); }

		const create = URL.createObjectURL;
		let blob = null;
		URL.createObjectURL = b => { blob = b; return create.call(URL, b); };
		HTMLAnchorElement.prototype.click = () => {};
		const saved = async (name, word) => { $("[data-download$=" + name + "]").click(); return (await blob.text()).split("\r\n").filter((line, i) => i === 0 || line.includes(word)); };
		out.push(...await saved("'trial-2-timeline.csv'", "early"));
		timelines.ranged[0](150, 190, true);
		out.push(...await saved("'range.csv'", "FunctionCall"));
		return out;
	})()`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"all 2/2 2/2", "takes 40 true,true", "one row 0/0 0/0",
		`n; 1 of 10; =early, "job"; page, control, trial 2; 2/2 2/2`, `n; 2 of 10; =early, "job"; page, treatment, trial 1; 2/2 2/2`,
		`N; 1 of 10; =early, "job"; page, control, trial 2; 2/2 2/2`, "N; 10 of 10; job 2; worker, treatment, trial 1; 2/2 1/1",
		"N; 9 of 10; job 2; worker, control, trial 2; 1/1 2/2", "z 351-351", "z 159-201", "request 1/1",
		"right ", "tap FunctionCall", "pinch  and zooms", "still ",
		"track,name,start_ms,lasts_ms,start_may_be_earlier_by_ms,start_may_be_later_by_ms,facts", `page,"'=early, ""job""",-59,0,1,1,from: page`,
		`Row,Name,Control: times,Control: ms,"Control: by itself, ms",Treatment: times,Treatment: ms,"Treatment: by itself, ms","Difference, ms"`,
		`Renderer: CrRendererMain,FunctionCall,1,30.0,30.0,1,30.0,30.0,0.0`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

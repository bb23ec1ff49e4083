package panel

import (
	"context"
	"path/filepath"
	"testing"

	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report/reporttest"
)

// storagePage: somebody looks at the room, tries a policy, pins a run, and deletes what is left.
func storagePage() pageTest {
	return pageTest{"/storage", `
	await until(() => $("held").rows.length === 2 && $("runs").options.length);
	const cells = rows => [...rows].map(r => [...r.cells].map(c => c.textContent).join(", ")).join("; ");
	says.push("room: " + cells($("room").rows));
	says.push("policy: " + $("policy").textContent);
	says.push("means: " + $("means").textContent);
	says.push("delete: " + [...$("delete").rows[0].cells].filter((c, i) => i !== 1).map(c => c.textContent).join(", "));
	says.push("needed: " + cells($("needed").rows));
	says.push("held: " + cells($("held").rows));
	set($("try").elements.keep_days, "30");
	set($("try").elements.keep_gb, "1.5");
	press($("try"), "Show what it would delete");
	await until(() => $("means").textContent.startsWith("With"));
	says.push("tried: " + [$("means").textContent, location.search, decodeURIComponent($("delete-csv").href).split("\n").length].join("; "));
	set($("pin").elements.run, "20261121-101400-links");
	set($("pin").elements.why, "release 7");
	press($("pin"), "Pin");
	await until(() => $("did").textContent);
	says.push("pinned: " + $("did").textContent + " " + await fetch("/api/v1/runs/20261121-101400-links/pin").then(a => a.json()).then(p => p.why));
	await send("DELETE", "/api/v1/runs/20261121-101400-links/pin");
	press($("held"), "Unpin");
	await until(() => $("did").textContent.startsWith("That"));
	says.push("no pin: " + $("did").textContent);
	press($("deletes"), "Delete it now");
	says.push("asked: " + $("question").textContent);
	press($("sure"), "Delete");
	await until(() => !$("sure").open && document.activeElement.id === "policy-head");
	says.push("deleted: " + $("did").textContent);`, []string{
		"room: Runs, 2.00 GB, 0.2 %; Uploaded recordings, 1.50 MB, 0.0 %; Everything else, 298 GB, 29.8 %; Free, 700 GB, 70.0 %",
		"policy: Deleted every hour and when the disk is tight: evidence that is older than 90 days.",
		"means: Now the evidence of one run would go, 500 MB.",
		"delete: 20260101-000000-old, 500 MB, older than 90 days, Pin",
		"needed: 20260102-000000-release, 400 MB, it is pinned",
		"held: 20260102-000000-release, 400 MB, it is pinned, Unpin; 20261121-091400-demo, 300 MB, <b>the workflow, ",
		"tried: With these numbers the evidence of one run would go, 500 MB.; ?keep_days=30&keep_gb=1.5; 3",
		"pinned: 20261121-101400-links is pinned. release 7",
		`no pin: That did not work: there is no run "20260102-000000-release", or it has no pin.`,
		"asked: Delete the evidence of one run?",
		"deleted: The evidence of one run is deleted: 500 MB.",
	}, 1, "", `
	await until(() => $("held").rows.length === 2);
	// The test's workflow has a hostile name.
	$("held").rows[1].cells[2].textContent = "the workflow checkout replays its recording"`}
}

// noPolicy deletes nothing.
type noPolicy struct{ fakeRetainer }

func (noPolicy) Policy() retention.Policy { return retention.Policy{} }

func (noPolicy) Preview(context.Context, retention.Policy) (Retention, error) {
	nothing := retention.Decision{Delete: []retention.Deletion{}, Kept: []retention.Kept{}, Held: []retention.Kept{}}
	return Retention{Free: 7e11, Disk: 1e12, Decision: nothing}, nil
}

// Where there is no policy, the page says so, and how a box and a head get one.
func TestStorageWithoutAPolicy(t *testing.T) {
	st := newStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s := newServer(t, setup{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{}, Retainer: noPolicy{}})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/storage"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.getElementById("policy").textContent);
		return [document.getElementById("policy-head").textContent, document.getElementById("policy").textContent, document.getElementById("means").textContent].join(" | ");
	})()`)
	if want := "What is deleted by itself | Nothing is deleted by itself: there is no policy. Try one here; then write it into the configuration of the box (retention), " +
		"or start the head of a fleet with it (--keep-days, --keep-gb, --keep-free-gb). | "; err != nil || got != want {
		t.Errorf("the page says %q (%v); want %q", got, err, want)
	}
}

package panel

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

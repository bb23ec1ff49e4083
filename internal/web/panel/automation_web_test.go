package panel

// automationPage: a workflow is run, scheduled and removed, and a webhook is made and tested.
func automationPage() pageTest {
	return pageTest{"/automation", `
	const dialog = async text => {
		press($("sure"), text);
		await until(() => !$("sure").open || text === "Remove" && !$("yes").disabled);
		if ($("sure").open) throw new Error("the dialog is open: " + $("question").textContent + " " + $("kept").textContent);
	};
	await until(() => seen("no-workflows"));
	says.push("empty: " + [seen("no-workflows"), $("no-schedules").textContent, seen("schedule"), seen("no-hooks"), seen("no-deliveries")].join("; "));
	await send("PUT", "/api/v1/workflows/checkout", { plan: { page: "https://a.test/?" + encodeURIComponent("x") + evil, name: evil, trials: 3 }, tags: ["team-a"] });
	await until(() => $("workflows").rows.length === 1); // the page looks by itself
	press($("workflows"), "Run");
	await until(() => $("did").textContent.includes("queue"));
	says.push("run: " + $("did").textContent.replace(/Run \S+/, "Run ID"));

	const schedule = $("schedule").elements, alert = $("schedule").querySelector("[role=alert]");
	set(schedule.name, "nightly"); set(schedule.every, "5 bananas");
	press($("schedule"), "Make schedule");
	await until(() => alert.textContent);
	says.push("refused: " + alert.textContent);
	set(schedule.every, "2h");
	const bounds = () => [...$("schedule").querySelectorAll("[data-bisects]")].filter(l => l.checkVisibility()).length, before = bounds();
	set(schedule.repository, "shop"); set(schedule.minutes, "300");
	says.push("bounds: " + [before, bounds()].join("; "));
	press($("schedule"), "Make schedule");
	await until(() => $("schedules").rows.length === 1);
	press($("schedules"), "Times");
	await until(() => seen("firings"));
	says.push("schedule: " + [$("schedules").rows[0].cells[2].textContent, $("no-times").textContent, document.activeElement.textContent, Boolean(schedule.name.value)].join("; "));
	press($("schedules"), "Pause");
	await until(() => $("schedules").rows[0].cells[3].textContent === "paused");
	press($("schedules"), "Change");
	set(schedule.kind, "cron"); set(schedule.cron, "30 2 * * 1-5"); set(schedule.zone, "Europe/Berlin");
	press($("schedule"), "Change nightly");
	await until(() => $("schedules").rows[0].cells[2].textContent.startsWith("30"));
	press($("schedules"), "Go on");
	await until(() => $("schedules").rows[0].cells[3].textContent !== "paused");
	const kept = (await (await fetch("/api/v1/schedules/nightly")).json()).bisect;
	says.push("changed: " + [$("schedules").rows[0].cells[1].textContent, $("schedules").rows[0].cells[2].textContent, JSON.stringify(kept)].join("; "));

	press($("workflows"), "Remove");
	press($("sure"), "Remove");
	await until(() => $("kept").textContent);
	says.push("in use: " + $("kept").textContent);
	await dialog("Keep");
	press($("schedules"), "Remove"); await dialog("Remove");
	await until(() => !$("schedules").rows.length);
	press($("workflows"), "Remove"); await dialog("Remove");
	await until(() => !$("workflows").rows.length && document.activeElement.id === "workflows-head");
	says.push("removed: " + seen("no-workflows"));

	const hook = $("hook").elements;
	set(hook.name, "chat"); set(hook.url, "http://127.0.0.1:1/?" + evil); hook.events[1].click();
	press($("hook"), "Make webhook");
	await until(() => seen("made"));
	await until(() => $("hooks").rows.length === 1);
	says.push("webhook: " + [$("hooks").rows[0].cells[2].textContent, $("secret").textContent.slice(0, 6)].join("; "));
	press($("hooks"), "Test");
	await until(() => $("deliveries").rows.length === 1);
	$("deliveries").querySelector("summary").click();
	says.push("delivery: " + [...$("deliveries").rows[0].cells].slice(1, 4).map(c => c.textContent.replace(/tried.*/, "").replace(/\s+/g, " ")).join("; ").replace(/"timestamp": "[^"]*"/, "time"));
	press($("hooks"), "Pause");
	await until(() => $("hooks").rows[0].cells[3].textContent === "paused");
	press($("hooks"), "Remove"); await dialog("Remove");
	await until(() => !$("hooks").rows.length);`, []string{
		"empty: true; There are no schedules yet. Keep a plan as a workflow first; then a schedule can start it.; false; true; true",
		"run: Run ID waits in the queue.",
		`refused: every: "5 bananas": write whole seconds, of 1m to 31d, such as 2h, 90m or 1d`,
		"bounds: 0; 2",
		"schedule: every 2h; It was not due yet: the table above says when it is.; Times of nightly; false",
		`changed: checkoutof shop; 30 2 * * 1-5 (Europe/Berlin); {"repository":"shop","minutes":300}`,
		`in use: That did not work: workflow "checkout": a schedule starts it: remove that first.`,
		"removed: true",
		"webhook: alert.raised; whsec_",
		`delivery: webhook.test{ "type": "webhook.test", time, "data": { "webhook": "chat", "by": "this machine" } }; chat; waiting`,
	}, 0, "", `
	await send("PUT", "/api/v1/workflows/checkout", { plan: { page: "https://www.shop.example/" }, tags: ["team-checkout"] });
	await send("PUT", "/api/v1/schedules/nightly", { workflow: "checkout", cron: "30 2 * * 1-5", zone: "Europe/Berlin", bisect: { repository: "shop" } });
	await send("POST", "/api/v1/webhooks", { name: "chat", url: "http://127.0.0.1:1/eidetic" });
	await until(() => $("hooks").rows.length && $("schedules").rows.length);
	press($("hooks"), "Test");
	await until(() => $("deliveries").rows.length);
	$("did").textContent = ""`}
}

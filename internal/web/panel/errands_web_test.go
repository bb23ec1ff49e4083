package panel

// errandPage: a film waits for its trigger, is ended and kept, and leads to its frames; the noise is shown.
func errandPage() pageTest {
	return pageTest{"/device?name=a%20desk%2F2", `
	const shown = () => [...document.querySelectorAll("#errand button")].filter(b => b.checkVisibility() && !b.disabled).map(b => b.textContent).join(", ");
	await until(() => shown());
	says.push("new: " + shown());
	const form = document.querySelector("#errand form").elements;
	set(form.title, evil); set(form.seconds, "3"); set(form.before, "5");
	press($("errand"), "Film it now");
	await until(() => seen("trigger"));
	says.push("waiting: " + shown() + "; " + $("errand-says").textContent.replace(/[0-9]+ s$/, "N s"));
	press($("errand"), "It has happened");
	await until(() => seen("keep"));
	says.push("working: " + shown());
	press($("errand"), "Stop and keep");
	await until(() => $("errand-result").textContent);
	says.push("kept: " + $("errand-says").textContent + "; " + [...document.querySelectorAll("#errand-result a")].map(a => a.getAttribute("href")).join(" "));
	press($("errand"), "Show its noise");
	await until(() => $("errand-says").textContent.startsWith("Noise"));
	says.push($("errand-says").textContent + "; " + $("errand-result").textContent + "; " + shown());`,
		[]string{
			"new: Film it now, Record what it asks for, Qualify its grabber, Show its noise",
			"waiting: It has happened, Cancel; Film: keeping the last 5s until the trigger; ends by itself in N s",
			"working: Stop and keep, Cancel",
			"kept: Film: done; 300 frames; it has a note; /trial?run=20261121-091400-film " +
				"/api/v1/runs/20261121-091400-film/artifacts/trials/001/evidence.webm /api/v1/runs/20261121-091400-film/artifacts/trials/001/screen.reel " +
				"/run?run=20261121-091400-film",
			"Noise: a pixel moves by up to 3 of 255, 8 × 8 pixels together by up to 0.5; Seen for certain is a change on a flat ground " +
				"1 pixel by 10 of 255, 8 × 8 pixels by 2. v4l2:/dev/video0, 1920 × 1080 YUYV at 60/s.; " +
				"Film it now, Record what it asks for, Qualify its grabber, Show its noise",
		}, 0, "", ""}
}

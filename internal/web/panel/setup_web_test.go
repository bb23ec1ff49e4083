package panel

import "time"

// phone is a device that goes on with its set-up whenever the controls of the other one are given back.
func (f *fakeSeats) phone() Device {
	f.mu.Lock()
	defer f.mu.Unlock()
	const evil = `<img src=x onerror="document.title='owned'">`
	d := Device{Name: "phone", Kind: "port", Port: "wlan0", Problem: "what is plugged in has asked for no address yet (DHCP)",
		WiFi: &WiFi{SSID: evil, Passphrase: "abcd-efgh", QR: "WIFI:T:WPA;S:x;P:abcd-efgh;;"},
		Parts: []DevicePart{{Part: "screen", Use: "v4l2:/dev/video0", Problem: "there is no signal: " + evil},
			{Part: "controls", Use: "adb:" + evil, Ready: true, State: "connected"}}}
	if f.released > 0 {
		d.Problem, d.Address, d.Host, d.SetUp = "", "192.168.78.100", evil, &SetUp{}
	}
	if now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC); f.released > 1 {
		d.SetUp.Opened, d.SetUp.Trusted, d.Ready = &now, &now, true
		d.Parts[0] = DevicePart{Part: "screen", Use: "v4l2:/dev/video0", Ready: true, State: "1920 × 1080 at 60 Hz"}
	}
	return d
}

// devicePage: a phone is set up, and each check turns green when the phone has done it.
func devicePage() pageTest {
	return pageTest{"/device?name=phone", `
	const marks = () => [...document.querySelectorAll("#checks .mark")].map(m => m.textContent).join(", ");
	const goOn = () => send("DELETE", "/api/v1/devices/a%20desk%2F2/driver");
	await until(() => marks().split(", ").length === 5);
	says.push("new: " + marks());
	await until(() => [...document.querySelectorAll("#checks .code")].every(i => i.complete && i.naturalWidth > 20));
	says.push("codes: " + [...document.querySelectorAll("#checks .code")].map(i => i.alt).join("; "));
	await goOn();
	await until(() => $("check-join").className === "done");
	says.push("joined: " + marks() + "; " + $("check-join").querySelector(".hint").textContent + "; how: " + seen("how"));
	await goOn();
	await until(() => $("ready").textContent);
	says.push("ready: " + marks() + "; " + $("ready").textContent + "; how: " + seen("how"));`,
		[]string{
			"new: to do, to do, to do, to do, done",
			`codes: QR code of the Wi-Fi <img src=x onerror="document.title='owned'">; QR code of http://box.test/`,
			`joined: done, to do, to do, to do, done; It has the address 192.168.78.100, and calls itself <img src=x onerror="document.title='owned'">.; how: true`,
			"ready: done, done, done, done, done; All is set up: start a run.; how: false",
		}, 0, "", ""}
}

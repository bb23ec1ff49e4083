package device

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// quietPrefs keep Firefox from requests that the page did not cause.
func quietPrefs() map[string]any {
	return map[string]any{
		"app.update.enabled": false, "app.update.disabledForTesting": true, "app.normandy.enabled": false,
		"app.shield.optoutstudies.enabled":       false,
		"browser.safebrowsing.downloads.enabled": false, "browser.safebrowsing.malware.enabled": false,
		"browser.safebrowsing.phishing.enabled": false, "browser.safebrowsing.provider.mozilla.updateURL": "",
		"browser.region.network.url": "", "browser.region.update.enabled": false, "browser.search.update": false,
		"browser.newtabpage.enabled": false, "browser.newtab.preload": false,
		"browser.newtabpage.activity-stream.feeds.system.topstories": false, "browser.topsites.contile.enabled": false,
		"browser.contentblocking.report.lockwise.enabled": false, "browser.ml.enable": false, "browser.ping-centre.telemetry": false,
		"datareporting.healthreport.uploadEnabled": false, "datareporting.policy.dataSubmissionEnabled": false,
		"dom.push.connection.enabled": false, "extensions.update.enabled": false, "extensions.getAddons.cache.enabled": false,
		"extensions.systemAddon.update.enabled": false, "extensions.blocklist.enabled": false, "geo.provider.network.url": "",
		"media.gmp-manager.updateEnabled": false, "media.gmp-manager.url": "", "messaging-system.rsexperimentloader.enabled": false,
		"network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false,
		"network.dns.disablePrefetch": true, "network.trr.mode": 5, "nimbus.rollouts.enabled": false,
		"security.OCSP.enabled": 0, "security.remote_settings.intermediates.enabled": false,
		"security.remote_settings.crlite_filters.enabled": false, "services.settings.server": "data:,#remote-settings-dummy/v1",
		"signon.management.page.breach-alerts.enabled": false, "toolkit.telemetry.enabled": false, "toolkit.telemetry.server": "",
		"toolkit.telemetry.unified": false,
	}
}

// calmPrefs keep windows and bars of Firefox's own off the screen, and drawing the same on
// every machine.
func calmPrefs() map[string]any {
	return map[string]any{
		"browser.aboutwelcome.enabled": false, "browser.shell.checkDefaultBrowser": false,
		"browser.startup.homepage_override.mstone": "ignore", "browser.startup.page": 1, "browser.startup.homepage": "about:blank",
		"browser.startup.firstrunSkipsHomepage": false, "startup.homepage_welcome_url": "", "startup.homepage_override_url": "",
		"browser.sessionstore.resume_from_crash": false, "toolkit.startup.max_resumed_crashes": -1,
		"browser.translations.enable": false, "browser.translations.automaticallyPopup": false, "browser.warnOnQuit": false,
		"datareporting.policy.dataSubmissionPolicyBypassNotification": true, "termsofuse.bypassNotification": true,
		"browser.preonboarding.enabled": false,
		"dom.security.https_first":      false, "dom.security.https_only_mode": false, "full-screen-api.warning.timeout": 0,
		"intl.accept_languages": "en-GB, en", "layout.css.devPixelsPerPx": "1", "gfx.webrender.software": true,
		"gfx.color_management.mode": 0, "layers.acceleration.disabled": true, "signon.rememberSignons": false,
		"security.enterprise_roots.enabled": false, "widget.gtk.overlay-scrollbars.enabled": false,
		"network.http.http3.enable": false,
		// No bar above the page, or window over it, tells of popups that were refused, protected media, a script that
		// computes for long, a caught pointer, a password over plain HTTP, a saved file, or offers to keep an address or a
		// card.
		"privacy.popups.showBrowserMessage": false, "browser.eme.ui.enabled": false, "dom.max_script_run_time": 0,
		"pointer-lock-api.warning.timeout": 0, "security.insecure_field_warning.contextual.enabled": false,
		"browser.download.alwaysOpenPanel": false, "browser.download.panel.shown": true,
		"extensions.formautofill.addresses.enabled": false, "extensions.formautofill.creditCards.enabled": false,
		// A document that came by POST is asked for again by POST, as in Chromium.
		"dom.confirm_repost.testing.always_accept": true,
		// It asks nobody which program is to write a letter, over the page: there is none in a trial.
		"network.protocol-handler.external.mailto": false,
		// The processes that it has in stock are born when it starts, and not a second later, within a load.
		"dom.ipc.processPrelaunch.delayMs": 0,
	}
}

// writePrefs writes the preferences of a profile; a plan's own go before ours, and those of the
// profile's user.js stay unless we set them.
func writePrefs(profile string, b lab.Browser) error {
	all := quietPrefs()
	maps.Copy(all, calmPrefs())
	if b.Scale != 0 {
		all["layout.css.devPixelsPerPx"] = strconv.FormatFloat(b.Scale, 'g', -1, 64)
	}
	if b.Draw == lab.DrawGL {
		maps.Copy(all, map[string]any{"gfx.webrender.software": false, "gfx.webrender.all": true, "layers.acceleration.disabled": false,
			"layers.acceleration.force-enabled": true})
	}
	switch b.Scheme {
	case "dark":
		all["layout.css.prefers-color-scheme.content-override"] = 0
	case "light":
		all["layout.css.prefers-color-scheme.content-override"] = 1
	}
	for _, p := range b.Prefs {
		name, value, _ := strings.Cut(p, "=")
		all[name] = prefOf(value)
	}
	file := filepath.Join(profile, "user.js")
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var text strings.Builder
	text.Write(before)
	text.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, err := json.Marshal(all[name])
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "user_pref(%q, %s);\n", name, value)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// prefOf is a preference's value: a truth value, a whole number, or a text.
func prefOf(text string) any {
	if text == "true" || text == "false" {
		return text == "true"
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return n
	}
	return text
}

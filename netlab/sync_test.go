package netlab

import (
	"net/url"
	"strings"
	"testing"
)

func TestSyncURL(t *testing.T) {
	long := strings.Repeat("abcdefghi.", 24) + "test"
	for page, want := range map[string]string{
		"https://www.shop.test/?a=1&b": "https://eidetic-sync.www.shop.test/.well-known/eidetic/sync",
		"http://WWW.Shop.Test.:8080/":  "http://eidetic-sync.www.shop.test/.well-known/eidetic/sync",
		"http://localhost:3000/":       "http://localhost:61080/.well-known/eidetic/sync",
		"https://192.168.1.9/":         "https://192.168.1.9:61080/.well-known/eidetic/sync",
		"http://[2001:db8::1]:80/":     "http://[2001:db8::1]:61080/.well-known/eidetic/sync",
		"https://" + long + "/":        "https://" + long + ":61080/.well-known/eidetic/sync",
		"%":                            "http://box.test/sync",
	} {
		got := SyncURL(page)
		at, query, _ := strings.Cut(got, "?")
		if next, ok := unseal(strings.TrimPrefix(query, sealedQuery)); at != want || !ok || next != page {
			t.Errorf("SyncURL(%q)\n= %s, which leads to %q\nwant %s, which leads to the page", page, got, next, want)
		}
		if u, err := url.Parse(got); err != nil || page != "%" && !isSync(u) {
			t.Errorf("%s: parsed with %v, is no address of the page", got, err)
		}
	}
	for _, other := range []string{
		"https://www.shop.test/.well-known/eidetic/sync", "https://eidetic-sync.www.shop.test/", "http://localhost:61080/sync",
		"http://localhost:3000/.well-known/eidetic/sync",
	} {
		u, err := url.Parse(other)
		if err != nil {
			t.Fatal(err)
		}
		if isSync(u) {
			t.Errorf("%s is an address of the page", other)
		}
	}
}

// TestSyncPageOfASite asks for the green page on the site of a recorded page and on its host, as a browser would.
func TestSyncPageOfASite(t *testing.T) {
	n, authority := startNetwork(t, nil)
	d := newDevice(t, n, authority, false)
	if status, body, _ := d.get(t, strings.Replace(SyncURL("https://www.shop.test/"), sealedQuery, sealedQuery+"A", 1)); status != 400 {
		t.Errorf("of an address that was not sealed here: status %d: %s", status, body)
	}
	for _, page := range []string{"https://www.shop.test/", "http://www.shop.test/"} {
		status, body, _ := d.get(t, SyncURL(page))
		if status != 200 || !strings.Contains(body, "#00ff00") || !strings.Contains(body, `location.replace("`+page) {
			t.Errorf("%s: status %d: %s", SyncURL(page), status, body)
		}
	}
}

// The green page tells how long a layout took in it, which is of the network's present arming alone; what is no such
// number is left out.
func TestSyncPageTellsItsMeter(t *testing.T) {
	n, authority := startNetwork(t, nil)
	d := newDevice(t, n, authority, false)
	at, _, _ := strings.Cut(SyncURL("https://www.shop.test/"), "?")
	if _, body, _ := d.get(t, SyncURL("https://www.shop.test/")); !strings.Contains(body, `"sync?`+meterQuery+`"`) {
		t.Errorf("the page has no meter: %s", body)
	}
	for _, told := range []string{"", "-3", "x", "NaN", "1e99", "0", "41.123456789012"} {
		if status, _, _ := d.get(t, at+"?"+meterQuery+told); status != 204 {
			t.Errorf("%q: status %d, want 204", told, status)
		}
		if ms, ok := n.PageMeter(); ok {
			t.Errorf("%q is taken for %v ms", told, ms)
		}
	}
	d.get(t, at+"?"+meterQuery+"41.25")
	if ms, ok := n.PageMeter(); !ok || ms != 41.25 {
		t.Errorf("PageMeter() = %v, %v; want 41.25", ms, ok)
	}
	n.Disarm()
	if ms, ok := n.PageMeter(); ok {
		t.Errorf("PageMeter() = %v after Disarm; want none", ms)
	}
}

package main

import (
	"slices"
	"strings"
	"testing"

	"eidetic/image/debian"
	"eidetic/image/pack"
)

// leftOut matches the files that the image leaves out.
func leftOut(t *testing.T) *pack.Globs {
	t.Helper()
	pruned, err := debian.ReadList("../prune.txt")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := pack.NewGlobs(pruned)
	if err != nil {
		t.Fatal(err)
	}
	return gone
}

// TestFirmwareOfDrivers: each Wi-Fi driver that needs firmware comes with it, and the firmware with its licence.
func TestFirmwareOfDrivers(t *testing.T) {
	packages := map[string]string{
		"ath": "firmware-atheros", "intel": "firmware-iwlwifi", "mediatek": "firmware-misc-nonfree", "realtek": "firmware-realtek",
	}
	drivers, err := debian.ReadList("../modules-wifi.txt")
	if err != nil {
		t.Fatal(err)
	}
	gone := leftOut(t)
	for _, driver := range drivers {
		vendor, ok := strings.CutPrefix(driver, "drivers/net/wireless/")
		vendor, _, _ = strings.Cut(vendor, "/")
		if name := packages[vendor]; !ok || name == "" || !slices.Contains(wifiPackages(), name) {
			t.Errorf("the firmware of %s is in no package of the image: %q", driver, wifiPackages())
		} else if gone.Match("usr/share/doc/" + name + "/copyright") {
			t.Errorf("the image leaves out the licence of %s", name)
		}
	}
	for _, file := range []string{
		"mediatek/WIFI_RAM_CODE_MT7961_1.bin", "mediatek/mt7615_n9.bin", "rtw88/rtw8822c_fw.bin", "ath10k/QCA988X/hw2.0/board.bin",
		"regulatory.db",
	} {
		if gone.Match("usr/lib/firmware/" + file) {
			t.Errorf("the image leaves out the firmware %s", file)
		}
	}
	if !gone.Match("usr/share/doc/adb/copyright") || !gone.Match("usr/lib/firmware/i915/tgl_huc.bin") {
		t.Error("the image keeps what is not of Wi-Fi")
	}
}

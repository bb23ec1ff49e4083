//go:build guest

package box

import (
	"testing"
)

// TestOnTheBox runs on the booted box, with the real firmware, sysfs and netlink.
func TestOnTheBox(t *testing.T) {
	disk, err := BootDisk("/")
	if err != nil || disk != (Disk{"/dev/vda1", "/dev/vda"}) {
		t.Errorf("booted from %+v, %v; the virtual machine's first disk is /dev/vda", disk, err)
	}
	links, err := KernelLinks()
	if err != nil {
		t.Fatal(err)
	}
	leased := 0
	for _, l := range links {
		t.Logf("%s %v", l.Name, l.Address)
		if l.Address.IsValid() {
			leased++
		}
	}
	if len(links) != 2 || leased != 1 {
		t.Errorf("%d ports, %d with a lease; want 2 and 1, as in the virtual machine", len(links), leased)
	}
	version, err := Updater{Root: "/"}.version()
	if err != nil || version == "" {
		t.Errorf("version %q, %v", version, err)
	}
}

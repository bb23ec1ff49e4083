package netlab

import (
	"cmp"
	"slices"
	"strconv"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/dns"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
)

// prepared is what trials of one archive share.
type prepared struct {
	archive *archive.Archive
	script  inject.Options
	replay  *replay.Prepared
	table   *dns.Table
	ports   []uint16 // TCP ports other than 80 and 443
}

// ready prepares a, unless it was the last one that was prepared.
func (p *prepared) ready(a *archive.Archive, o replay.Options) error {
	o.Inject.Seed = cmp.Or(o.Seed, o.Inject.Seed)
	script := replay.InjectOptions(a, o.Inject)
	if p.archive == a && p.script == script {
		return nil
	}
	r, err := replay.Prepare(a, script)
	if err != nil {
		return err
	}
	*p = prepared{archive: a, script: script, replay: r, table: tableOf(a), ports: portsOf(a)}
	return nil
}

// portsOf returns the TCP ports of the archive's origins beyond 80 and 443, in
// ascending order.
func portsOf(a *archive.Archive) (ports []uint16) {
	for _, e := range a.Exchanges() {
		u := lab.ParseURL(e.URL)
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err == nil && n != 0 && n != 80 && n != 443 {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

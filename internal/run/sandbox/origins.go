package sandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/run/device"
	"eidetic/netlab/proxy"
)

// errBothOrigins refuses to record the sample site and another one in a run.
var errBothOrigins = errors.New("page of the treatment: one page is the sample site's and the other is not; " + // constant
	"record one of them first (appliance record)")

// OriginsOf finds out where the pages come from that a plan needs: the sample site's are served here.
func OriginsOf(p lab.Plan) (kind string, err error) {
	for _, a := range p.Every() {
		if a.Archive != "" && p.Miss != lab.MissFill {
			continue
		}
		u := lab.ParseURL(a.Page)
		from := OriginsOutside
		if _, ours := samplesite.Hosts()[u.Hostname()]; ours {
			from = OriginsSample
		}
		if kind != OriginsNone && kind != from {
			return "", errBothOrigins
		}
		kind = from
	}
	return kind, nil
}

// origins is the sample site in a process and a namespace of its own.
type origins struct {
	command   []string // the sample site's
	seed      *uint64  // what the site draws from, so that every recording is of the same page; nil: another page each time
	namespace *device.Namespace
	service   *device.Service
}

// start brings the site up and returns how it is reached.
func (o *origins) start(ctx context.Context) (*proxy.UpstreamConfig, error) {
	addresses := map[netip.Addr]bool{samplesite.Resolver().Addr(): true}
	for _, a := range samplesite.Hosts() {
		addresses[a] = true
	}
	var list []netip.Addr
	for a := range addresses {
		list = append(list, a)
	}
	var err error
	if o.namespace, err = device.NewOrigins(list...); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "origins-")
	if err != nil {
		return nil, err
	}
	pem := filepath.Join(dir, "ca.pem")
	args := append(slices.Clone(o.command[1:]), "--ca-out", pem)
	if o.seed != nil {
		args = append(args, "--seed", strconv.FormatUint(*o.seed, 10))
	}
	cmd := exec.Command(o.command[0], args...)
	if o.service, err = o.namespace.StartService(ctx, "the sample site", cmd, "ready"); err != nil {
		return nil, err
	}
	roots, err := os.ReadFile(pem)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, fmt.Errorf("%s holds no certificate", pem)
	}
	return &proxy.UpstreamConfig{Resolver: samplesite.Resolver(), Roots: pool}, nil
}

// stop ends the origins and unplugs the uplink; it may be called twice.
func (o *origins) stop() {
	if o.service != nil {
		o.service.Stop()
		o.service = nil
	}
	if o.namespace != nil {
		_ = device.Unplug(device.UplinkPort) // fails when the namespace could not be made, and there is no uplink then
		o.namespace.Close()
		o.namespace = nil
	}
}

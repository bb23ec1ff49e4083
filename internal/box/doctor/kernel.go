package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"eidetic/internal/base/priority"
	"eidetic/internal/lab"
	"eidetic/internal/run/counters"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/ca"
	"eidetic/netlab/link"
	"eidetic/netlab/link/packet"
	"eidetic/netlab/netspace"
	"eidetic/netlab/port"
)

// kernelCheck is a check that tries something out in namespaces.
type kernelCheck struct {
	Finding
	// try returns what was found.
	try    func(ctx context.Context) (string, error)
	remedy string
}

// kernelChecks are the checks that run in namespaces.
func kernelChecks() []kernelCheck {
	return []kernelCheck{
		{Finding{Name: "packet", For: "links: exact, on every kernel"}, tryPacket, "run as root, or allow packet sockets (CAP_NET_RAW)"},
		{Finding{Name: "port", For: "devices by cable: addresses, names, filter, redirection"}, tryPort,
			"use a kernel with nf_tables (inet and netdev families), nft_tproxy and nft_reject_inet; Debian's has them"},
		{Finding{Name: "sandbox", For: "browsers that a page cannot leave"}, trySandbox, "measure pages that you trust with --no-sandbox"},
		{Finding{Name: "cubic", For: "sockets that are the same on every machine"}, tryCubic, "modprobe tcp_cubic"},
		{Finding{Name: "realtime", For: "links and recorders in time on a busy machine"}, tryRealtime,
			"run as root, or allow it to your user: a line 'NAME - rtprio 20' in /etc/security/limits.conf, then log in again " +
				"(LimitRTPRIO=20 in a unit)"},
		{Finding{Name: "counters", For: "what a browser costs: instructions, page faults, context switches"}, tryCounters,
			"sysctl kernel.perf_event_paranoid=1, or run as root"},
	}
}

// checkKernel runs the kernel's checks in namespaces, or says of each that it
// could not be tried.
func checkKernel(ctx context.Context, inside []string) (list []Finding, err error) {
	if isolate.Available(ctx) != nil {
		for _, c := range kernelChecks() {
			list = append(list, c.bad("not tried, because namespaces cannot be made", "see namespaces"))
		}
		return list, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	result := make(chan error, 1)
	go func() {
		err := isolate.Run(ctx, inside, w)
		_ = w.Close() // the reader sees the end
		result <- err
	}()
	text, readErr := io.ReadAll(io.LimitReader(r, 1<<20))
	var exit *exec.ExitError
	if err := <-result; err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if err := errors.Join(readErr, json.Unmarshal(text, &list)); err != nil {
		return nil, fmt.Errorf("trying out the kernel: %w", err)
	}
	return list, nil
}

// checkLimit bounds one check of the kernel.
const checkLimit = 20 * time.Second

// CheckInside makes the kernel's checks in the namespaces that this process is
// the first of, and writes the findings to out for [Check].
func CheckInside(ctx context.Context, out io.Writer) error {
	if err := isolate.Mount(isolate.Mounts{TempSize: 64 << 20}); err != nil {
		return err
	}
	var list []Finding
	for _, c := range kernelChecks() {
		ctx, cancel := context.WithTimeout(ctx, checkLimit)
		found, err := c.try(ctx)
		cancel()
		var refused *isolate.Refusal
		switch {
		case errors.As(err, &refused):
			list = append(list, c.bad(refused.Err.Error(), refused.Remedy()+"; or say --no-sandbox"))
			continue
		case err != nil:
			list = append(list, c.bad(err.Error(), c.remedy))
			continue
		}
		list = append(list, c.good(found))
	}
	return json.NewEncoder(out).Encode(list)
}

// cable makes a veth pair in this namespace, for one check.
func cable(name, peer string) (remove func(), err error) {
	here, err := netspace.Here()
	if err != nil {
		return nil, err
	}
	defer here.Close()
	if err := netspace.Veth(here, name, here, peer); err != nil {
		return nil, err
	}
	return func() {
		if l, err := netlink.LinkByName(name); err == nil {
			_ = netlink.LinkDel(l) // the namespace ends soon
		}
	}, nil
}

// tryCounters counts as a run on the virtual device does.
func tryCounters(context.Context) (string, error) { return counters.Here() }

func tryPacket(context.Context) (string, error) {
	removeDevice, err := cable("d0", "d1")
	if err != nil {
		return "", err
	}
	defer removeDevice()
	removeLab, err := cable("l0", "l1")
	if err != nil {
		return "", err
	}
	defer removeLab()
	p, err := packet.New(packet.Config{Device: "d0", Lab: "l0", Profile: link.Profile{Name: "native"}, Clock: lab.Monotonic})
	if err != nil {
		return "", err
	}
	return "works", p.Close()
}

func tryPort(ctx context.Context) (string, error) {
	remove, err := cable("p0", "p1")
	if err != nil {
		return "", err
	}
	defer remove()
	authority, err := ca.New(time.Now)
	if err != nil {
		return "", err
	}
	p, err := port.Start(ctx, port.Config{Interface: "p0", CA: authority, Clock: lab.Monotonic, Wall: time.Now})
	if err != nil {
		return "", err
	}
	s, err := p.Status()
	found := "works"
	if len(s.Limits) > 0 {
		found += ", but " + strings.Join(s.Limits, "; ")
	}
	return found, errors.Join(err, p.Close())
}

func trySandbox(ctx context.Context) (string, error) {
	here, err := netspace.Here()
	if err != nil {
		return "", err
	}
	defer here.Close()
	if _, err := isolate.ProbeSandbox(ctx, here.Do); err != nil {
		return "", err
	}
	return "works", nil
}

func tryCubic(context.Context) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	before, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", err
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"); err != nil {
		return "", fmt.Errorf("no cubic: %w", err)
	}
	return "works; this machine's own default is " + before, nil
}

func tryRealtime(context.Context) (string, error) {
	type answer struct {
		got int
		err error
	}
	result := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its priority end with the goroutine
		got, err := priority.Realtime(0, priority.Link, false)
		result <- answer{got, err}
	}()
	a := <-result
	if a.err != nil {
		return "", fmt.Errorf("not allowed, so that a busy machine has wider tolerances: %w", a.err)
	}
	if a.got < 2 {
		return fmt.Sprintf("allowed, priority %d: the link is not before the recorder", a.got), nil
	}
	return fmt.Sprintf("allowed, priority %d", a.got), nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/netlab/netspace"
)

// wire is a tcpdump on an interface. Its times are the kernel's, without the time that
// programs need to wake up.
type wire struct {
	cmd   *exec.Cmd
	done  chan struct{}
	mu    sync.Mutex
	lines []string
}

// listen starts tcpdump on an interface of a namespace.
func listen(ns *netspace.Namespace, name string) (*wire, error) {
	path, err := program("tcpdump", "tcpdump")
	if err != nil {
		return nil, err
	}
	// It reads the kernel's buffer once a second. In immediate mode every packet would
	// wake it, and it would take processor time from the programs that are measured.
	w := &wire{cmd: exec.Command(path, "-i", name, "-n", "-tt", "-l", "-q", "-B", "16384", "-s", "96",
		"--time-stamp-precision=nano"), done: make(chan struct{})}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	complaints, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	if err := ns.Do(w.cmd.Start); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	go func() {
		defer close(w.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			w.mu.Lock()
			w.lines = append(w.lines, s.Text())
			w.mu.Unlock()
		}
	}()
	// It prints when it listens.
	var said strings.Builder
	for s := bufio.NewScanner(complaints); s.Scan(); {
		fmt.Fprintln(&said, s.Text())
		if strings.Contains(s.Text(), "listening on") {
			go func() { _, _ = io.Copy(io.Discard, complaints) }()
			return w, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("listen on %s: tcpdump said: %s", name, said.String()), w.cmd.Wait())
}

// seenPacket is a packet that tcpdump saw.
type seenPacket struct {
	at   time.Duration // of the wall clock
	what string        // tcpdump's description
}

// stop ends tcpdump and returns what it saw, in order.
func (w *wire) stop() ([]seenPacket, error) {
	// The kernel buffers packets for up to a second, so tcpdump has all when it printed
	// nothing for longer.
	for n := -1; ; {
		w.mu.Lock()
		now := len(w.lines)
		w.mu.Unlock()
		if now == n {
			break
		}
		n = now
		<-time.After(1200 * time.Millisecond)
	}
	if err := w.cmd.Process.Kill(); err != nil {
		return nil, fmt.Errorf("end tcpdump: %w", err)
	}
	<-w.done
	_ = w.cmd.Wait() // reports that tcpdump was killed
	var out []seenPacket
	for _, line := range w.lines {
		at, what, _ := strings.Cut(line, " ")
		seconds, fraction, _ := strings.Cut(at, ".")
		s, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			continue // of a packet that takes two lines
		}
		ns, err := strconv.ParseInt(fraction, 10, 64)
		if err != nil || len(fraction) != 9 {
			return nil, fmt.Errorf("tcpdump gave the time as %q, want nanoseconds", at)
		}
		out = append(out, seenPacket{time.Duration(s)*time.Second + time.Duration(ns), what})
	}
	return out, nil
}

var echo = regexp.MustCompile(`ICMP echo (request|reply), id (\d+), seq (\d+)`)

// roundTrips returns how long each echo took, and how many had no answer.
func roundTrips(packets []seenPacket) (rtts []time.Duration, lost int) {
	asked := map[string]time.Duration{}
	for _, p := range packets {
		m := echo.FindStringSubmatch(p.what)
		if m == nil {
			continue
		}
		key := m[2] + " " + m[3]
		if m[1] == "request" {
			asked[key] = p.at
		} else if at, ok := asked[key]; ok {
			rtts = append(rtts, p.at-at)
			delete(asked, key)
		}
	}
	return rtts, len(asked)
}

// transfer is a TCP connection seen on the wire, from its SYN.
type transfer struct {
	client  string        // its port
	end     time.Duration // when the last byte came, by the wall clock
	connect time.Duration // until the SYN was answered
	first   time.Duration // until the first byte of data came
	whole   time.Duration // until the last byte came
	bytes   int           // of the data
	// came is when each packet of data came, and sizes how much.
	came  []time.Duration
	sizes []int
	// rounds is the time from each request to the first byte of its answer.
	rounds []time.Duration
}

var tcp = regexp.MustCompile(`IP \S+?\.(\d+) > \S+?\.(\d+): tcp (\d+)`)

// transfers returns the connections to a port in the order of their SYNs, with the
// data to the port (up) or from it.
func transfers(packets []seenPacket, port string, up bool) (list []transfer) {
	type client struct {
		index        int
		began, asked time.Duration
	}
	clients := map[string]*client{} // by port
	for _, p := range packets {
		m := tcp.FindStringSubmatch(p.what)
		if m == nil {
			continue
		}
		fromClient := m[2] == port
		name := m[1]
		if !fromClient {
			name = m[2]
		}
		n, _ := strconv.Atoi(m[3]) // the expression has digits only
		c := clients[name]
		switch {
		case c == nil && fromClient:
			c = &client{index: len(list), began: p.at}
			clients[name], list = c, append(list, transfer{client: name})
		case c == nil || !fromClient && m[1] != port:
			continue
		}
		t, since := &list[c.index], p.at-c.began
		switch {
		case fromClient && n > 0:
			c.asked = p.at
		case !fromClient && t.connect == 0:
			t.connect = since
		case !fromClient && n > 0 && c.asked > 0:
			t.rounds, c.asked = append(t.rounds, p.at-c.asked), 0
		}
		if n > 0 && fromClient == up {
			if t.first == 0 {
				t.first = since
			}
			t.whole, t.bytes, t.end = since, t.bytes+n, p.at
			t.came, t.sizes = append(t.came, since), append(t.sizes, n)
		}
	}
	return list
}

// program returns the path of a Debian package's program.
func program(name, pkg string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing; install it with: apt-get install %s", name, pkg)
}

// service is a program that runs in a namespace until stop.
func service(ctx context.Context, ns *netspace.Namespace, ready func() error, name string, args ...string) (stop func(), err error) {
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := ns.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	prefer(cmd.Process.Pid)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }() // ready fails when the program has failed
	stop = func() { _ = cmd.Process.Kill(); <-done }
	for deadline := time.After(10 * time.Second); ; {
		if err = ready(); err == nil {
			return stop, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-done:
			return nil, fmt.Errorf("%s ended: %s", name, said.String())
		case <-deadline:
			stop()
			return nil, fmt.Errorf("%s is not ready: %w: %s", name, err, said.String())
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		}
	}
}

// prefer gives a program that takes part in a measurement real-time priority below the
// link's, where this is allowed, so that other programs of the machine do not disturb
// the measurement.
func prefer(pid int) {
	const below = 10
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: below}
	_ = unix.SchedSetAttr(pid, attr, 0) // without it the worst values are worse
}

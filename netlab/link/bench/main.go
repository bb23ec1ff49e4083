// Command bench measures how exact the packet link is, beside tc's tbf and
// toxiproxy in the same run, with Debian's programs: ping, curl with nginx, and
// iperf3 make the traffic, and tcpdump on the device's cable records its times. It
// prints a table and writes out/bench/link.json.
//
//	go run ./netlab/link/bench [-only 'rtt|native'] [-peers=false] [-out out/bench/link.json]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"text/tabwriter"

	"eidetic/internal/base/unshare"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchtable"
	"eidetic/netlab/link/packet"
)

func main() { benchtable.Main("bench", run) }

// forward is the first argument of the link's process.
const forward = "forward"

func run(ctx context.Context) error {
	if len(os.Args) == 2 && os.Args[1] == forward {
		return packet.Serve(os.NewFile(3, "control"))
	}
	out := flag.String("out", "out/bench/link.json", "file for the list of results")
	only := flag.String("only", "", "parts to measure, a regular expression")
	peers := flag.Bool("peers", true, "measure tc and toxiproxy as well")
	toxiproxy := flag.String("toxiproxy", "", "toxiproxy's server; built from its module when empty")
	awake := flag.Bool("awake", true, "keep the processors awake, as in a trial; for the peers too")
	inside := flag.Bool("inside", false, "used by this program itself: it is in namespaces of its own")
	flag.Parse()
	parts, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if !*inside {
		if *peers && *toxiproxy == "" {
			dir, err := os.MkdirTemp("", "link-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if *toxiproxy, err = buildToxiproxy(ctx, dir); err != nil {
				return err
			}
		}
		file, err := filepath.Abs(*out)
		if err != nil {
			return err
		}
		return inNamespaces(ctx, "-inside", "-out", file, "-only", *only, fmt.Sprintf("-peers=%v", *peers),
			fmt.Sprintf("-awake=%v", *awake), "-toxiproxy", *toxiproxy)
	}
	if *awake {
		defer lab.Awake()()
	}
	b := &bench{parts: parts, peers: *peers, toxiproxy: *toxiproxy}
	return errors.Join(b.measure(ctx), b.write(*out))
}

// inNamespaces runs this program again in namespaces, with which its interfaces
// and settings vanish.
func inNamespaces(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := unshare.Run(cmd, unshare.Network|unshare.Mounts)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New("the measurement failed")
	}
	return err
}

// write prints the table and writes the list to a file.
func (b *bench) write(file string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tlink\tunit\tgoal\tpeer\t")
	for _, r := range b.results {
		fmt.Fprintf(w, "%s\t%.3f\t%s\t%s\t%s\t\n", r.Name, r.Value, r.Unit, r.AimText(), r.PeerText())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return benchtable.Write(file, b.results)
}

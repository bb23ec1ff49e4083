// Command bench measures the booted box under QEMU's software emulation: the time
// from power-on until every part works, the memory in use then, the time to recover
// from a hung service, and the sizes of the images. It prints a table and writes
// out/bench/box.json. No test asserts these times: they depend on the machine as much
// as on the box, so the table also says how many processors other programs used.
//
//	go run ./image/boottest/bench [-boots 3] [-out out/bench/box.json]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/image/boottest"
	"eidetic/internal/rigs/benchtable"
)

func main() {
	benchtable.Main("bench", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout) })
}

func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	boots := flags.Int("boots", 3, "how often the box is started; the medians are printed")
	out := flags.String("out", "out/bench/box.json", "file for the list of results")
	images := flags.String("images", "out/image", "folder of the built images")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("a virtual machine's network needs root: sudo -E make bench-box")
	}
	var all samples
	for n := range *boots {
		fmt.Fprintf(os.Stderr, "boot %d of %d\n", n+1, *boots)
		if err := all.boot(ctx, filepath.Join(*images, "appliance-test.img")); err != nil {
			return err
		}
	}
	results := []benchtable.Result{
		benchtable.Less("power-on to healthy", median(all.healthy), "s").Aim(40),
		benchtable.Less("processors that others kept busy meanwhile", median(all.others), "cores"),
		benchtable.Less("memory in use when idle", median(all.memory), "MiB").Aim(600),
		benchtable.Less("hung service to healthy", median(all.hung), "s"),
	}
	for _, image := range []struct {
		name string
		goal float64
	}{{"appliance.img", 400}, {"appliance.efi", 150}} {
		info, err := os.Stat(filepath.Join(*images, image.name))
		if err != nil {
			return fmt.Errorf("%w; make it with: make image-test", err)
		}
		results = append(results, benchtable.Less(image.name, float64(info.Size())/1e6, "MB").Aim(image.goal))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tvalue\tgoal")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f %s\t%s\n", r.Name, r.Value, r.Unit, r.AimText())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return benchtable.Write(*out, results)
}

// samples are the measured values, one per boot.
type samples struct{ healthy, others, memory, hung []float64 }

// boot starts a fresh box and measures it once.
func (s *samples) boot(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*boottest.Patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "box-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	uplink, err := boottest.NewPort("52:54:00:00:00:01", boottest.Router)
	if err != nil {
		return err
	}
	defer uplink.Close()
	if err := uplink.ServeLease(boottest.Lease, boottest.Router.Addr()); err != nil {
		return err
	}
	device, err := boottest.NewPort("52:54:00:00:00:02", boottest.Device)
	if err != nil {
		return err
	}
	defer device.Close()
	m, err := boottest.New(dir, boottest.Options{Disk: image, Size: 2 << 30, Ports: []*boottest.Port{uplink, device}})
	if err != nil {
		return err
	}
	before, began := busy(), time.Now()
	if err := m.Boot(ctx); err != nil {
		return err
	}
	defer func() { _ = m.CutPower() }()
	if _, err := uplink.WaitHealthy(ctx, boottest.Panel); err != nil {
		return err
	}
	s.healthy = append(s.healthy, m.Since().Seconds())
	s.others = append(s.others, (busy()-before-m.CPU()).Seconds()/time.Since(began).Seconds())
	if _, err := m.Shell.Run(ctx, "systemctl is-system-running --wait"); err != nil {
		return err
	}
	memory, err := number(m.Shell.Run(ctx, "awk '/MemTotal/ {t=$2} /MemAvailable/ {a=$2} END {print t-a}' /proc/meminfo"))
	if err != nil {
		return err
	}
	s.memory = append(s.memory, memory/1024)
	service, err := number(m.Shell.Run(ctx, "systemctl show -P MainPID appliance.service"))
	if err != nil {
		return err
	}
	began = time.Now()
	const another = "kill -STOP %[1]d; until now=$(systemctl show -P MainPID appliance.service); [ $now != %[1]d ] && [ $now != 0 ]; do sleep 0.1; done"
	if _, err := m.Shell.Run(ctx, fmt.Sprintf(another, int(service))); err != nil {
		return err
	}
	if _, err := uplink.WaitHealthy(ctx, boottest.Panel); err != nil {
		return err
	}
	s.hung = append(s.hung, time.Since(began).Seconds())
	return nil
}

func number(text string, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(text), 64)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// busy returns how long all processors together have worked, or were stolen, since boot:
// the first line of /proc/stat (proc(5)) without the idle times.
func busy() (sum time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		// user nice system idle iowait irq softirq steal; guests are in user already.
		if err == nil && i != 3 && i != 4 && i < 8 {
			sum += time.Duration(n) * boottest.ClockTick
		}
	}
	return sum
}

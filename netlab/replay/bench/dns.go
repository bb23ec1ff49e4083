package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/rigs/benchtable"
)

const dnsNames = 1000

func dnsName(i int) string     { return fmt.Sprintf("host-%d.bench.test", i) }
func dnsAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(i%250 + 1)}) }

// measureDNS compares the queries that servers answer in a second of processor time.
func measureDNS(ctx context.Context, o options, t *table) error {
	var questions, hosts strings.Builder
	for i := range dnsNames {
		fmt.Fprintf(&questions, "%s A\n", dnsName(i))
		fmt.Fprintf(&hosts, "%s %s\n", dnsAddr(i), dnsName(i))
	}
	file := filepath.Join(o.dir, "questions")
	if err := os.WriteFile(file, []byte(questions.String()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, "hosts"), []byte(hosts.String()), 0o644); err != nil {
		return err
	}
	var servers []*server
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	goals := map[string]float64{"coredns": 1}
	var missing absences
	for _, p := range []peer{{"appliance", startDNS}, {"dnsmasq", startDnsmasq}, {"coredns", startCoreDNS}} {
		if p.name != "appliance" && !o.wants(p.name) {
			continue
		}
		s, err := p.start(ctx, o)
		switch {
		case err == nil:
			servers = append(servers, s)
		case p.name == "appliance" || ctx.Err() != nil:
			return err
		default:
			missing = append(missing, absence{p.name, err})
		}
	}
	per := map[string][]float64{}
	for range o.rounds {
		for _, s := range servers {
			if missing.has(s.name) {
				continue
			}
			rate, err := dnsRate(ctx, s, o, file)
			if err != nil {
				if s.name == "appliance" || ctx.Err() != nil {
					return err
				}
				missing = append(missing, absence{s.name, err})
				continue
			}
			per[s.name] = append(per[s.name], rate)
		}
	}
	ours := benchtable.More("dns", median(per["appliance"]), "questions/core-s")
	for _, s := range servers {
		if s.name != "appliance" && !missing.has(s.name) {
			t.add(ours.Against(s.name, median(per[s.name])).AimAbove(goals[s.name]))
		}
	}
	for _, m := range missing {
		t.add(ours.Without(m.name, m.why).AimAbove(goals[m.name]))
	}
	return nil
}

// dnsRate returns the questions that a server answers in a second of its processor time.
func dnsRate(ctx context.Context, s *server, o options, file string) (float64, error) {
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	n, err := dnsperf(ctx, s, o, file)
	if err != nil {
		return 0, err
	}
	after, err := s.cpu()
	if err != nil {
		return 0, err
	}
	if after == before {
		return 0, fmt.Errorf("%s used no processor time that could be measured", s.name)
	}
	return float64(n) / (after - before).Seconds(), nil
}

var (
	completedLine = regexp.MustCompile(`Queries completed: +(\d+)`)
	codesLine     = regexp.MustCompile(`Response codes: +NOERROR (\d+) \(100\.00%\)`)
)

func dnsperf(ctx context.Context, s *server, o options, file string) (int, error) {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute+o.duration)
	defer cancel()
	text, err := exec.CommandContext(ctx, "dnsperf", "-s", "127.0.0.1", "-p", port, "-d", file,
		"-l", strconv.Itoa(int(max(1, o.duration.Seconds()))), "-c", "8", "-q", "64").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("dnsperf against %s (scripts/deps.sh bench installs it): %w: %s", s.name, err, tail(string(text)))
	}
	m := completedLine.FindStringSubmatch(string(text))
	if m == nil || codesLine.FindString(string(text)) == "" {
		return 0, fmt.Errorf("dnsperf against %s says: %s", s.name, tail(string(text)))
	}
	return strconv.Atoi(m[1])
}

func startDNS(ctx context.Context, o options) (*server, error) {
	s, err := self(ctx, o, "dns")
	if err == nil {
		s.name = "appliance"
	}
	return s, err
}

func startDnsmasq(ctx context.Context, o options) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	return start(
		ctx,
		"dnsmasq",
		addr,
		o.dir,
		"dnsmasq",
		"--keep-in-foreground",
		"--conf-file=/dev/null",
		"--no-resolv",
		"--no-hosts",
		"--user=root",
		"--addn-hosts="+filepath.Join(
			o.dir,
			"hosts",
		),
		"--listen-address=127.0.0.1",
		"--bind-interfaces",
		"--port="+addr[len("127.0.0.1:"):],
	)
}

func startCoreDNS(ctx context.Context, o options) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	program := o.coredns
	if program == "" {
		if program, err = buildCoreDNS(ctx); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(o.dir, "Corefile")
	text := fmt.Sprintf(".:%s {\n\tbind 127.0.0.1\n\thosts %s\n}\n", addr[len("127.0.0.1:"):], filepath.Join(o.dir, "hosts"))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, "coredns", addr, o.dir, program, "-conf", conf)
}

// coreDNSMain is CoreDNS with only the plugins that are measured; all of them would
// take minutes to build.
const coreDNSMain = `package main

import (
	_ "github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/hosts"
)

func main() { coremain.Run() }
`

const coreDNSVersion = "v1.14.3"

// buildCoreDNS builds CoreDNS in a module of its own, so that ours does not depend on it, and keeps
// the program for the next run.
func buildCoreDNS(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "eidetic-bench", "coredns-"+coreDNSVersion)
	program := filepath.Join(dir, "coredns")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(coreDNSMain), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module coredns\n\ngo 1.26\n\nrequire github.com/coredns/coredns "+coreDNSVersion+"\n"), 0o644); err != nil {
		return "", err
	}
	fmt.Println("building CoreDNS " + coreDNSVersion + ", once")
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", "coredns", "."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build CoreDNS (-coredns names one that is there): go %s: %w: %s",
				strings.Join(args, " "), err, tail(string(text)))
		}
	}
	return program, nil
}

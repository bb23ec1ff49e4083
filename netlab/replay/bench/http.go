package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/rigs/benchtable"
)

// modes are the ways to send requests; goals are for the ratio to the peer.
var modes = []struct {
	name  string
	args  []string
	goals map[string]float64
}{
	{"h1-32-connections", []string{"--h1", "-c", "32", "-m", "1"}, map[string]float64{"go": 0.85, "mitmproxy": 20, "wpr": 1.2}},
	{"h2-1-connection-32-streams", []string{"-c", "1", "-m", "32"}, map[string]float64{"go": 0.85, "mitmproxy": 20, "wpr": 1.8}},
	{"h2-32-connections", []string{"-c", "32", "-m", "1"}, map[string]float64{"go": 0.85, "mitmproxy": 20, "wpr": 1.8}},
}

// measureHTTP compares requests per second of processor time. For a peer that cannot be measured it
// prints a line with the reason; without our own result it returns an error.
func measureHTTP(ctx context.Context, o options, t *table) error {
	list, absent := peers(o)
	servers, failed, stop, err := startAll(ctx, o, list)
	defer stop()
	if err != nil {
		return err
	}
	absent = append(absent, failed...)
	for _, mode := range modes {
		per, wall := map[string][]float64{}, map[string][]float64{}
		missing := slices.Clone(absent)
		for range o.rounds {
			for _, s := range servers {
				if missing.has(s.name) {
					continue
				}
				r, err := measureRound(ctx, s, o, mode.args)
				if err != nil {
					if s.name == "appliance" || ctx.Err() != nil {
						return err
					}
					missing = append(missing, absence{s.name, err})
					continue
				}
				per[s.name] = append(per[s.name], float64(r.answers)/r.processor.Seconds())
				wall[s.name] = append(wall[s.name], float64(r.answers)/r.asked.Seconds())
			}
		}
		ours := benchtable.More(mode.name, median(per["appliance"]), "requests/core-s")
		for _, s := range servers {
			if missing.has(s.name) {
				continue
			}
			t.add(benchtable.More(mode.name+"-"+s.name+"-rate", median(wall[s.name]), "requests/s"))
			if s.name != "appliance" {
				t.add(ours.Against(s.name, median(per[s.name])).AimAbove(mode.goals[s.name]))
			}
		}
		for _, m := range missing {
			t.add(ours.Without(m.name, m.why).AimAbove(mode.goals[m.name]))
		}
	}
	return nil
}

// round is what one server did in one measurement.
type round struct {
	answers          int
	asked, processor time.Duration
}

// measureRound measures one server for a while. If h2load fails or the server used no measurable
// processor time, as on a busy machine, it measures five and then fifteen times as long.
func measureRound(ctx context.Context, s *server, o options, args []string) (round, error) {
	var failed error
	for _, times := range []time.Duration{1, 5, 15} {
		r := round{asked: times * o.duration}
		before, err := s.cpu()
		if err != nil {
			return round{}, err
		}
		r.answers, err = h2load(ctx, s, o, append([]string{"-D", fmt.Sprintf("%dms", r.asked.Milliseconds())}, args...)...)
		after, err2 := s.cpu()
		if err2 != nil {
			return round{}, err2
		}
		if r.processor = after - before; err == nil && r.processor > 0 {
			return r, nil
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	if failed == nil {
		failed = fmt.Errorf("%s used no processor time that could be measured", s.name)
	}
	return round{}, failed
}

// startAll starts the servers one after another. It returns the peers that do not start, or do not
// answer, with the reason; if ours does not, it returns an error.
func startAll(ctx context.Context, o options, list []peer) (out []*server, failed absences, stop func(), err error) {
	stop = func() {
		for _, s := range out {
			s.stop()
		}
	}
	if err := os.WriteFile(urls(o), []byte("https://"+host+strings.Join(askedPaths(), "\nhttps://"+host)+"\n"), 0o644); err != nil {
		return nil, nil, stop, err
	}
	for _, p := range list {
		s, err := p.start(ctx, o)
		if err == nil {
			// All URLs are requested once, so that every server has seen them and h2load has checked the
			// answers.
			if _, err = h2load(ctx, s, o, "-n", strconv.Itoa(asked), "-c", "1", "-m", "4"); err != nil {
				s.stop()
			}
		}
		switch {
		case err == nil:
			out = append(out, s)
		case p.name == "appliance" || ctx.Err() != nil:
			return out, nil, stop, err
		default:
			failed = append(failed, absence{p.name, err})
		}
	}
	return out, failed, stop, nil
}

func urls(o options) string { return filepath.Join(o.dir, "urls") }

var (
	requestsLine = regexp.MustCompile(`(?m)^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored`)
	trafficLine  = regexp.MustCompile(`(?m)^traffic: .* \((\d+)\) data$`)
)

// h2load runs the client and returns how many whole answers it got.
func h2load(ctx context.Context, s *server, o options, args ...string) (int, error) {
	const patience = 3 * time.Minute // mitmproxy takes its time on a machine that does other work
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args = append([]string{"-i", urls(o), "--connect-to", s.addr}, args...)
	text, err := exec.CommandContext(ctx, "h2load", args...).CombinedOutput()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("h2load against %s had no end after %v: %s", s.name, patience, tail(string(text)))
	}
	if err != nil {
		return 0, fmt.Errorf("h2load against %s (scripts/deps.sh bench installs it): %w: %s", s.name, err, tail(string(text)))
	}
	m, data := requestsLine.FindStringSubmatch(string(text)), trafficLine.FindStringSubmatch(string(text))
	if m == nil || data == nil {
		return 0, fmt.Errorf("h2load against %s says: %s", s.name, tail(string(text)))
	}
	n, err := strconv.Atoi(m[3])
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.Atoi(data[1])
	if err != nil {
		return 0, err
	}
	if m[4] != "0" || n == 0 || bytes < n*bodyBytes || bytes > (n+64)*bodyBytes {
		return 0, fmt.Errorf("h2load against %s: %d answers with %d bytes of bodies: %s: %s", s.name, n, bytes, m[0], tail(s.log.String()))
	}
	return n, nil
}

// measureLatency compares the median time of an answer on one connection with
// that of the bare Go server.
func measureLatency(ctx context.Context, o options, t *table) error {
	servers, failed, stop, err := startAll(ctx, o, []peer{{"appliance", startAppliance}, {"go", startGo}})
	defer stop()
	if err == nil && len(failed) > 0 {
		err = failed[0].why
	}
	if err != nil {
		return err
	}
	for _, mode := range []struct{ name, flag string }{{"h1", "--h1"}, {"h2", "-m1"}} {
		rounds := map[string][]float64{}
		for range 2*o.rounds + 1 {
			for _, s := range servers {
				us, err := latencies(ctx, s, o, mode.flag)
				if err != nil {
					return err
				}
				rounds[s.name] = append(rounds[s.name], median(us))
			}
		}
		t.add(benchtable.Less(mode.name+"-latency", median(rounds["appliance"]), "µs").Against("go", median(rounds["go"])).Aim(1 / 1.1))
	}
	return nil
}

// latencies are the times, in µs, of 4,000 answers one after another.
func latencies(ctx context.Context, s *server, o options, flag string) ([]float64, error) {
	file := filepath.Join(o.dir, "latency.log")
	defer os.Remove(file)
	if _, err := h2load(ctx, s, o, "-n", "4000", "-c", "1", flag, "--log-file", file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []float64
	for line := range strings.Lines(string(text)) { // start, status, µs
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "200" {
			return nil, fmt.Errorf("h2load's log of %s has the line %q", s.name, line)
		}
		us, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return nil, err
		}
		out = append(out, us)
	}
	return out, nil
}

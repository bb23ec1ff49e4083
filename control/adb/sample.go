package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
)

const (
	// MostHz is how often a second a phone's processes are read at most: its kernel counts in hundredths of a second.
	MostHz = 10
	// listEvery and sharesEvery are how often processes are looked for, and how often their shares of memory are read,
	// which takes the phone some milliseconds each.
	listEvery, sharesEvery = 2 * time.Second, 2 * time.Second
	// threadsEvery is how often threads are read.
	threadsEvery = time.Second
	// answerLimit is how long a phone may take for one reading, and to tell shares of memory at the end.
	answerLimit = 10 * time.Second
	// maxAnswer bounds one reading.
	maxAnswer = 1 << 20
	// mostPhoneThreads bounds the threads of all processes.
	mostPhoneThreads = 1000
	// costWindow is over how many readings their cost is judged.
	costWindow = 20
)

// readings is the program that reads: for each line of its input it stamps a reading by the phone's own clock and
// prints it. It consists of what is built into the shells of all Androids (mksh), so that it starts no other program but
// ps, and ends with its input.
const readings = `while read -r what pids; do read -r up x </proc/uptime; echo "@ $up"
case $what in
list) ps -A -o PID,NAME;;
page) echo "g $(getconf PAGESIZE)";;
*) read -r x </proc/stat && echo "c $x"
for p in $pids; do
read -r x </proc/$p/stat && echo "s $x"
read -r x </proc/$p/statm && echo "m $p $x"
read -r x </proc/$p/schedstat && echo "w $p $x"
case $what in *p*) while read -r k x; do case $k in Pss:) echo "p $p $x";; esac; done </proc/$p/smaps_rollup;; esac
case $what in *t*) for f in /proc/$p/task/*; do read -r x <$f/schedstat && read -r n <$f/comm && echo "t $p ${f##*/} $x $n"; done;; esac
done
read -r x </proc/$$/stat && echo "o $x";;
esac
echo .
done 2>/dev/null`

// What the program is asked for, besides what it is to read of which processes.
const (
	askPage = "page"
	askList = "list"
)

// sampler reads the processes of one package.
type sampler struct {
	phone   Phone
	app     string
	threads bool
	clock   lab.Clock

	stream *adbserver.Stream
	cancel context.CancelFunc // of the stream
	reader readingsReader
	list   []lab.ProcessSample
	out    lab.Sampled
	cost   int64 // of the program on the phone so far, in ns

	listed, shared, tasked lab.Time // when each was last asked for; 0 before that
	noShares               bool     // the phone's kernel tells none to us
}

// Sample reads the processes of a package, and with threads their threads, hz times a second, at most MostHz, until the
// function that it returns is called. The phone stamps each reading; what is returned is on the clock.
func (p Phone) Sample(
	ctx context.Context, app string, hz float64, threads bool, clock lab.Clock,
) (end func() (lab.Sampled, []lab.ProcessSample)) {
	s := &sampler{phone: p, app: app, threads: threads, clock: clock, out: lab.Sampled{Hz: min(hz, MostHz)}}
	s.reader = newReadingsReader(app, func(one lab.ProcessSample) {
		if len(s.list) < lab.MostSamples {
			s.list = append(s.list, one)
		} else {
			s.out.Left++
		}
	})
	stopped, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		begun := clock()
		if err := s.run(ctx, stopped); err != nil {
			s.out.Lacks = err.Error()
		}
		s.out.WallMS = float64(clock()-begun) / 1e6
	}()
	return func() (lab.Sampled, []lab.ProcessSample) {
		stop()
		<-done
		return s.out, s.list
	}
}

// run reads until stopped is over, and then once more.
func (s *sampler) run(ctx, stopped context.Context) (err error) {
	if err := checkPackage(s.app); err != nil {
		return err
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx)) // what hangs ends by its own limit
	defer s.cancel()
	if s.stream, err = s.phone.Client.Hold(ctx, s.phone.Serial, "raw", readings); err != nil {
		return err
	}
	defer s.stream.Close() // the program ends with its input
	if err := s.ask(askPage); err != nil {
		return err
	}
	period := time.Duration(1e9 / s.out.Hz)
	var begunWith, windowWith int64
	var window lab.Time
	for n := 0; ; n++ {
		last := stopped.Err() != nil
		if err := s.read(last); err != nil {
			return err
		}
		s.cost = s.reader.cost
		switch now := s.clock(); {
		case n == 0:
			begunWith, windowWith, window = s.cost, s.cost, now
		case n%costWindow == 0:
			if float64(s.cost-windowWith) > lab.MostSampling*float64(now-window) {
				period *= 2
				s.out.Slowed++
			}
			windowWith, window = s.cost, now
		}
		s.out.Readings++
		s.out.CostMS, s.out.BoundMS = float64(s.cost-begunWith)/1e6, float64(s.reader.widest)/1e6
		if last {
			break
		}
		_ = lab.Wait(stopped, period) // an error is the end, before which it is read once more
	}
	if s.reader.anyShare {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	text, err := s.phone.run(limited, "dumpsys", "meminfo", "--package", s.app)
	if err != nil {
		return err
	}
	s.reader.addShares(sharesOf(text), s.clock())
	return nil
}

// read makes one reading. The last has all that can be read.
func (s *sampler) read(last bool) error {
	now := s.clock()
	due := func(at *lab.Time, every time.Duration) bool {
		if *at != 0 && !last && now.Sub(*at) < every {
			return false
		}
		*at = now
		return true
	}
	if due(&s.listed, listEvery) {
		if err := s.ask(askList); err != nil {
			return err
		}
	}
	what := "s"
	if !s.noShares && due(&s.shared, sharesEvery) {
		what += "p"
	}
	if s.threads && due(&s.tasked, threadsEvery) {
		what += "t"
	}
	for _, pid := range s.reader.pids {
		what += " " + strconv.Itoa(pid)
	}
	if err := s.ask(what); err != nil {
		return err
	}
	if strings.HasPrefix(what, "sp") && len(s.reader.pids) > 0 && !s.reader.anyShare {
		s.noShares = true
	}
	return nil
}

// ask has the program print one reading.
func (s *sampler) ask(what string) error {
	limit := time.AfterFunc(answerLimit, s.cancel)
	defer limit.Stop()
	sent, size := s.clock(), 0
	_, err := s.stream.Write([]byte(what + "\n"))
	for s.reader.begin(what, sent); err == nil; {
		var text []byte
		if text, err = s.stream.Next(); err != nil {
			break
		}
		if size += len(text); size > maxAnswer {
			return fmt.Errorf("adb: a reading of the phone's processes has more than %d bytes", maxAnswer)
		}
		if s.reader.add(text, s.clock()) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the phone's shell ended it")
	}
	return fmt.Errorf("adb: reading the phone's processes: %w", err)
}

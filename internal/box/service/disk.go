package service

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/web/panel"
)

const (
	// leastFree is the room on the disk below which no run begins, in bytes: a short run
	// with its films has tens of megabytes, and the queue, tokens and logs need some.
	leastFree = 64_000_000
	// diskPeriod is how long a look at the disk is believed; every open page asks for the
	// health every few seconds.
	diskPeriod = 5 * time.Second
	// slowDisk is how long a look may take before it is a problem.
	slowDisk = 20 * time.Second
)

// disk looks at the file system of the data folder.
type disk struct {
	data string
	// queueInMemory is why the queue could not be opened, or nil. Runs would be queued in
	// memory, and lost by a restart.
	queueInMemory error

	// look is lookAtDisk; a test's own hangs.
	look func(dir string) error
	// patience is how long an answer waits for a look. The watchdog's probe waits for it too:
	// while a large file is written, a slow disk takes nothing else for half a minute.
	patience time.Duration

	mu     sync.Mutex
	looked time.Time // the last look ended
	wrong  error     // of the last look
	low    error     // warns that the disk will be full
	began  time.Time // of the look that goes on
	done   chan struct{}
}

// newDisk returns the disk of a data folder.
func newDisk(data string, queueInMemory error) *disk {
	return &disk{data: data, queueInMemory: queueInMemory, look: lookAtDisk, patience: time.Second}
}

// problem returns why no run can begin now, or nil.
func (d *disk) problem() error {
	if d == nil {
		return nil
	}
	if going := d.begin(); going != nil {
		select {
		case <-going:
		case <-time.After(d.patience):
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if taken := time.Since(d.began); d.done != nil && taken > slowDisk {
		return fmt.Errorf("the disk has taken nothing for %d s: it is busy, or it fails; wait, and replace it if this stays", int(taken.Seconds()))
	}
	if d.wrong == nil && d.queueInMemory != nil {
		return fmt.Errorf("the queue of runs could not be opened when the service started: start it again (%w)", d.queueInMemory)
	}
	return d.wrong
}

// begin begins a look if the last one is old. It returns nil where that is young, and otherwise
// a channel that is closed at the look's end.
func (d *disk) begin() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil && time.Since(d.looked) > diskPeriod {
		d.began, d.done = time.Now(), make(chan struct{})
		go func(done chan struct{}) {
			wrong, low := d.look(d.data), lowOn(d.data)
			d.mu.Lock()
			d.wrong, d.low, d.looked, d.done = wrong, low, time.Now(), nil
			d.mu.Unlock()
			close(done)
		}(d.done)
	}
	return d.done
}

// lookAtDisk writes a little, as a run would.
func lookAtDisk(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("the data folder cannot be used: %w", err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < leastFree {
		return fmt.Errorf("the disk is full: %d MB are free and a run needs at least %d MB; delete runs or recordings", free/1_000_000, leastFree/1_000_000)
	}
	f, err := os.CreateTemp(dir, ".write-test-")
	if err == nil {
		_, err = f.Write(make([]byte, 4096))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return errors.New("the disk is read-only, as Linux makes one that has errors: runs would be lost; restart the machine, which repairs it, or replace the disk")
	case err != nil:
		return fmt.Errorf("the disk takes nothing: %w", err)
	}
	return nil
}

const (
	// lowShare is the share of the disk, and lowRoom the room in bytes, below both of which a warning
	// says that the disk will be full: a run of a hundred trials has some gigabytes.
	lowShare, lowRoom = 0.1, 10_000_000_000
)

// lowOn warns of a disk that will be full.
func lowOn(dir string) error {
	free, total, err := roomOn(dir)
	if err != nil || free >= lowRoom || float64(free) >= lowShare*float64(total) {
		return nil // of what is wrong with the disk, look tells
	}
	return fmt.Errorf("the disk is nearly full: %d MB of %d MB are free, and below %d MB no run begins; delete runs or recordings, or set retention in the configuration",
		free/1_000_000, total/1_000_000, leastFree/1_000_000)
}

// warning returns what will be a problem, or nil.
func (d *disk) warning() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.low
}

// again makes the next answer wait for a new look.
func (d *disk) again() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looked = time.Time{}
}

// removeWriteTests removes what an earlier process left.
func (d *disk) removeWriteTests() {
	left, _ := atomicfile.WithPrefix(d.data, ".write-test-") // the next start tries again
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// refusal is the panel's answer to a request for a run while there is a problem.
func (d *disk) refusal() error {
	if err := d.problem(); err != nil {
		return &panel.Refusal{Status: http.StatusInsufficientStorage, Err: err}
	}
	return nil
}

// alerts are what is wrong with the disk and the ports, for the panel's health.
func (s *Service) alerts(d *disk, p *ports) (all []string) {
	if err := d.problem(); err != nil {
		all = append(all, "no run can be started: "+err.Error())
	} else if low := d.warning(); low != nil {
		all = append(all, low.Error())
	}
	if roles, err := p.roles(); err == nil && roles.Warning() != "" {
		all = append(all, roles.Warning())
	}
	return all
}

package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/replay"
)

// Visit opens pages in a virtual device, recording or replaying them.
type Visit struct {
	Record       bool
	Traceparent  bool // requests get one
	HTTP3        bool // look first for hosts that offer HTTP/3
	Archive      string
	Pages        []string
	Still, Limit time.Duration
	Seed         uint64
	// Reach is for a recording, and for a replay that asks origins for what the archive lacks.
	Reach Reach
	// NoSandbox is that of execute.VirtualConfig.
	NoSandbox bool `json:",omitempty"`
	// Timing, Link, Match and Miss are for a replay; Fill is the archive that Miss fill makes.
	Timing, Link, Match string
	Miss                replay.Miss
	Fill                string

	// Served gets each request, in the outer half; nil gets none.
	Served func(lab.Served) `json:"-"`
}

// The descriptors of the inner half of a visit.
const (
	visitServed = taskFile + 1 + iota // takes lab.Served as JSON
	visitDials
)

// Run visits the pages in namespaces that end with the visit. The error is an
// *exec.ExitError when the inner half has told the person why it failed.
func (v Visit) Run(ctx context.Context, c Commands) error {
	v.Reach.ownHosts() // both halves use the same name server
	if v.Record {
		for _, page := range v.Pages {
			if err := v.Reach.Check(ctx, page); err != nil {
				return &OriginError{err}
			}
		}
	}
	var err error
	if v.Archive, err = realPath(v.Archive); err != nil {
		return err
	}
	if v.Fill != "" {
		if v.Fill, err = realPath(v.Fill); err != nil {
			return err
		}
	}
	task, err := handOver(v)
	if err != nil {
		return err
	}
	defer task.Close()
	outside, inside, err := isolate.DialSockets()
	if err != nil {
		return err
	}
	defer inside.Close()
	if v.asksOrigins() {
		go isolate.ServeDials(ctx, outside, v.Reach.forInside)
	} else {
		_ = outside.Close() // such a replay reaches nobody
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	ended := make(chan struct{})
	go func() { v.readServed(read); close(ended) }()
	err = c.run(ctx, c.Visit, task, write, inside)
	_ = write.Close() // the inner half's copy was closed with the inner half
	<-ended
	return err
}

// asksOrigins tells whether the box connects to origins.
func (v Visit) asksOrigins() bool {
	return v.Record || v.Miss == replay.MissLive || v.Miss == replay.MissFill
}

// readServed passes requests on until the pipe ends, which is the end of the inner half.
func (v Visit) readServed(r io.Reader) {
	for d := json.NewDecoder(r); ; {
		var s lab.Served
		if d.Decode(&s) != nil {
			return
		}
		if v.Served != nil {
			v.Served(s)
		}
	}
}

// realPath resolves the links in the folder of a file, which need not exist: the
// inner half sees the real folders only.
func realPath(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	return filepath.Join(dir, filepath.Base(path)), err
}

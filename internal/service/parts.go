package service

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"eidetic/control/adb"
	"eidetic/internal/device"
	"eidetic/internal/panel"
)

// partList lists what is plugged into this machine. A list is kept for a while, because
// pages ask often and looking opens every grabber.
type partList struct {
	look func(context.Context) []device.Part

	mu   sync.Mutex
	seen time.Time
	last []panel.PluggedPart
}

const (
	partsKept  = 5 * time.Second
	partsLimit = 2 * time.Second // an adb server may hang
)

// plugged looks at this machine. It starts no adb server: phones are listed where a person
// has started one.
func plugged(log *slog.Logger) func(context.Context) []device.Part {
	look := device.Look{
		Root: os.DirFS("/"), Grabbers: "/dev/video*", Phones: true,
		ADB: adb.Client{Address: adb.Server},
	}
	return func(ctx context.Context) []device.Part {
		parts, problems := device.Found(ctx, look)
		if err := errors.Join(problems...); err != nil {
			log.Debug("looking for what is plugged in", "error", err)
		}
		return parts
	}
}

func (p *partList) list(ctx context.Context) []panel.PluggedPart {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen.IsZero() && time.Since(p.seen) < partsKept {
		return p.last
	}
	ctx, cancel := context.WithTimeout(ctx, partsLimit)
	defer cancel()
	p.last = nil
	for _, part := range p.look(ctx) {
		p.last = append(p.last, panel.PluggedPart(part))
	}
	p.seen = time.Now()
	return p.last
}

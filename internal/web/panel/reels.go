package panel

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"eidetic/capture/reel"
)

// openReel is a reel in a run's folder.
type openReel struct {
	*reel.Reader
	file *os.File
	tag  string
	of   string // run and trial
}

func (r *openReel) Close() { _ = r.file.Close() }

// recentReels are the reels of which pieces were asked for last, the latest last: the next piece goes on where that one
// ends. A page steps through both trials of a pair at once, so there are two. Whoever uses them has the turn.
type recentReels struct {
	open    []*openReel
	closing *time.Timer
}

const (
	mostReels = 2
	// reelsKept is how long they stay open when nobody asks for more.
	reelsKept = 20 * time.Second
)

func (k *recentReels) find(of string) *openReel {
	i := slices.IndexFunc(k.open, func(r *openReel) bool { return r.of == of })
	if i < 0 {
		return nil
	}
	r := k.open[i]
	k.open = append(slices.Delete(k.open, i, i+1), r)
	return r
}

func (k *recentReels) keep(r *openReel, forget func()) {
	if len(k.open) == mostReels {
		k.open[0].Close()
		k.open = slices.Delete(k.open, 0, 1)
	}
	k.open = append(k.open, r)
	if k.closing == nil {
		k.closing = time.AfterFunc(reelsKept, forget)
	}
}

func (k *recentReels) close() {
	for _, r := range k.open {
		r.Close()
	}
	if k.closing != nil {
		k.closing.Stop()
	}
	k.open, k.closing = nil, nil
}

// forget closes the recent reels.
func (c *counting) forget() {
	if done, err := c.turn.Take(context.Background()); err == nil { // which does not end
		c.recent.close()
		done()
	}
}

// reelOf returns the reel and the frame that a request names. The caller has the turn until it has done with the reel.
func (p *Panel) reelOf(c echo.Context) (r *openReel, frame int, err error) {
	trial, err := strconv.Atoi(c.Param("trial"))
	if err != nil {
		return nil, 0, missing(c.Param("trial"))
	}
	if frame, err = strconv.Atoi(c.Param("frame")); err != nil {
		return nil, 0, missing(c.Param("frame"))
	}
	k, key := &p.counted.recent, fmt.Sprint(c.Param("id"), "/", trial)
	if r = k.find(key); r == nil {
		if _, _, r, err = p.trialReel(c.Request().Context(), c.Param("id"), trial); err != nil {
			return nil, 0, err
		}
		r.of = key
		k.keep(r, p.counted.forget)
	}
	k.closing.Reset(reelsKept)
	if frame < 0 || frame >= r.Len() {
		return nil, 0, echo.NewHTTPError(http.StatusNotFound, fmt.Sprintf("the reel has frames 0 … %d", r.Len()-1))
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", r.tag)
	return r, frame, nil
}

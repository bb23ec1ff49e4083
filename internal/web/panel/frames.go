package panel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"net/http"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"

	"eidetic/capture/reel"
	"eidetic/internal/base/slots"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/frames"
	"eidetic/internal/tell/report"
)

// TrialFrames says of each frame of a trial's reel when it was taken and how much it changed.
type TrialFrames struct {
	Run     string    `json:"run"`
	Kind    string    `json:"kind,omitempty" enum:"film,qualification" doc:"What the run is if it executed no plan"`
	Trial   int       `json:"trial" doc:"Number of the trial"`
	Trials  []int     `json:"trials" doc:"Numbers of the run's trials"`
	Arm     string    `json:"arm"`
	Valid   bool      `json:"valid"`
	Width   int       `json:"width" doc:"Of a frame, in pixels"`
	Height  int       `json:"height"`
	Start   int       `json:"start_frame" doc:"The frame from which times count"`
	Content FrameArea `json:"content" doc:"The content area, to whose corner regions of a plan are relative"`
	Region  FrameArea `json:"region" doc:"Where changes were counted"`
	Pixels  int       `json:"pixels" doc:"Of the region"`
	TimeMS  []float64 `json:"time_ms" doc:"Of each frame, since the start of the trial"`
	Changed []int     `json:"changed" doc:"Of each frame, pixels of the region that differ from the frame before"`
	// Progress is SpeedIndex's own, in %; it begins with the start frame.
	Progress []float64      `json:"progress" doc:"Visual progress in %, from the start frame on"`
	Pieces   []int          `json:"pieces" doc:"The first frame of each piece, as get-frame-differences has it"`
	Strip    []StripPicture `json:"strip" doc:"The pictures of the trial's filmstrip; empty where it has none"`
}

// StripPicture is a small picture of the screen at one instant.
type StripPicture struct {
	TimeMS float64 `json:"time_ms"`
	File   string  `json:"file" doc:"Its path below the run's folder" example:"trials/001/strip/strip-003.jpg"`
}

// FrameArea is a rectangle of a frame, in pixels.
type FrameArea struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"width"`
	H int `json:"height"`
}

func areaOf(r image.Rectangle) FrameArea { return FrameArea{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} }

type (
	framesInput struct {
		ID     string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
		Trial  int    `path:"trial" minimum:"1" maximum:"100000" doc:"Number of the trial"`
		Region string `query:"region" maxLength:"60" doc:"Where changes are counted: X,Y,WIDTH,HEIGHT in pixels of the frame; without it the whole frame" example:"0,0,200,100"`
	}
	framesBody struct{ Body *TrialFrames }
)

// counting keeps the lists that were made last: to count the changes of a long reel takes seconds.
type counting struct {
	turn *slots.Turn // of reading a reel's pixels: one at a time, which bounds the memory that readers together take
	mu   sync.Mutex
	keys []string
	done map[string]*frames.List

	recent recentReels
}

const keptLists = 16

// trialFrames registers the routes of a trial's frames.
func (p *Panel) trialFrames(e *echo.Echo, api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-frames", Method: http.MethodGet, Path: "/api/v1/runs/{id}/trials/{trial}/frames",
		Summary: "How much each frame of a trial changed", Tags: []string{tagRuns},
		Description: "Every pixel counts, whatever the thresholds of the run's measurements. The first list of a reel takes as long as it takes to read the reel.",
		Security:    needsToken(),
		Errors:      []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *framesInput) (*framesBody, error) {
		list, err := p.listFrames(ctx, in)
		return &framesBody{list}, err
	})
	text := &huma.Schema{Type: huma.TypeString}
	number := &huma.Schema{Type: huma.TypeInteger}
	of := []*huma.Param{{Name: "id", In: "path", Required: true, Schema: text, Description: "Identifier of the run"},
		{Name: "trial", In: "path", Required: true, Schema: number, Description: "Number of the trial"}}
	frame := append(of[:2:2], &huma.Param{Name: "frame", In: "path", Required: true, Schema: number, Description: "Number of the frame, from 0"})
	p.raw(e, api, &huma.Operation{
		OperationID: "get-frames-table", Method: http.MethodGet, Path: "/api/v1/runs/{id}/trials/{trial}/frames.csv", Tags: []string{tagRuns},
		Summary: "The same as a table", Parameters: append(of[:2:2], &huma.Param{Name: "region", In: "query", Schema: text}),
		Responses: file("200", "text/csv", "One line a frame"),
	}, p.framesTable)
	p.raw(e, api, &huma.Operation{
		OperationID: "get-frame", Method: http.MethodGet, Path: "/api/v1/runs/{id}/trials/{trial}/frames/{frame}", Tags: []string{tagRuns},
		Summary: "A frame of a trial, without loss", Parameters: frame, Responses: file("200", "image/png", "The picture"),
	}, p.framePicture)
	p.raw(e, api, &huma.Operation{
		OperationID: "get-frame-differences", Method: http.MethodGet, Path: "/api/v1/runs/{id}/trials/{trial}/frames/{frame}/differences",
		Summary: "A piece of a trial's frames, without loss, as differences", Tags: []string{tagRuns},
		Parameters: append(frame[:3:3], &huma.Param{Name: "base", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean, Default: true},
			Description: "Whether the frame before the piece is sent whole; who has it, or the frame after the piece, needs none"}),
		Description: "The frame is the first of a piece, as list-frames has them. 32-bit words, the least byte first: the base, which is the frame " +
			"before the piece (−1 where there is none), then each frame of the piece: its number; x, y, width and height of an area that has moved, and by " +
			"how many rows (all 0 where none has); the number of its rectangles, and for each of them x, y, width, height and its pixels, rows from the " +
			"top. A pixel is R, G, B and 0. That of the base is as it is. Each other frame is the one before, with the rows of the area that has moved " +
			"rotated downwards, exclusive-ored with the rectangles' pixels.",
		Responses: file("200", "application/octet-stream", "The piece, compressed with gzip where the client accepts it"),
	}, p.frameDifferences)
}

// trialReel opens the reel of a trial. The caller closes it.
func (p *Panel) trialReel(ctx context.Context, id string, number int) (*lab.Run, *lab.Trial, *openReel, error) {
	found, err := p.get(ctx, &idInput{id})
	if err != nil {
		return nil, nil, nil, err
	}
	var trial *lab.Trial
	for _, t := range found.Body.Trials {
		if t.Number == number {
			trial = t
		}
	}
	if trial == nil {
		return nil, nil, nil, huma.Error404NotFound(fmt.Sprintf("run %s has no trial %d", clip(id), number))
	}
	none := huma.Error404NotFound(fmt.Sprintf("trial %d of run %s has no reel: without one its frames cannot be seen", number, clip(id)))
	name := path.Join("trials", store.TrialName(number), filepath.ToSlash(trial.Files["reel"]))
	if trial.Files["reel"] == "" || !fs.ValidPath(name) || isHidden(name) {
		return nil, nil, nil, none
	}
	root, err := p.Store.Files(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil, none
	}
	if err != nil {
		return nil, nil, nil, p.internalError(err)
	}
	defer root.Close()
	f, info, err := p.openFile(ctx, root, id, name)
	var refused *Refusal
	if errors.As(err, &refused) {
		return nil, nil, nil, huma.NewError(refused.Status, refused.Error())
	}
	if err != nil {
		return nil, nil, nil, none
	}
	r, err := reel.NewReader(f, info.Size())
	if err != nil {
		_ = f.Close()
		return nil, nil, nil, huma.Error409Conflict(fmt.Sprintf("the reel of trial %d cannot be read: %v; look at it with: appliance reel verify", number, err))
	}
	if whole, err := store.ReadTrial(root, number); err == nil { // run.json has no curves
		trial = whole
	}
	return found.Body, trial, &openReel{Reader: r, file: f, tag: ETagOf(info)}, nil
}

func (p *Panel) listFrames(ctx context.Context, in *framesInput) (*TrialFrames, error) {
	run, trial, r, err := p.trialReel(ctx, in.ID, in.Trial)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	done, err := p.counted.turn.Take(ctx)
	if err != nil {
		return nil, p.internalError(err)
	}
	p.counted.recent.close() // whoever begins to look sees the reel as it is now
	done()
	region, err := frameRegion(in.Region, r.Format().Bounds())
	if err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: "query.region", Message: err.Error()})
	}
	list, err := p.counted.list(ctx, fmt.Sprint(in.ID, "/", in.Trial, "/", r.tag, "/", region), r.Reader, region)
	if ctx.Err() != nil {
		return nil, p.internalError(ctx.Err())
	}
	if err != nil {
		return nil, huma.Error409Conflict(fmt.Sprintf("the frames of trial %d cannot be compared: %v", in.Trial, err))
	}
	start := trial.StartTime
	if start == 0 {
		start = r.Info(0).Time
	}
	out := &TrialFrames{
		Run: in.ID, Kind: run.Kind, Trial: in.Trial, Arm: trial.Arm, Valid: trial.Valid,
		Width: list.Width, Height: list.Height, Start: trial.StartFrame,
		Content: FrameArea{trial.ContentX, trial.ContentY, trial.ContentW, trial.ContentH},
		Region:  areaOf(list.Region), Pixels: list.Region.Dx() * list.Region.Dy(), Changed: list.Changed, Pieces: list.Pieces,
		Progress: append([]float64{}, trial.VisualProgress...), Strip: []StripPicture{},
	}
	if root, err := p.Store.Files(in.ID); err == nil {
		for _, shot := range report.FilmstripOf(root, trial) {
			out.Strip = append(out.Strip, StripPicture{shot.TimeMS, shot.File})
		}
		_ = root.Close()
	}
	for _, t := range run.Trials {
		out.Trials = append(out.Trials, t.Number)
	}
	for _, ns := range list.TimeNS {
		out.TimeMS = append(out.TimeMS, math.Round(float64(lab.Time(ns)-start)/1e3)/1e3)
	}
	return out, nil
}

// list counts, or finds what was counted. Whoever leaves waits no longer.
func (c *counting) list(ctx context.Context, key string, r *reel.Reader, region image.Rectangle) (*frames.List, error) {
	known := func() *frames.List {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.done[key]
	}
	if l := known(); l != nil {
		return l, nil
	}
	done, err := c.turn.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if l := known(); l != nil { // somebody else counted meanwhile
		return l, nil
	}
	l, err := frames.Read(r, region)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[string]*frames.List{}
	}
	if len(c.keys) == keptLists {
		delete(c.done, c.keys[0])
		c.keys = c.keys[1:]
	}
	c.keys, c.done[key] = append(c.keys, key), l
	return l, nil
}

// frameRegion reads X,Y,WIDTH,HEIGHT; "" is everything.
func frameRegion(text string, bounds image.Rectangle) (image.Rectangle, error) {
	if text == "" {
		return bounds, nil
	}
	var v [4]int
	parts := strings.Split(text, ",")
	ok := len(parts) == len(v)
	for i := 0; ok && i < len(v); i++ {
		n, err := strconv.Atoi(parts[i])
		v[i], ok = n, err == nil && n >= 0 && n <= lab.MaxSide
	}
	r := image.Rect(v[0], v[1], v[0]+v[2], v[1]+v[3])
	if !ok || r.Empty() || !r.In(bounds) {
		return r, fmt.Errorf("region %s: write X,Y,WIDTH,HEIGHT in pixels, inside the frame of %d × %d", clip(text), bounds.Dx(), bounds.Dy())
	}
	return r, nil
}

func (p *Panel) framesTable(c echo.Context) error {
	trial, err := strconv.Atoi(c.Param("trial"))
	if err != nil {
		return missing(c.Param("trial"))
	}
	list, err := p.listFrames(c.Request().Context(), &framesInput{ID: c.Param("id"), Trial: trial, Region: c.QueryParam("region")})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("frame,time_ms,changed_pixels,changed_percent,visual_progress_percent\r\n")
	for i, at := range list.TimeMS {
		progress := ""
		if k := i - list.Start; k >= 0 && k < len(list.Progress) {
			progress = strconv.FormatFloat(list.Progress[k], 'f', -1, 64)
		}
		fmt.Fprintf(&b, "%d,%.3f,%d,%s,%s\r\n", i, at, list.Changed[i],
			strconv.FormatFloat(100*float64(list.Changed[i])/float64(list.Pixels), 'f', 6, 64), progress)
	}
	c.Response().Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=\"%s-trial-%d-frames.csv\"", list.Run, trial))
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8", b.Bytes())
}

func (p *Panel) framePicture(c echo.Context) error {
	return p.ofReel(c, "image/png", func(r *openReel, frame int, b *bytes.Buffer) error {
		img, err := frames.Picture(r.Reader, frame)
		if err != nil {
			return echo.NewHTTPError(http.StatusConflict, err.Error())
		}
		return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(b, img)
	})
}

// ofReel answers with what fill makes of a reel's frame, of which nothing is sent after an error.
func (p *Panel) ofReel(c echo.Context, kind string, fill func(r *openReel, frame int, b *bytes.Buffer) error) error {
	var b bytes.Buffer
	err := func() error {
		done, err := p.counted.turn.Take(c.Request().Context())
		if err != nil {
			return err
		}
		defer done()
		r, frame, err := p.reelOf(c)
		if err != nil {
			return err
		}
		if c.Request().Header.Get("If-None-Match") == r.tag {
			return c.NoContent(http.StatusNotModified)
		}
		return fill(r, frame, &b)
	}()
	if err != nil || c.Response().Committed {
		return err
	}
	return c.Blob(http.StatusOK, kind, b.Bytes()) // without the turn: a slow client takes long
}

func (p *Panel) frameDifferences(c echo.Context) error {
	return p.ofReel(c, "application/octet-stream", func(r *openReel, frame int, b *bytes.Buffer) error {
		base := true
		if text := c.QueryParam("base"); text != "" {
			var err error
			if base, err = strconv.ParseBool(text); err != nil {
				return echo.NewHTTPError(http.StatusUnprocessableEntity, "base "+clip(text)+": write true or false")
			}
		}
		h := c.Response().Header()
		h.Set("Vary", "Accept-Encoding")
		// On the same machine a copy takes less time than gzip does.
		if isLocal(c.Request()) || !strings.Contains(c.Request().Header.Get("Accept-Encoding"), "gzip") {
			if err := frames.WritePiece(b, r.Reader, frame, base); err != nil {
				return echo.NewHTTPError(http.StatusConflict, err.Error())
			}
			return nil
		}
		z, err := gzip.NewWriterLevel(b, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if err := frames.WritePiece(z, r.Reader, frame, base); err != nil {
			return echo.NewHTTPError(http.StatusConflict, err.Error())
		}
		if err := z.Close(); err != nil {
			return err
		}
		h.Set("Content-Encoding", "gzip")
		return nil
	})
}

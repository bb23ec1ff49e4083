package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// ArchiveContents is what a recording holds, and what it is good for.
type ArchiveContents struct {
	Pages     []ArchivedPage    `json:"pages" doc:"What was opened while it was made, as far as the recording says it"`
	Exchanges int               `json:"exchanges" doc:"Requests with their answers"`
	Bytes     int64             `json:"bytes" doc:"Of the file"`
	BodyBytes int64             `json:"body_bytes" doc:"Of the answers' bodies"`
	Hosts     []string          `json:"hosts"`
	SHA256    string            `json:"sha256" doc:"Of the file"`
	Warnings  []string          `json:"warnings" doc:"What reading it repaired, left out or changed"`
	Quality   Quality           `json:"quality"`
	Requests  []ArchivedRequest `json:"requests" doc:"The first 3,000, in the order in which they were made"`
	Last      *Replayed         `json:"last,omitempty" doc:"The newest of the last 100 runs that have ended and replayed it"`
}

// ArchivedPage is a page of a recording.
type ArchivedPage struct {
	URL  string    `json:"url"`
	Wall time.Time `json:"wall" doc:"When it was opened"`
}

// ArchivedRequest is one request of a recording. Times are in ms. Its fields are those of archive.Entry.
type ArchivedRequest struct {
	Order     int     `json:"order"`
	ID        string  `json:"id"`
	Method    string  `json:"method"`
	URL       string  `json:"url" doc:"Its first 400 bytes"`
	Status    int     `json:"status"`
	Protocol  string  `json:"protocol"`
	Server    string  `json:"server,omitempty"`
	Type      string  `json:"type"`
	Bytes     int     `json:"bytes" doc:"Of the body, as it was sent"`
	Start     float64 `json:"start_ms" doc:"Since the recording began"`
	FirstByte float64 `json:"first_byte_ms" doc:"Since the request"`
	End       float64 `json:"end_ms" doc:"Since the request"`
	Chunks    int     `json:"chunks"`
	Truncated string  `json:"truncated,omitempty" doc:"Why the body is not complete"`
}

// Replayed is what became of a recording in a run.
type Replayed struct {
	Run      string    `json:"run"`
	Wall     time.Time `json:"wall"`
	Trials   int       `json:"trials" doc:"That replayed it"`
	Requests int       `json:"requests" doc:"Of those trials"`
	Misses   int       `json:"misses" doc:"How many of them it had no answer to"`
	Faulty   int       `json:"faulty" doc:"How many of those trials were invalid for another reason than lateness"`
}

// maxLooked is how many runs are looked through for the newest replay of a recording.
const maxLooked = 100

type contentsBody struct{ Body ArchiveContents }

// archiveFeature has the routes of recordings.
type archiveFeature struct {
	*Panel
	Archives Archives
}

// WithArchives keeps recordings.
func WithArchives(a Archives) Module {
	return func(p *Panel) { archiveFeature{p, a}.archives(p.router, p.api) }
}

// recordings registers the routes that look into recordings.
func (p archiveFeature) recordings(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-archive-contents", Method: http.MethodGet, Path: "/api/v1/archives/{name}/contents", Summary: "What a recording holds",
		Tags: []string{tagArchives}, Description: "Its requests, its quality, and what it lacked when it was last replayed. The name may be that of an upload, or the ID of a run that made a recording.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.contents)
}

func (p archiveFeature) contents(ctx context.Context, in *nameInput) (*contentsBody, error) {
	file, err := p.recordingFile(in.Name)
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	done, err := p.looking.Take(ctx) // uploads and runs, which read recordings in the same turn, wait for one reader and not for all
	if err != nil {
		return nil, err
	}
	c, err := p.Archives.Contents(ctx, file)
	done()
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	// A list without elements is a list, too.
	c.Pages, c.Hosts, c.Warnings = append([]ArchivedPage{}, c.Pages...), append([]string{}, c.Hosts...), append([]string{}, c.Warnings...)
	c.Requests, c.Quality.Problems = append([]ArchivedRequest{}, c.Requests...), append([]ArchiveProblem{}, c.Quality.Problems...)
	if c.Last, err = p.lastReplay(ctx, c.SHA256); err != nil {
		return nil, p.internalError(err)
	}
	return &contentsBody{c}, nil
}

// recordingFile finds a recording by its name, or by the run that made it.
func (p archiveFeature) recordingFile(name string) (string, error) {
	if p.Store.Has(name) {
		root, err := p.Store.Files(name)
		if err != nil {
			return "", err
		}
		defer root.Close()
		f, _, err := store.OpenFile(root, recordingName)
		if err != nil {
			return "", &Refusal{http.StatusNotFound, fmt.Errorf("run %s has no recording of its own", clip(name))}
		}
		defer f.Close()
		return filepath.Join(root.Name(), recordingName), nil
	}
	f, err := p.Archives.Open(name)
	if err != nil {
		var refused *Refusal
		if errors.As(err, &refused) {
			return "", &Refusal{http.StatusNotFound, fmt.Errorf("there is no recording %s, and no run of that ID with one", clip(name))}
		}
		return "", err
	}
	defer f.Close()
	return f.Name(), nil
}

// recordingName is the file of a run's recording in its folder.
const recordingName = "archive.wacz"

// lastReplay finds the newest run that replayed a recording.
func (p *Panel) lastReplay(ctx context.Context, digest string) (*Replayed, error) {
	done, err := p.telling.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	entries, err := p.Store.Runs(ctx, "", maxLooked)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.State != store.StateDone || ctx.Err() != nil {
			continue
		}
		run, err := p.Store.Run(e.ID)
		if err != nil || run.Archive.SHA256 != digest || run.Plan.Live {
			continue
		}
		r := &Replayed{Run: run.ID, Wall: run.Wall}
		for _, t := range run.Trials {
			if t.Arm == lab.Treatment && run.Plan.Treatment != nil && run.Plan.Treatment.Archive != "" {
				continue // it has a recording of its own
			}
			r.Trials++
			r.Requests += t.Requests
			r.Misses += t.Misses
			if len(t.Faults) > 0 {
				r.Faulty++
			}
		}
		return r, nil
	}
	return nil, nil
}

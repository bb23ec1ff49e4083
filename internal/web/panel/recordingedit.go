package panel

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/run/experiment"
)

// ArchiveEdit is a change of a recording.
type ArchiveEdit struct {
	Into     string          `json:"into,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*[.]wacz$" doc:"Name of the new recording. Without it the recording itself is changed, which needs If-Match" example:"shop-small.wacz"`
	LeaveOut []string        `json:"leave_out,omitempty" maxItems:"100" maxLength:"2000" doc:"Patterns of URLs: such requests are left out. * stands for any text; a pattern without one is a part of the URL" example:"[\"*://ads.example/*\"]"`
	Keep     []string        `json:"keep,omitempty" maxItems:"100" maxLength:"2000" doc:"Patterns of URLs: only such requests are kept"`
	Pages    []string        `json:"pages,omitempty" maxItems:"100" maxLength:"8192" doc:"URLs of pages, as the recording's contents have them: only their requests are kept. Those of a page end where the next page begins"`
	Until    float64         `json:"until_ms,omitempty" minimum:"1" maximum:"86400000" doc:"Only what was asked for in the first so many ms is kept"`
	UsedBy   string          `json:"used_by,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"ID of a run that replayed the recording: only what one of its trials was served is kept"`
	Answers  []ArchiveAnswer `json:"answers,omitempty" maxItems:"100" doc:"Changes of answers"`
}

// ArchiveAnswer is a change of answers.
type ArchiveAnswer struct {
	URL       string   `json:"url" minLength:"1" maxLength:"2000" doc:"Pattern of the URLs whose answers are changed" example:"*/hero.jpg"`
	Status    int      `json:"status,omitempty" minimum:"200" maximum:"599"`
	Set       []string `json:"set,omitempty" maxItems:"100" maxLength:"8192" doc:"Header fields, as Name: value; one replaces those of its name" example:"[\"Cache-Control: max-age=60\"]"`
	Drop      []string `json:"drop,omitempty" maxItems:"100" maxLength:"200" doc:"Names of header fields that are dropped"`
	Body      []byte   `json:"body,omitempty" maxLength:"5592408" doc:"The new body, in Base64, at most 4 MiB"`
	FirstByte float64  `json:"first_byte_ms,omitempty" minimum:"0" maximum:"3600000" doc:"Time to first byte, in ms; the rest of the answer moves along" example:"2000"`
}

// EditedArchive is a recording that was made of another.
type EditedArchive struct {
	Archive
	Left   int `json:"left_out" doc:"Requests that it lacks"`
	Edited int `json:"edited" doc:"Answers that differ"`
}

type (
	editArchiveInput struct {
		Name  string `path:"name" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Name of the recording, or the ID of the run that made it" example:"shop.wacz"`
		Match string `header:"If-Match" maxLength:"200" doc:"The ETag of the recording that is replaced, or *"`
		Body  ArchiveEdit
	}
	editedBody struct {
		Location string `header:"Location" doc:"Address of the recording"`
		ETag     string `header:"ETag"`
		Body     EditedArchive
	}
	renameInput struct {
		Name string `path:"name" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Name of the recording" example:"shop.wacz"`
		Body struct {
			Name string `json:"name" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*[.]wacz$" doc:"The new name" example:"shop-2027.wacz"`
		}
	}
	archiveBody struct {
		ETag string `header:"ETag"`
		Body Archive
	}
)

// recordingEdits registers the routes that change recordings.
func (p archiveFeature) recordingEdits(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "edit-archive", Method: http.MethodPost, Path: "/api/v1/archives/{name}/edit", Summary: "Make a changed recording",
		Tags: []string{tagArchives},
		Description: "Of an upload, or of the recording of a run, whose ID is the name then. The new one is complete before it takes its name. " +
			"A recording is changed in place, or another one replaced, only with If-Match, and not while a run or a bisect replays it.",
		DefaultStatus: http.StatusCreated, Security: needsToken(), MaxBodyBytes: maxPlanBody,
		Errors: []int{
			http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity, http.StatusInsufficientStorage,
		},
	}, p.editArchive)
	huma.Register(api, huma.Operation{
		OperationID: "rename-archive", Method: http.MethodPut, Path: "/api/v1/archives/{name}/name", Summary: "Rename a recording",
		Tags: []string{tagArchives},
		Description: "One that a waiting run, a bisect that goes on or a workflow replays keeps its name: the answer is 409 and says which. " +
			"A name that is taken is 409, too.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *renameInput) (*archiveBody, error) {
		if err := p.free(ctx, in.Name, p.neededBy); err != nil {
			return nil, err
		}
		note(ctx, in.Body.Name)
		a, err := p.Archives.Rename(in.Name, in.Body.Name)
		return &archiveBody{a.ETag, a}, p.toHTTPError(err)
	})
}

func (p archiveFeature) editArchive(ctx context.Context, in *editArchiveInput) (*editedBody, error) {
	file, err := p.recordingFile(in.Name)
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	into := in.Body.Into
	if into == "" {
		if p.Store.Has(in.Name) {
			return nil, huma.Error422UnprocessableEntity("into: a run keeps its recording as it is: name a new one")
		}
		if into = in.Name; in.Match == "" {
			return nil, huma.NewError(http.StatusPreconditionFailed, "to change the recording itself send its ETag in If-Match; into makes a new one")
		}
	}
	free := func() error { return p.free(ctx, into, p.inUse) }
	if in.Match != "" {
		if err := free(); err != nil {
			return nil, err
		}
	}
	var logs []string
	if in.Body.UsedBy != "" {
		if logs, err = p.replayLogs(in.Body.UsedBy); err != nil {
			return nil, p.toHTTPError(err)
		}
	}
	note(ctx, into)
	made, err := p.Archives.Edit(ctx, file, into, in.Match, in.Body, logs, free)
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	return &editedBody{"/api/v1/archives/" + into, made.ETag, made}, nil
}

// replayLogs are the files of a run that say what its trials were served.
func (p *Panel) replayLogs(id string) ([]string, error) {
	run, err := p.Store.Run(id)
	if err != nil {
		return nil, &Refusal{http.StatusUnprocessableEntity, fmt.Errorf("used_by: there is no run %s that can be read", clip(id))}
	}
	var logs []string
	for _, t := range run.Trials {
		file := filepath.Join(p.Store.Root(), "runs", id, "trials", store.TrialName(t.Number), experiment.ReplayFile)
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
			logs = append(logs, file)
		}
	}
	if len(logs) == 0 {
		return nil, &Refusal{http.StatusUnprocessableEntity, fmt.Errorf("used_by: run %s has no replay logs, or they were deleted", clip(id))}
	}
	return logs, nil
}

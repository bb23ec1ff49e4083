package panel

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// refuseIfRunning refuses a request that restarts the box while a run is in progress, unless
// interrupt is set. A run that starts during the request is interrupted all the same: an
// update takes minutes to arrive, and runs are not blocked meanwhile.
func (p *Panel) refuseIfRunning(ctx context.Context, interrupt bool) error {
	if interrupt {
		return nil
	}
	id, err := p.queue.InProgress(ctx)
	if err != nil || id == "" {
		return err
	}
	return &Refusal{
		http.StatusConflict,
		fmt.Errorf("run %[1]s goes on, and this restarts the box: wait for it, or cancel it (DELETE /api/v1/runs/%[1]s); "+
			"with ?interrupt=true the box restarts although it goes on", id),
	}
}

func interruptParam() []*huma.Param {
	return []*huma.Param{{Name: "interrupt", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean},
		Description: "Restart even if a run is in progress"}}
}

func runGoesOn() *huma.Response {
	return &huma.Response{Description: "A run is in progress, which the restart would interrupt", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}},
	}}
}

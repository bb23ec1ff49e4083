package panel

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// idle refuses what restarts the box while a run goes on, unless that is meant.
// A run that begins afterwards is cut short all the same: an update takes
// minutes to arrive, and nobody is kept from measuring meanwhile.
func (p *Panel) idle(ctx context.Context, interrupt bool) error {
	if interrupt || p.Queue == nil {
		return nil
	}
	id, err := p.Queue.InProgress(ctx)
	if err != nil || id == "" {
		return err
	}
	return &Refusal{http.StatusConflict, fmt.Errorf("run %[1]s goes on, and this restarts the box: wait for it, or cancel it (DELETE /api/v1/runs/%[1]s); "+
		"with ?interrupt=true the box restarts although it goes on", id)}
}

func interruptParam() []*huma.Param {
	return []*huma.Param{{Name: "interrupt", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean}, Description: "Do it although a run goes on"}}
}

func runGoesOn() *huma.Response {
	return &huma.Response{Description: "A run goes on, which the restart would interrupt", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}},
	}}
}

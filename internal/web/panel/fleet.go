package panel

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Fleet is the box's place in a fleet, if it has one.
type Fleet interface {
	Status() (FleetStatus, error)
	// Join makes the box a member of the fleet whose head printed the link; the name is optional.
	Join(ctx context.Context, link, name string) error
	// Leave ends that. Without force it refuses while the box holds parts.
	Leave(ctx context.Context, force bool) error
}

// FleetStatus says whether the box belongs to a head, and how they stand.
type FleetStatus struct {
	Joined  bool        `json:"joined" doc:"Whether the box belongs to a head"`
	Head    string      `json:"head,omitempty" doc:"Where the head is" example:"head.example.org:8443"`
	Name    string      `json:"name,omitempty" doc:"The box's name in the fleet" example:"lab-1"`
	ID      string      `json:"id,omitempty" doc:"By which the head knows the box"`
	Since   *time.Time  `json:"since,omitempty" doc:"When it joined"`
	Contact *time.Time  `json:"contact,omitempty" doc:"The head's last answer since the box's service started"`
	Health  string      `json:"health,omitempty" doc:"What the head says of the box's numbers" example:"good"`
	Reason  string      `json:"reason,omitempty" doc:"Why it says so"`
	Problem string      `json:"problem,omitempty" doc:"Why the head was out of reach, or refused, when it was last called; or why the box is no member"`
	Parts   []FleetPart `json:"parts" doc:"The parts of the head's runs that the box holds: those under way, and results that wait to be handed in"`
}

// FleetPart is a part of a run that the head gave to the box.
type FleetPart struct {
	Part    string    `json:"part" doc:"Identifier of the part" example:"20261121-091400-shop.02"`
	Run     string    `json:"run,omitempty" doc:"The box's own run of it; absent before its recordings are here" example:"20261121-091400-shop.02"`
	Device  string    `json:"device" example:"virtual"`
	Attempt int       `json:"attempt" doc:"How often the head has given the part to a box" example:"1"`
	State   string    `json:"state" enum:"fetching,waiting,running,handing in,returning" doc:"fetching: its recordings come from the head; waiting: in the box's queue; handing in: it has ended, and the head has not got all of it; returning: the box gives it back"`
	Trial   int       `json:"trial,omitempty" doc:"The trial that goes on, from 1"`
	Of      int       `json:"of,omitempty" doc:"How many there will be"`
	Doing   string    `json:"doing,omitempty" doc:"What is being done, in words"`
	Problem string    `json:"problem,omitempty" doc:"Why it does not get further, or is given back"`
	Since   time.Time `json:"since" doc:"When the box claimed it"`
}

type (
	fleetBody struct{ Body FleetStatus }
	joinInput struct {
		Body struct {
			Link string `json:"link" maxLength:"1000" doc:"The link that the head shows, which works once" example:"eidetic-head://head.example.org:8443/mJxk2Vq8LwPzR4tYbN7c?pin=3b1c…"`
			Name string `json:"name,omitempty" maxLength:"63" doc:"The box's name in the fleet; without it the box's host name" example:"lab-1"`
		}
	}
	leaveInput struct {
		Force bool `query:"force" doc:"Leave even while the box holds parts: their runs are stopped and stay on the box, and the head gives the parts to others"`
	}
)

// membershipFeature has the routes of a box's place in a fleet.
type membershipFeature struct {
	*Panel
	Fleet Fleet
}

// WithMembership lets the box join a fleet.
func WithMembership(f Fleet) Module {
	return func(shell *Panel) {
		p := membershipFeature{shell, f}
		p.membership(p.api)
		shell.states = append(shell.states, func(_ context.Context, h *Health) { h.Joins = true })
	}
}

// membership registers the routes of the box's place in a fleet.
func (p membershipFeature) membership(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-fleet", Method: http.MethodGet, Path: "/api/v1/fleet", Summary: "Whether the box belongs to the head of a fleet",
		Tags: []string{tagFleet}, Security: needsToken(),
	}, func(context.Context, *noInput) (*fleetBody, error) { return p.fleetStatus() })
	huma.Register(api, huma.Operation{
		OperationID: "join-fleet", Method: http.MethodPut, Path: "/api/v1/fleet", Summary: "Join a fleet", Tags: []string{tagFleet},
		Description: "The box calls the head of the link, and takes parts of its runs from then on. A repeated request with the same link changes nothing.",
		Security:    needsToken(), Errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *joinInput) (*fleetBody, error) {
		if err := p.Fleet.Join(ctx, in.Body.Link, in.Body.Name); err != nil {
			return nil, p.toHTTPError(err)
		}
		st, err := p.fleetStatus()
		if err == nil {
			note(ctx, "head "+st.Body.Head+", as "+st.Body.Name) // the link holds a code
		}
		return st, err
	})
	huma.Register(api, huma.Operation{
		OperationID: "leave-fleet", Method: http.MethodDelete, Path: "/api/v1/fleet", Summary: "Leave the fleet", Tags: []string{tagFleet},
		Description:   "The head is not told: remove the box there as well.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *leaveInput) (*struct{}, error) {
		return nil, p.toHTTPError(p.Fleet.Leave(ctx, in.Force))
	})
}

func (p membershipFeature) fleetStatus() (*fleetBody, error) {
	st, err := p.Fleet.Status()
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	return &fleetBody{st}, nil
}

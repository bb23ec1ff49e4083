package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/box/credentials"
)

const tagAccess = "access"

// Session is the response of GET /api/v1/session.
type Session struct {
	Name    string            `json:"name" doc:"Name of the token; box is the box's own" example:"nightly"`
	Scope   credentials.Scope `json:"scope" enum:"read,run,admin" doc:"What it may do"`
	Expires *time.Time        `json:"expires,omitempty" doc:"When the session ends if it is not used; absent for a token"`
}

// NewToken is the response to a request for a token.
type NewToken struct {
	credentials.Token
	Secret string `json:"secret" doc:"The token itself, which is not kept and cannot be shown again" example:"eid_mfrggzdfmztwq2lknnwg23tpob"`
}

type (
	sessionBody struct{ Body Session }
	tokensBody  struct {
		Body struct {
			Tokens []credentials.Token `json:"tokens" doc:"The named tokens, oldest first; the box's own is not among them"`
		}
	}
	newTokenInput struct {
		Body struct {
			Name  string            `json:"name" maxLength:"60" minLength:"1" doc:"What you call it; no two have the same name" example:"nightly"`
			Scope credentials.Scope `json:"scope" enum:"read,run,admin" doc:"read looks; run also starts and cancels runs and uploads recordings; admin may do everything"`
		}
	}
	newTokenBody struct{ Body NewToken }
	tokenInput   struct {
		ID string `path:"id" maxLength:"32" pattern:"^[a-z0-9]+$" doc:"Identifier of the token" example:"k3v7m2qx"`
	}
	auditInput struct {
		Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Most events in the response"`
	}
	auditBody struct {
		Body struct {
			Events []credentials.Act `json:"events" doc:"Newest first"`
		}
	}
)

// access registers the routes of tokens, sessions and the audit log. Without a token the
// panel has none of them, except the sessions, which its page asks for.
func (p *Panel) access(e *echo.Echo, api huma.API) {
	p.sessions(e, api)
	if p.Token.IsZero() {
		return
	}
	huma.Register(api, huma.Operation{
		OperationID: "list-tokens", Method: http.MethodGet, Path: "/api/v1/tokens", Summary: "List the named tokens", Tags: []string{tagAccess},
		Security: needsToken(),
	}, func(context.Context, *noInput) (*tokensBody, error) {
		body := &tokensBody{}
		body.Body.Tokens = p.Credentials.List()
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/api/v1/tokens", Summary: "Make a token", Tags: []string{tagAccess},
		Description:   "The response holds the token, once: the box keeps only its digest.",
		DefaultStatus: http.StatusCreated, Security: needsToken(), Errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, p.createToken)
	huma.Register(api, huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: "/api/v1/tokens/{id}", Summary: "Revoke a token", Tags: []string{tagAccess},
		Description:   "The token and the sessions that were opened with it end at once.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *tokenInput) (*struct{}, error) {
		gone, err := p.Credentials.Revoke(in.ID)
		note(ctx, gone.Name)
		if errors.Is(err, credentials.ErrNoToken) {
			return nil, huma.Error404NotFound(err.Error() + ": " + clip(in.ID))
		}
		return nil, p.toHTTPError(err)
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-audit", Method: http.MethodGet, Path: "/api/v1/audit", Summary: "The audit log", Tags: []string{tagAccess},
		Description: "Who changed what, when and from where, log-ins, and wrong tokens. The box keeps the last thousand events.",
		Security:    needsToken(),
	}, func(_ context.Context, in *auditInput) (*auditBody, error) {
		body := &auditBody{}
		body.Body.Events = append([]credentials.Act{}, p.Credentials.Events(in.Limit)...)
		return body, nil
	})
}

func (p *Panel) createToken(ctx context.Context, in *newTokenInput) (*newTokenBody, error) {
	made, secret, err := p.Credentials.Create(in.Body.Name, in.Body.Scope)
	switch {
	case errors.Is(err, credentials.ErrTaken), errors.Is(err, credentials.ErrMany):
		return nil, huma.Error409Conflict(err.Error())
	case errors.Is(err, credentials.ErrName), errors.Is(err, credentials.ErrScope):
		return nil, huma.Error422UnprocessableEntity(err.Error())
	case err != nil:
		return nil, p.internalError(err)
	}
	note(ctx, fmt.Sprintf("%s, scope %s", made.Name, made.Scope))
	return &newTokenBody{NewToken{made, secret}}, nil
}

// sessions registers the log-in and the log-out of browsers.
func (p *Panel) sessions(e *echo.Echo, api huma.API) {
	e.POST("/api/v1/session", p.login)
	e.DELETE("/api/v1/session", p.logout)
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "log-in", Method: http.MethodPost, Path: "/api/v1/session", Summary: "Exchange a token for a session",
		Tags:        []string{tagAccess},
		Description: "For browsers. The body is the token as plain text; the cookie is HttpOnly and SameSite=Strict. The session ends after a week without use, after 30 days, when its token is revoked, and by logging out.",
		RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}},
		Responses: map[string]*huma.Response{"204": {Description: "The cookie is set"}, "401": {Description: "That is not a token"},
			"429": {Description: "Too many wrong tokens came from this address; Retry-After says how many seconds to wait"}},
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "log-out", Method: http.MethodDelete, Path: "/api/v1/session", Summary: "End the session", Tags: []string{tagAccess},
		Responses: map[string]*huma.Response{"204": {Description: "The session is ended on the box, and the cookie is deleted"}},
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-session", Method: http.MethodGet, Path: "/api/v1/session", Summary: "Who am I?", Tags: []string{tagAccess},
		Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*sessionBody, error) {
		who := identityOf(ctx)
		body := &sessionBody{Session{Name: who.Name, Scope: who.Scope}}
		if !who.Expires.IsZero() {
			body.Body.Expires = &who.Expires
		}
		return body, nil
	})
}

func (p *Panel) login(c echo.Context) error {
	r := c.Request()
	b, err := io.ReadAll(io.LimitReader(r.Body, 4096))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, "the body could not be read")
	}
	if p.Token.IsZero() {
		return c.NoContent(http.StatusNoContent)
	}
	if wait := p.Credentials.Wait(from(r)); wait > 0 {
		(&refusedRequest{http.StatusTooManyRequests, tooManyWrong, wait}).answer(c.Response(), r)
		return nil
	}
	secret, who, ok := p.Credentials.OpenSession(string(b), from(r))
	if !ok {
		return echo.NewHTTPError(http.StatusUnauthorized, "that is not a token of this box")
	}
	p.Credentials.Record(who, "log-in", from(r), http.StatusNoContent)
	c.SetCookie(p.cookie(secret, 0, r.TLS != nil))
	return c.NoContent(http.StatusNoContent)
}

func (p *Panel) logout(c echo.Context) error {
	r := c.Request()
	if old, err := r.Cookie(cookieName); err == nil && !p.Token.IsZero() {
		who, ok := p.Credentials.Session(old.Value)
		if err := p.Credentials.CloseSession(old.Value); err != nil {
			p.Log.Warn("a session that was closed is still on the disk", "error", err)
		}
		if ok {
			p.Credentials.Record(who, "log-out", from(r), http.StatusNoContent)
		}
	}
	c.SetCookie(p.cookie("", -1, r.TLS != nil))
	return c.NoContent(http.StatusNoContent)
}

func (p *Panel) cookie(value string, age int, secure bool) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure}
}

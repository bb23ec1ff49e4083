package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"eidetic/internal/box/credentials"
	"eidetic/internal/web/panel"
)

// Tokens lists the named tokens of the box.
func (c *Client) Tokens(ctx context.Context) ([]credentials.Token, error) {
	text, err := c.request(ctx, http.MethodGet, "/api/v1/tokens", nil, nil, maxAnswer)
	if err != nil {
		return nil, c.outcome(err)
	}
	var list struct{ Tokens []credentials.Token }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, c.garbled("the list of tokens cannot be read")
	}
	for i := range list.Tokens {
		t := &list.Tokens[i]
		t.Name, t.From = Plain(t.Name), Plain(t.From)
	}
	return list.Tokens, nil
}

// CreateToken makes a token. It asks once: a token whose secret was lost on the way is of no
// use, and its name is taken.
func (c *Client) CreateToken(ctx context.Context, name string, scope credentials.Scope) (made panel.NewToken, err error) {
	body, err := json.Marshal(map[string]string{"name": name, "scope": string(scope)})
	if err != nil {
		return made, err
	}
	once := *c
	once.config.Patience = 0
	text, err := once.request(ctx, http.MethodPost, "/api/v1/tokens", body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
	}, maxAnswer)
	if err != nil {
		return made, c.outcome(err)
	}
	if err := json.Unmarshal(text, &made); err != nil || made.Secret == "" || Plain(made.Secret) != made.Secret {
		return made, c.garbled("the answer holds no token")
	}
	return made, nil
}

// RevokeToken revokes the token with the ID.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := c.request(ctx, http.MethodDelete, "/api/v1/tokens/"+url.PathEscape(id), nil, nil, maxAnswer)
	return c.outcome(err)
}

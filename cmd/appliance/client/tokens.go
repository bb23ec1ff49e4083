package client

import (
	"context"
	"net/http"
	"net/url"

	"eidetic/internal/box/credentials"
	"eidetic/internal/web/panel"
)

// Tokens lists the named tokens of the box.
func (c *Client) Tokens(ctx context.Context) ([]credentials.Token, error) {
	var list struct{ Tokens []credentials.Token }
	if err := c.exchange(ctx, http.MethodGet, "/api/v1/tokens", "", nil, &list); err != nil {
		return nil, err
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
	err = c.exchange(ctx, http.MethodPost, "/api/v1/tokens", "", map[string]string{"name": name, "scope": string(scope)}, &made)
	if err == nil && (made.Secret == "" || Plain(made.Secret) != made.Secret) {
		err = c.garbled("the answer holds no token")
	}
	return made, err
}

// RevokeToken revokes the token with the ID.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := c.send(ctx, http.MethodDelete, "/api/v1/tokens/"+url.PathEscape(id), nil)
	return err
}

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/lab"
)

// FilesStore opens the store of a fleet's files that a URL names: file:///FOLDER, which several heads may share, or
// s3://BUCKET/PREFIX?endpoint=https://HOST, with region, credentials, profile and ca as further parameters. Without a
// URL it is nil: a folder of the head's own. A store that is away is waited for, as the database is.
func FilesStore(ctx context.Context, text string, log *slog.Logger) (blob.Store, error) {
	if text == "" {
		return nil, nil
	}
	const example = "write s3://BUCKET/PREFIX?endpoint=https://HOST, or file:///FOLDER"
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("that is no address of a store: %s", example) // the text may hold a password
	}
	if u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "" && u.Fragment == "" {
		return blob.OpenFolder(u.Path)
	}
	if u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%.200q is no address of a store: %s", u.Redacted(), example)
	}
	c := blob.S3Config{Bucket: u.Host, Prefix: strings.TrimPrefix(u.Path, "/")}
	if c.Prefix != "" && !strings.HasSuffix(c.Prefix, "/") {
		c.Prefix += "/"
	}
	query := u.Query()
	for name, to := range map[string]*string{
		"endpoint": &c.Endpoint, "region": &c.Region, "credentials": &c.CredentialsFile, "profile": &c.Profile, "ca": &c.CAFile,
	} {
		*to = query.Get(name)
		query.Del(name)
	}
	for name := range query {
		return nil, fmt.Errorf("%.40q is no parameter of a store: there are endpoint, region, credentials, profile and ca", name)
	}
	if c.Endpoint == "" {
		return nil, fmt.Errorf("the endpoint is missing: %s", example)
	}
	tick := time.NewTicker(lab.AwayFor)
	defer tick.Stop()
	for {
		s, err := blob.OpenS3(ctx, c)
		var away *lab.AwayError
		if !errors.As(err, &away) {
			return s, err
		}
		log.Warn("the store of the fleet's files does not answer: the head waits for it", "error", away.Err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

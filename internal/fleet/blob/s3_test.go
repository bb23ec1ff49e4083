package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/lab"
)

// What a real server does not say on demand, or only in words of its own: package versity has the rest.
func TestS3SaysWhatToDo(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	digest, content := blobtest.Content(1, 100)
	for _, c := range []struct {
		onList, onPut string // STATUS CODE
		want          string
		noRoom, away  bool
	}{
		{onList: "403 RequestTimeTooSkewed", want: "clock"},
		{onList: "403 AccessDenied", want: "allow them to list"},
		{onList: "403 SignatureDoesNotMatch", want: "secret key"},
		{onList: "404 NoSuchBucket", want: "create it"},
		{onPut: "507 XMinioStorageFull", want: "free some", noRoom: true},
		{onPut: "403 QuotaExceeded", want: "quota", noRoom: true},
		{onPut: "400 ExpiredToken", want: "new ones"},
		{onPut: "405 MethodNotAllowed", want: "refuses"},
		{onPut: "429 TooManyRequests", want: "ask again", away: true},
		{onPut: "503 ServiceUnavailable", want: "ask again", away: true},
		{onPut: "closed", want: "ask again", away: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			refusal := c.onPut
			if r.Method == http.MethodGet {
				refusal = c.onList
			}
			w.Header().Set("Content-Type", "application/xml")
			if refusal == "" || refusal == "closed" {
				fmt.Fprint(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
				return
			}
			var status int
			var code string
			if _, err := fmt.Sscan(refusal, &status, &code); err != nil {
				t.Error(err)
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `<Error><Code>%s</Code><Message>no</Message></Error>`, code)
		}))
		defer server.Close()
		s, err := blob.OpenS3(t.Context(), blob.S3Config{Endpoint: server.URL, Bucket: "runs", Region: "us-east-1"})
		if c.onPut != "" {
			if err != nil {
				t.Errorf("OpenS3() = %v; want nil", err)
				continue
			}
			defer s.Close()
			if c.onPut == "closed" {
				server.Close()
			}
			err = s.Put(t.Context(), digest, 100, bytes.NewReader(content))
		}
		var away *lab.AwayError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, blob.ErrNoRoom) != c.noRoom || errors.As(err, &away) != c.away {
			t.Errorf("%s%s: %v; want an error with %q, no room: %v, away: %v", c.onList, c.onPut, err, c.want, c.noRoom, c.away)
		}
		if refused := !c.noRoom && !c.away; errors.Is(err, blob.ErrRefused) != refused {
			t.Errorf("%s%s: %v; want that the store refuses it: %v", c.onList, c.onPut, err, refused)
		}
	}
}

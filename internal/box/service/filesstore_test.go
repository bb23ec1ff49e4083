package service

import (
	"strings"
	"testing"
)

func TestFilesStore(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"file://" + t.TempDir() + "/files", ""},
		{"file://host/files", "is no address of a store"},
		{"file:files", "is no address of a store"},
		{"/files", "is no address of a store"},
		{"s3://", "is no address of a store"},
		{"s3://user:secret@bucket", "is no address of a store"},
		{"s3://user:secret@bu%zzcket", "is no address of a store"},
		{"s3://bucket", "the endpoint is missing"},
		{"s3://bucket?endpoint=https://host.example&acl=public", `"acl" is no parameter`},
		{"https://bucket.example", "is no address of a store"},
	} {
		s, err := FilesStore(t.Context(), c.text)
		if c.want == "" && (err != nil || s == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("FilesStore(%s) = %v, %v; want an error with %q", c.text, s, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("FilesStore(%s) = %v: it shows the password", c.text, err)
		}
	}
	if s, err := FilesStore(t.Context(), ""); s != nil || err != nil {
		t.Errorf("FilesStore() = %v, %v; want a folder of the head's own", s, err)
	}
}

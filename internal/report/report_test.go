package report

import (
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/report/reporttest"
)

func TestLook(t *testing.T) {
	dir := os.Getenv("LOOK")
	if dir == "" {
		t.Skip()
	}
	run := reporttest.Run(7, 10)
	if err := reporttest.Files(dir, run, reporttest.Options{VPXEnc: "/usr/bin/vpxenc"}); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(filepath.Join(dir, FileName))
	t.Log(info.Size())
}

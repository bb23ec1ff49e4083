package testlab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestTempDirIsRemovedFromUnderAWriter(t *testing.T) {
	var dir string
	begun, over := make(chan struct{}), make(chan struct{})
	t.Run("of a browser", func(t *testing.T) {
		dir = TempDir(t)
		go func() { // a helper process that has not noticed its parent's end
			defer close(over)
			for i := 0; ; i++ {
				if i == 100 {
					close(begun)
				}
				if os.WriteFile(filepath.Join(dir, fmt.Sprint("crash", i%1000)), nil, 0o600) != nil {
					return // the folder has gone
				}
			}
		}()
		<-begun
	})
	<-over
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat() of the folder = %v after the test, want that it does not exist", err)
	}
}

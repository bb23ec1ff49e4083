package device

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMainThreads(t *testing.T) {
	proc := t.TempDir()
	for name, text := range map[string]string{
		"7/comm": "chromium\n", "7/schedstat": "1000000 2000000 5\n",
		"7/task/7/comm": "chromium\n", "7/task/7/schedstat": "1000000 2000000 5\n",
		"7/task/71/comm": "ThreadPoolForeg\n", "7/task/71/schedstat": "4000000 0 5\n",
		"7/task/72/comm": "Compositor\n", "7/task/72/schedstat": "9000000 0 5\n",
		"7/task/73/comm": "Chrome_ChildIOT\n", "7/task/73/schedstat": "0 8000000 5\n", // megabytes of script on their way
		"8/comm": "chrome\n", "8/schedstat": "", // has just ended
		"9/comm": "Xvfb\n", "9/schedstat": "1 1 1\n",
		"self/comm": "chromium\n", "self/schedstat": "5 5 5\n",
	} {
		file := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[int]time.Duration{7: 15 * time.Millisecond}, mainThreads(proc)); d != "" {
		t.Errorf("mainThreads() (-want +got):\n%s", d)
	}
}

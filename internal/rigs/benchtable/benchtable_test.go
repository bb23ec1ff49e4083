package benchtable_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/benchtable"
)

func TestRatioIsHowManyTimesBetter(t *testing.T) {
	for _, c := range []struct {
		r    benchtable.Result
		peer float64
		want float64
	}{
		{benchtable.Less("time", 2, "ms"), 6, 3},
		{benchtable.More("rate", 6, "1/s"), 2, 3},
		{benchtable.Less("alarms", 0, "%"), 6, 0},
		{benchtable.More("found", 6, "%"), 0, 0},
	} {
		if got := c.r.Against("peer", c.peer); got.Ratio != c.want || *got.PeerV != c.peer {
			t.Errorf("%s %v against %v: ratio %v, want %v", c.r.Name, c.r.Value, c.peer, got.Ratio, c.want)
		}
	}
}

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench", "x.json")
	list := []benchtable.Result{
		benchtable.Less("lost", 0, "frames").Aim(0),
		benchtable.Less("cost", 5, "ms").Within(1, 9, 20),
		benchtable.More("rate", 5, "1/s").Without("peer", errors.New("it is not here")),
	}
	if err := benchtable.Write(file, list); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"goal": 0`, `"low": 1`, `"pairs": 20`, `"missing": "it is not here"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %s:\n%s", want, text)
		}
	}
	if err := benchtable.Write(file, []benchtable.Result{benchtable.Less("spread", math.NaN(), "ms")}); err == nil || !strings.Contains(err.Error(), "spread") {
		t.Errorf("a number that JSON does not have: %v", err)
	}
}

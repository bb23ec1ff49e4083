package execute

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// takesOf is an arm whose page was recorded several times: the document and an API answer after so many ms.
func takesOf(page string, waits ...[2]int) *cellArm {
	var all []*cellArm
	for _, w := range waits {
		all = append(all, recordedAs(page, map[string]int{page: w[0], page + "api": w[1]}, page, page+"api"))
	}
	one := all[0]
	for _, more := range all[1:] {
		one.more = append(one.more, &take{recorded: more.recorded})
	}
	return one
}

// Whether the servers differ is told of each answer over all recordings; how one of them was on one occasion is not.
func TestServerRows(t *testing.T) {
	a := takesOf("http://a.test/", [2]int{73, 20}, [2]int{90, 25}, [2]int{60, 22}, [2]int{110, 24}, [2]int{80, 21}, [2]int{101, 23})
	b := takesOf("http://b.test/", [2]int{107, 54}, [2]int{70, 60}, [2]int{65, 57}, [2]int{95, 55}, [2]int{88, 58}, [2]int{79, 59})
	rows := servers([]*cellArm{a, b})
	if len(rows) != 2 || rows[0].Name != "/" || rows[0].Differs || rows[1].Name != "/api" || !rows[1].Differs || rows[1].P > 0.01 ||
		rows[1].Shift.Value < 30 || rows[1].Shift.Value > 38 || rows[1].Recordings != 6 {
		t.Fatalf("servers() = %+v; want the document alike and the API slower by about 34 ms", rows)
	}
	if text := rows[1].String(); !strings.HasPrefix(text, "/api +35") || !strings.Contains(text, "6 recordings each, p = 0.00") {
		t.Errorf("the row says %q", text)
	}
	if text := rows[0].String(); !strings.HasSuffix(text, ": no difference found") {
		t.Errorf("the row says %q", text)
	}
	if rows := servers([]*cellArm{takesOf("http://a.test/", [2]int{1, 2}), takesOf("http://b.test/", [2]int{1, 2})}); rows != nil {
		t.Errorf("servers() of one recording each = %+v; want nothing, as nobody knows", rows)
	}
	// With shared times each two recordings that are replayed in a pair take the same time.
	x := &Execution{run: &lab.Run{}, News: News{}}
	x.share([]*cellArm{a, b})
	for i, take := range a.takes() {
		if at, other := take.Exchanges()[1].FirstByte, b.takes()[i].Exchanges()[1].FirstByte; at != other || at < 30*time.Millisecond {
			t.Errorf("recordings %d answer after %v and %v; want the mean", i+1, at, other)
		}
	}
	if len(x.run.Warnings) != 0 {
		t.Errorf("Warnings = %q; want none beside rows", x.run.Warnings)
	}
}

// Recordings of both arms are made in an order that is drawn by lot; one of each is made as ever.
func TestRecordingsInTurns(t *testing.T) {
	asked := checked(t, lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}, Treatment: &lab.Arm{Page: "https://b.test/"}, Timing: "recorded"})
	if asked.Recordings != 6 {
		t.Fatalf("recordings = %d; want 6 of each server whose times are compared", asked.Recordings)
	}
	_, missing := armsOf(asked)
	order := func(seed uint64) (names []string) {
		for _, turn := range inTurns(missing, seed) {
			names = append(names, turn.file)
		}
		return names
	}
	first := order(1)
	if len(first) != 12 || slices.Equal(first, order(2)) || !slices.Equal(first, order(1)) || !slices.Contains(first, "archive-treatment.6.wacz") {
		t.Errorf("inTurns() = %q; want twelve files in an order that the seed draws", first)
	}
	shared := checked(t, lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}, Treatment: &lab.Arm{Page: "https://b.test/"}})
	_, missing = armsOf(shared)
	if got := order(1); !slices.Equal(got, []string{ArchiveFile, treatmentFile}) {
		t.Errorf("inTurns() with shared times = %q; want one of each, in the plan's order", got)
	}
}

package benchtable

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// commit is the commit that a folder's tree is at, "-dirty" behind it if files were changed since; "" without git.
func commit(dir string) string {
	git := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	git.Dir = dir
	out, err := git.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Read reads what Write wrote.
func Read(file string) ([]Result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []Result
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// mayLose is the share of a number that chance may take.
const mayLose = 0.1

// isSteady tells a number that does not hang on how busy the machine is: a ratio, a share, a count. Of a percentage of
// rare cases chance takes more than a tenth.
func (r Result) isSteady() bool { return r.Unit == "" || r.Unit == "1" || r.Unit == "trials" }

// Worse compares the steady numbers of two tables: it returns how many are in both, and which are worse by more than a
// tenth.
func Worse(before, now []Result) (compared int, worse []string) {
	old := map[string]Result{}
	for _, r := range before {
		old[r.Name] = r
	}
	for _, r := range now {
		was, ok := old[r.Name]
		if !ok || !r.isSteady() || r.Unit != was.Unit || r.Better != was.Better {
			continue
		}
		compared++
		if r.Better == Higher && r.Value < was.Value*(1-mayLose) || r.Better == Lower && r.Value*(1-mayLose) > was.Value {
			worse = append(worse, fmt.Sprintf("%s: %.4g, was %.4g (%s is better)", r.Name, r.Value, was.Value, r.Better))
		}
	}
	return compared, worse
}

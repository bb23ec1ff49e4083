package automation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of references.
const (
	mostReferences  = 2000
	mostOfReference = 20 // of one name and branch that are kept
	mostRevision    = 200
)

// RunReference is a run that later ones of the same name are compared with, as what a branch was like. Its files stay
// while it is one.
type RunReference struct {
	ID       int64     `json:"id" example:"4"`
	Name     string    `json:"name" doc:"That of the run, which runs that are compared with it have too" example:"checkout"`
	Branch   string    `json:"branch" example:"main"`
	Version  int       `json:"version" doc:"Counts the references that name and branch have had; main@3 names the third" example:"3"`
	Run      string    `json:"run" doc:"Identifier of the run" example:"20261122-091400-demo"`
	Revision string    `json:"revision,omitempty" doc:"What was measured" example:"3f1c"`
	Machine  string    `json:"machine" doc:"The class of the device and the machine: numbers of others cannot be compared with it" example:"virtual, 2 × AMD EPYC 7B13, 8 GB"`
	Made     time.Time `json:"made"`
	By       string    `json:"by" doc:"Name of the token"`
}

// branch is what a branch may be called: as git has it, without the odd ones.
var branch = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$`) // constant

// MachineOf is the class of what measured a run: runs of one class can be compared.
func MachineOf(run *lab.Run) string {
	device := run.Plan.Device
	if _, own, ok := strings.Cut(device, fleet.DeviceMark); ok { // of a box
		device = own
	}
	h := run.Environment.Host
	text := cmp.Or(device, "virtual")
	if h.Cores > 0 {
		text += fmt.Sprintf(", %d × %s", h.Cores, cmp.Or(lab.Clip(h.Processor, 100), "an unknown processor"))
	}
	if h.MemoryBytes > 0 {
		text += fmt.Sprintf(", %.0f GB", math.Ceil(float64(h.MemoryBytes)/1e9))
	}
	return text
}

// PutReference makes a run the newest reference of its name and a branch. Without a revision it has the one that the
// box deployed for it.
func (k *Keeper) PutReference(ctx context.Context, of string, run *lab.Run, revision, by string) (RunReference, error) {
	r := RunReference{Name: run.Name, Branch: of, Run: run.ID, Revision: revision, Machine: MachineOf(run), Made: k.Now().UTC(), By: by}
	if from := run.Plan.From; revision == "" && from != nil {
		r.Revision = from.Revision
	}
	if err := errors.Join(checkBranch(of), canRefer(run)); err != nil {
		return r, err
	}
	if len(r.Revision) > mostRevision || strings.ContainsAny(r.Revision, " @\n\t") {
		return r, wrong("revision: %.40q: at most %d characters, without spaces and @", r.Revision, mostRevision)
	}
	err := k.in(ctx, "keep reference", func(tx *sql.Tx) error {
		var all, own int
		newest, err := scanReference(tx.QueryRowContext(ctx, `SELECT id, reference FROM refs WHERE name = ? AND branch = ? ORDER BY version DESC LIMIT 1`, r.Name, of))
		switch {
		case err == nil && newest.Run == r.Run && newest.Revision == r.Revision: // such as a request that is made again
			r = newest
			return nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(json_extract(reference, '$.by') = ?), 0) FROM refs`, by).
			Scan(&all, &own); err != nil {
			return err
		}
		if err := lab.Room(all, own, mostReferences, ErrMany); err != nil {
			return err
		}
		r.Version = newest.Version + 1
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		made, err := tx.ExecContext(ctx, `INSERT INTO refs (name, branch, version, run, reference) VALUES (?, ?, ?, ?, ?)`, r.Name, of, r.Version, r.Run, string(text))
		if err == nil {
			r.ID, err = made.LastInsertId()
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM refs WHERE name = ? AND branch = ? AND version <= ?`, r.Name, of, r.Version-mostOfReference)
		return err
	})
	return r, err
}

func checkBranch(text string) error {
	if !branch.MatchString(text) || strings.Contains(text, "..") {
		return wrong("branch %.60q: 1 to 100 letters, digits, dots, dashes, slashes and underscores, a letter or digit first", text)
	}
	return nil
}

// canRefer returns an error for a run that no other can be compared with.
func canRefer(run *lab.Run) error {
	if run.State != store.StateDone {
		return wrong("run %s is %s: a reference is a run that is done", run.ID, run.State)
	}
	for i, view := range run.Views() {
		valid := 0
		for _, t := range view.Trials {
			if t.Arm == lab.Control && t.Valid && !t.IsExtra() {
				valid++
			}
		}
		if valid < lab.LeastForInterval {
			of := ""
			if name := run.Plan.Cells()[i].Name; name != "" {
				of = " of " + lab.Clip(name, 120)
			}
			return wrong("run %s has %d valid trials%s: a reference needs %d, so that something can be told from it", run.ID, valid, of, lab.LeastForInterval)
		}
	}
	return nil
}

// References lists references, the newest first: with a name or a branch those of it.
func (k *Keeper) References(ctx context.Context, name, branch string, limit int) ([]RunReference, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT id, reference FROM refs WHERE (?1 = '' OR name = ?1) AND (?2 = '' OR branch = ?2) ORDER BY id DESC LIMIT ?3`,
		name, branch, limit)
	if err != nil {
		return nil, fmt.Errorf("list references: %w", err)
	}
	defer rows.Close()
	all := []RunReference{}
	for rows.Next() {
		r, err := scanReference(rows)
		if err != nil {
			return nil, fmt.Errorf("list references: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func scanReference(row interface{ Scan(...any) error }) (r RunReference, err error) {
	var id int64
	var text string
	if err = row.Scan(&id, &text); errors.Is(err, sql.ErrNoRows) {
		return r, store.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	r.ID = id
	return r, err
}

// RemoveReference removes a reference. Its run stays, as any other.
func (k *Keeper) RemoveReference(ctx context.Context, id int64) error {
	done, err := k.db.ExecContext(ctx, `DELETE FROM refs WHERE id = ?`, id)
	if err != nil {
		return fmt.Errorf("remove reference: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrNotFound)
	}
	return nil
}

// Latest is the version of a reference that is the newest of the machine's class.
const Latest = "latest"

// shortRevision is the shortest beginning of a revision that names it.
const shortRevision = 7

// ReferenceFor finds what a run is compared with: main@latest is the newest reference of the run's name and the branch
// main that a machine of the same class measured, main@3 the third, and main@3f1c… that of a revision.
func (k *Keeper) ReferenceFor(ctx context.Context, run *lab.Run, name string) (RunReference, error) {
	at := strings.LastIndexByte(name, '@')
	of, version := name[:max(at, 0)], name[at+1:]
	if err := checkBranch(of); at < 0 || err != nil || version == "" {
		return RunReference{}, wrong("reference %.60q: write BRANCH@latest, BRANCH@ with the number of a version, or BRANCH@ with a revision", name)
	}
	rows, err := k.db.QueryContext(ctx, `SELECT id, reference FROM refs WHERE name = ? AND branch = ? ORDER BY version DESC`, run.Name, of)
	if err != nil {
		return RunReference{}, fmt.Errorf("find reference: %w", err)
	}
	defer rows.Close()
	machine, others := MachineOf(run), ""
	// A box of a fleet that has measured the fleet's reference can be compared with others like it.
	calibrated := run.Environment.Box != nil && run.Environment.Box.Calibration != nil
	number, _ := strconv.Atoi(version)
	any := false
	for rows.Next() {
		r, err := scanReference(rows)
		if err != nil {
			return r, fmt.Errorf("find reference: %w", err)
		}
		any = true
		switch {
		case version == Latest, number > 0 && number == r.Version, version == r.Revision && version != "",
			len(version) >= shortRevision && strings.HasPrefix(r.Revision, version):
		default:
			continue
		}
		if r.Machine == machine || calibrated {
			return r, nil
		}
		others = cmp.Or(others, r.Machine)
	}
	if err := rows.Err(); err != nil {
		return RunReference{}, fmt.Errorf("find reference: %w", err)
	}
	what := fmt.Sprintf("branch %s of runs named %q", of, lab.Clip(run.Name, 100))
	switch {
	case others != "":
		return RunReference{}, wrong("%s has no reference %s of this machine, which is %s: that of %s tells nothing of it; make one here", what, version, machine, others)
	case any:
		return RunReference{}, wrong("%s has no reference %.60s: appliance reference ls lists them", what, version)
	}
	return RunReference{}, wrong("%s has no reference yet: make a run of it one, by appliance reference set %s RUN", what, of)
}

// ReferTo names the reference that a run is, such as main@3; "" if it is none.
func (k *Keeper) ReferTo(ctx context.Context, run string) (string, error) {
	r, err := scanReference(k.db.QueryRowContext(ctx, `SELECT id, reference FROM refs WHERE run = ? ORDER BY id DESC LIMIT 1`, run))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return fmt.Sprintf("%s@%d", r.Branch, r.Version), err
}

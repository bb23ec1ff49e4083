package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/verdict"
)

// conclude computes the results of a run from its trials, once its state is final.
func conclude(run *lab.Run) {
	var said []string
	if run.Plan.IsMany() {
		run.Summary = []lab.Summary{}
		findCells(run)
	} else {
		run.Summary = summarise(run.Trials)
		run.Comparison = verdict.Of(run, run.Plan.Seed)
	}
	if run.Comparison != nil && run.State != store.StateDone {
		verdict.Stopped(run.Comparison)
	}
	for _, text := range append(run.Warnings, closing(run)...) {
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	run.Warnings = said
}

// closing lists the warnings that a run gets when it is concluded.
func closing(run *lab.Run) (all []string) {
	for _, r := range run.Resumed {
		all = append(all, fmt.Sprintf("The run was interrupted after %d %s, and went on at %s with the same order and seed.", r.Trials,
			lab.Plural(r.Trials, "trial", "trials"), r.Wall.UTC().Format("15:04:05 on 2 January 2006 (UTC)")))
	}
	if run.Comparison != nil && run.State != store.StateDone {
		all = append(all, fmt.Sprintf("The run ended after %d trials, before all that were planned: what the comparison found is of those alone.",
			len(run.Trials)))
	}
	var dropped []string
	if run.Comparison != nil {
		dropped = append(dropped, verdict.Dropped(run.Comparison))
	}
	for _, c := range run.Cells {
		if c.Comparison == nil {
			continue
		}
		if text := verdict.Dropped(c.Comparison); text != "" {
			dropped = append(dropped, c.Name+": "+text)
		}
	}
	for _, text := range append(dropped, experiment.Explain(run.Tolerance, run.Trials), filledWarning(run), uncounted(run)) {
		if text != "" {
			all = append(all, text)
		}
	}
	void, why := 0, ""
	for _, t := range run.Trials {
		if t.Trace != nil && t.Trace.Void != "" {
			void, why = void+1, cmp.Or(why, t.Trace.Void)
		}
	}
	if void > 0 {
		all = append(all, fmt.Sprintf("%d %s of the browser %s not used, the first because %s", void, lab.Plural(void, "trace", "traces"),
			lab.Plural(void, "is", "are"), why))
	}
	hot, how := 0, ""
	for _, t := range run.Trials {
		if slowed := lab.Slowed(t.Conditions, t.ConditionsAfter); slowed != "" {
			hot, how = hot+1, cmp.Or(how, slowed)
		}
	}
	if hot > 0 {
		all = append(all, fmt.Sprintf("In %d %s the device slowed itself down because of its heat (first: %s). Their times may be longer than those of a "+
			"cool device: let it cool, or set conditions in the plan", hot, lab.Plural(hot, "trial", "trials"), how))
	}
	if said := thrownAway(run.Trials, run.Measured(), valid(run.Trials)); said != "" {
		all = append(all, said)
	}
	return all
}

// thrownAway says of invalid trials what that means for the numbers, and what most of them had against them. There is
// nothing to say of those that were made again because another was less exact.
func thrownAway(trials []*lab.Trial, measured, good int) string {
	bad, replaced := measured-good, 0
	counts, most := map[string]int{}, ""
	for _, t := range trials {
		if t.IsSuperseded() && !t.IsExtra() {
			replaced++
		}
		if t.Valid || t.IsExtra() || len(t.Invalid) == 0 || t.IsSuperseded() {
			continue
		}
		reason, _, _ := strings.Cut(t.Invalid[0], ": ")
		if counts[reason]++; counts[reason] > counts[most] {
			most = reason
		}
	}
	if bad -= replaced; bad <= 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d trials %s invalid and in no number", bad, measured, lab.Plural(bad, "is", "are"))
	if replaced > 0 {
		text += fmt.Sprintf(", and %d %s replaced by trials with less blur", replaced, lab.Plural(replaced, "was", "were"))
	}
	if good > 0 {
		text += fmt.Sprintf("; the other %d %s", good, lab.Plural(good, "holds", "hold"))
	}
	if most != "" {
		text += fmt.Sprintf(". What to mend first, the reason of %d: %s", counts[most], lab.Clip(most, 160))
	}
	return text + "."
}

// CutOff is the error of an interrupted run that has been concluded. It differs from the
// error that store.ReadRun reports for an unfinished folder, so that the two can be told
// apart.
const CutOff = "the process that ran it ended before it was done; the result is of the trials that were whole"

// Conclude completes a run that was interrupted by SIGKILL or a power cut: it adds the
// summary of its trials, the comparison, a report, and the reason of the end. Runs that are
// complete or in progress are not changed.
func Conclude(dir, reason string) error {
	folder, run, err := store.Reopen(dir)
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	run.State, run.Error = store.StateInterrupted, reason
	if err := recoverFilled(folder.Path(), run); err != nil {
		run.Warnings = append(run.Warnings, "What the run fetched from origins: "+err.Error())
	}
	conclude(run)
	concludeCauses(folder.Path(), run)
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run)
}

// Complete writes a run whose state is final, with its report. With again it first computes its results from its
// trials.
func Complete(folder *store.Folder, run *lab.Run, again bool) error {
	if again {
		conclude(run)
		concludeCauses(folder.Path(), run)
	}
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run) // the last, so that a run whose state is final is complete
}

// ConcludeAll concludes the interrupted runs of a store but those, by their IDs, that will go on. It
// logs errors and continues: a damaged folder must not stop the service.
func ConcludeAll(ctx context.Context, runs *store.Store, goOn []string, log *slog.Logger) {
	dirs, err := runs.CutOff(ctx)
	if err != nil {
		log.Error("interrupted runs could not be listed and have no result", "error", err)
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return // the next start continues
		}
		if slices.Contains(goOn, filepath.Base(dir)) {
			continue
		}
		if err := Conclude(dir, CutOff); err != nil {
			log.Error("an interrupted run could not be concluded and has no result", "run", dir, "error", err)
		}
	}
}

package execute

import (
	"context"
	"errors"
	"fmt"
	"image"

	"eidetic/control/gesture"
	"eidetic/control/recipe"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
)

// byRecipe makes a device fresh by what is known of its browser: a window that remembers nothing
// is opened for each trial, and the one of the trial before is closed.
type byRecipe struct {
	recipe recipe.Recipe
	open   bool // a window of ours
}

// do implements [refresher].
func (r *byRecipe) do(ctx context.Context, c screenControl) error {
	opening, err := r.recipe.Opening(StartURL)
	if err != nil {
		return err
	}
	closing, err := r.steps(r.recipe.Close)
	if err != nil {
		return err
	}
	fresh, err := r.steps(r.recipe.Fresh)
	if err != nil {
		return err
	}
	if r.open && r.recipe.Fresh != "" {
		if _, err := perform(ctx, c, closing); err != nil {
			return err
		}
	}
	r.open = true
	_, err = perform(ctx, c, append(fresh, opening...))
	return err
}

// begin implements [refresher].
func (*byRecipe) begin(string) {}

// shown implements [refresher].
func (r *byRecipe) shown(ctx context.Context, c screenControl) error {
	steps, err := r.steps(r.recipe.Kiosk)
	if err != nil {
		return err
	}
	_, err = perform(ctx, c, steps)
	return err
}

func (r *byRecipe) steps(text string) ([]lab.Step, error) {
	if text == "" {
		return nil, nil
	}
	return gesture.Parse(text)
}

// perform gives the input of steps that look at no screen. The event is the last of it.
func perform(ctx context.Context, c screenControl, steps []lab.Step) (last lab.Event, err error) {
	d := gesture.Doer{
		Controller: c, Clock: clock,
		Find: func(context.Context, lab.Target) (image.Rectangle, error) {
			return image.Rectangle{}, errors.New("a recipe cannot aim at anything")
		},
	}
	for _, s := range steps {
		log, err := d.Do(ctx, s)
		var late *gesture.LateError
		if err != nil && !errors.As(err, &late) { // a late key has been pressed
			verb, value := s.Verb()
			return last, fmt.Errorf("%s %s: %w", verb, value, err)
		}
		if n := len(log.Events); n > 0 && s.Wait == "" {
			last = log.Events[n-1].Event
		}
	}
	return last, nil
}

// adbClient is that of a server that runs: a service starts no program that outlives it.
func adbClient() adbserver.Client { return adbserver.Client{Address: adbserver.Address} }

// refresherOf returns what makes a device fresh; the configuration's own steps are used where it has some.
func refresherOf(c PluggedConfig) (refresher, error) {
	if len(c.Fresh) > 0 || c.Recipe == "" {
		return c.Fresh, nil
	}
	r, err := recipe.Find(c.Recipe)
	if err != nil {
		return nil, err
	}
	if c.isPhone(r) {
		return &onPhone{client: adbClient(), serial: c.serial(), recipe: r, clear: c.Clear, limit: freshLimit}, nil
	}
	return &byRecipe{recipe: r}, nil
}

// isPhone says whether adb starts and stops the device's browser.
func (c PluggedConfig) isPhone(r recipe.Recipe) bool { return c.Controls.ADB != "" && r.Package != "" }

// serial is the phone's; "" is the only one's.
func (c PluggedConfig) serial() string {
	if c.Controls.ADB == lab.AutoPart {
		return ""
	}
	return c.Controls.ADB
}

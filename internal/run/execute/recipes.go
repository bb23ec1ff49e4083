package execute

import (
	"context"
	"errors"
	"fmt"
	"image"

	"eidetic/control/adb"
	"eidetic/control/gesture"
	"eidetic/control/recipe"
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
		if err := perform(ctx, c, closing); err != nil {
			return err
		}
	}
	r.open = true
	return perform(ctx, c, append(fresh, opening...))
}

// shown implements [refresher].
func (r *byRecipe) shown(ctx context.Context, c screenControl) error {
	steps, err := r.steps(r.recipe.Kiosk)
	if err != nil {
		return err
	}
	return perform(ctx, c, steps)
}

func (r *byRecipe) steps(text string) ([]lab.Step, error) {
	if text == "" {
		return nil, nil
	}
	return gesture.Parse(text)
}

// perform gives the input of steps that look at no screen.
func perform(ctx context.Context, c screenControl, steps []lab.Step) error {
	d := gesture.Doer{
		Controller: c, Clock: clock,
		Find: func(context.Context, lab.Target) (image.Rectangle, error) {
			return image.Rectangle{}, errors.New("a recipe cannot aim at anything")
		},
	}
	for _, s := range steps {
		_, err := d.Do(ctx, s)
		var late *gesture.LateError
		if err != nil && !errors.As(err, &late) { // a late key has been pressed
			verb, value := s.Verb()
			return fmt.Errorf("%s %s: %w", verb, value, err)
		}
	}
	return nil
}

// onPhone makes an Android device fresh: the package is stopped, and an intent opens the page.
type onPhone struct {
	serial, name string
}

// do implements [refresher].
func (p onPhone) do(ctx context.Context, _ screenControl) error {
	client := adbClient()
	found, err := client.Find(ctx, p.serial)
	if err != nil {
		return err
	}
	phone := adb.Phone{Client: client, Serial: found.Serial}
	if err := phone.ForceStop(ctx, p.name); err != nil {
		return err
	}
	return phone.Open(ctx, StartURL, p.name)
}

// shown implements [refresher]: Android's browsers cannot be told to fill the screen.
func (onPhone) shown(context.Context, screenControl) error { return nil }

// adbClient is that of a server that runs: a service starts no program that outlives it.
func adbClient() adb.Client { return adb.Client{Address: adb.Server} }

// refresherOf returns what makes a device fresh; Fresh is used where the configuration has steps.
func refresherOf(fresh Fresh, recipeName string, controls lab.ControlsPart) (refresher, error) {
	if len(fresh) > 0 || recipeName == "" {
		return fresh, nil
	}
	r, err := recipe.Find(recipeName)
	if err != nil {
		return nil, err
	}
	if controls.ADB != "" && r.Package != "" {
		serial := controls.ADB
		if serial == lab.AutoPart {
			serial = ""
		}
		return onPhone{serial, r.Package}, nil
	}
	return &byRecipe{recipe: r}, nil
}

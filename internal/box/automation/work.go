package automation

import (
	"context"
	"errors"
	"time"
)

const (
	// lookPeriod is how often the clock is read: a timer does not notice that it was set.
	lookPeriod = 10 * time.Second
	// newsPeriod is how often runs are looked for that ended without news.
	newsPeriod = 5 * time.Minute
)

// Work carries out schedules and deliveries, and looks at runs that end, until the context
// does. A clock that was set is noticed within [lookPeriod]. Times that passed while the box
// was off, or while its clock was wrong, are made up for by one run. A clock that is put back
// by at most an hour makes no time due twice; one that is put back further was wrong, and the
// times are counted anew.
func (k *Keeper) Work(ctx context.Context) error {
	listener := k.Runs.Events().Listen("")
	defer listener.Close()
	m := &postman{Keeper: k, pause: lookPeriod, busy: map[string]bool{}}
	defer m.all.Wait()
	defer k.deployers.Wait()
	news := true // runs may have ended while nobody looked
	looked := time.Now()
	for ctx.Err() == nil {
		if news || time.Since(looked) > newsPeriod {
			news, looked = false, time.Now()
			k.complain(ctx, "runs that ended cannot be told of", k.Tell(ctx))
		}
		k.complain(ctx, "a bisection cannot be carried on", k.bisectAll(ctx))
		first, err := k.fireAll(ctx)
		k.complain(ctx, "a schedule cannot be carried out", err)
		second, err := m.deliver(ctx)
		k.complain(ctx, "events cannot be delivered", err)
		pause := lookPeriod
		for _, at := range []time.Time{first, second} {
			if !at.IsZero() {
				pause = min(pause, max(at.Sub(k.Now()), time.Millisecond))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-k.wake:
		case <-listener.Wake():
			for _, p := range listener.Take() {
				news = news || p.Terminal()
			}
		}
	}
	return nil
}

// complain logs an error, unless it comes of stopping.
func (k *Keeper) complain(ctx context.Context, what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
		k.Log.Error(what, "error", err)
	}
}

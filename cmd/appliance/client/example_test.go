package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"eidetic/cmd/appliance/client"
	"eidetic/cmd/appliance/client/clienttest"
)

// box starts a box for an example.
func box() (b *clienttest.Box, stop func()) {
	dir, err := os.MkdirTemp("", "box-")
	if err != nil {
		log.Fatal(err)
	}
	if b, err = clienttest.Start(dir); err != nil {
		log.Fatal(err)
	}
	return b, func() {
		if err := errors.Join(b.Close(), os.RemoveAll(dir)); err != nil {
			log.Print(err)
		}
	}
}

// A run is started from a plan, followed to its end, and read.
func Example() {
	ctx := context.Background()
	box, stop := box()
	defer stop()

	c := client.New(client.Config{
		Base:  box.URL, // https://box.local:8080
		Token: client.NewSecret(box.Token),
		Trust: client.Trust{Fingerprint: box.Fingerprint}, // as the box's screen shows it
	})
	defer c.Close()
	if err := c.CheckReady(ctx); err != nil {
		log.Fatal(err)
	}
	id, err := c.StartPlan(ctx, client.Plan{
		Name: "checkout", Trials: 3,
		Arm: client.Arm{Page: "https://www.shop.example/", Link: "lte"},
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := c.Follow(ctx, id, func(e client.Event) {
		if e.Done != nil {
			fmt.Printf("trial %d of %d\n", e.Done.Number, e.Of)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.State, run.Summary[0].Metric, len(run.Trials))
	report, err := c.Open(ctx, id, "report.html")
	if err != nil {
		log.Fatal(err)
	}
	defer report.Close()
	first, err := io.ReadAll(io.LimitReader(report, 15))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", first)
	// Output:
	// trial 1 of 3
	// trial 2 of 3
	// trial 3 of 3
	// done first_visual_change_ms 3
	// <!doctype html>
}

// A plan is kept on the box, and started every night.
func ExampleClient_PutSchedule() {
	ctx := context.Background()
	box, stop := box()
	defer stop()
	c := client.New(client.Config{Base: box.URL, Token: client.NewSecret(box.Token), Trust: client.Trust{Fingerprint: box.Fingerprint}})
	defer c.Close()

	plan := &client.Request{Plan: client.Plan{Trials: 10, Arm: client.Arm{Page: "https://www.shop.example/"}}}
	w, err := c.PutWorkflow(ctx, "checkout", plan, []string{"team-checkout"}, client.NewThing)
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.PutSchedule(ctx, "nightly", client.Timing{Workflow: w.Name, Cron: "30 2 * * *", Zone: "Europe/Berlin"}, client.NewThing)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Version, s.Name, s.Cron)
	hook, err := c.MakeWebhook(ctx, "chat", "", "https://hooks.shop.example/eidetic", []string{"alert.raised"}, client.Secret{})
	if err != nil {
		log.Fatal(err)
	}
	alerts, err := c.Alerts(ctx, false, "team-checkout", 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hook.Name, len(alerts))
	// Output:
	// 1 nightly 30 2 * * *
	// chat 0
}

// An error says whether to mend the request, to look after the box, or not to trust it.
func ExampleRefusedError() {
	ctx := context.Background()
	box, stop := box()
	defer stop()
	c := client.New(client.Config{Base: box.URL, Token: client.NewSecret(box.Token), Trust: client.Trust{Fingerprint: box.Fingerprint}})
	defer c.Close()

	_, err := c.StartPlan(ctx, client.Plan{Trials: 6000, Arm: client.Arm{Page: "https://www.shop.example/"}})
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		fmt.Println(refused.Status, refused.Field)
	}
	reader, err := c.CreateToken(ctx, "dashboard", client.ScopeRead)
	if err != nil {
		log.Fatal(err)
	}
	looks := client.New(client.Config{Base: box.URL, Token: client.NewSecret(reader.Secret), Trust: client.Trust{Fingerprint: box.Fingerprint}})
	defer looks.Close()
	if _, err = looks.StartPlan(ctx, client.Plan{Arm: client.Arm{Page: "https://www.shop.example/"}}); err != nil {
		fmt.Println(err)
	}
	stranger := client.New(client.Config{Base: box.URL, Trust: client.Trust{Fingerprint: fmt.Sprintf("%064d", 0)}})
	defer stranger.Close()
	_, err = stranger.Health(ctx)
	_, untrusted := errors.AsType[*client.UntrustedError](err)
	fmt.Println(untrusted)
	// Output:
	// 422 trials
	// the box refuses: the token "dashboard" has the scope read, and this needs the scope run: use another token
	// true
}

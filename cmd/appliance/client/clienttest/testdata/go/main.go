// Command session makes a run on a box with a client that oapi-codegen made of the box's
// OpenAPI document: see generated_test.go.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"session/box"
)

func main() {
	if err := session(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client is a client with a token, of the box whose certificate has the fingerprint.
func client(token string) (*box.ClientWithResponses, error) {
	pinned := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != os.Getenv("FINGERPRINT") {
				return errors.New("this is another box")
			}
			return nil
		},
	}}}
	return box.NewClientWithResponses(os.Getenv("BOX"), box.WithHTTPClient(pinned),
		box.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
}

func session(ctx context.Context) error {
	c, err := client(os.Getenv("RUN_TOKEN"))
	if err != nil {
		return err
	}
	health, err := c.HealthWithResponse(ctx)
	if err != nil {
		return err
	}
	fmt.Println("health", health.JSON200.Status)

	text := func(s string) *string { return &s }
	trials := int64(3)
	plan := box.Plan{Page: text("https://www.shop.example/"), Name: text("checkout"), Link: text("lte"), Trials: &trials}
	browser := &box.Browser{}
	if err := browser.FromBrowser0("firefox-esr"); err != nil {
		return err
	}
	plan.Browser = browser
	kept, err := c.PutWorkflowWithResponse(ctx, "checkout", &box.PutWorkflowParams{IfNoneMatch: text("*")}, box.KeptPlan{Plan: plan})
	if err != nil {
		return err
	}
	if kept.JSON200 == nil {
		return fmt.Errorf("keep a plan: %s", kept.Body)
	}
	fmt.Println("workflow", kept.JSON200.Name, kept.JSON200.Version)
	started, err := c.RunWorkflowWithResponse(ctx, "checkout", &box.RunWorkflowParams{IdempotencyKey: text("one")}, box.WorkflowRun{})
	if err != nil {
		return err
	}
	if started.JSON202 == nil {
		return fmt.Errorf("start a run: %s", started.Body)
	}
	id := started.JSON202.Id
	if err := follow(ctx, c, id); err != nil {
		return err
	}
	run, err := c.GetRunWithResponse(ctx, id)
	if err != nil {
		return err
	}
	if run.JSON200 == nil {
		return fmt.Errorf("read the run: %s", run.Body)
	}
	first := (*run.JSON200.Summary)[0]
	fmt.Println("run", run.JSON200.State, len(*run.JSON200.Trials), first.Metric, first.Unit)
	file, err := c.GetArtifactWithResponse(ctx, id, "trials/001/trial.json", &box.GetArtifactParams{})
	if err != nil {
		return err
	}
	fmt.Println("file", file.StatusCode(), len(file.Body) > 0)
	perfherder, err := c.ExportRunWithResponse(ctx, id, &box.ExportRunParams{Format: "perfherder"})
	if err != nil {
		return err
	}
	fmt.Println("export", perfherder.StatusCode(), json.Valid(perfherder.Body))
	archives, err := c.ListArchivesWithResponse(ctx)
	if err != nil {
		return err
	}
	fmt.Println("archives", len(*archives.JSON200.Archives))
	return refused(ctx, plan)
}

// follow reads the run's events to the end.
func follow(ctx context.Context, c *box.ClientWithResponses, id string) error {
	answer, err := c.StreamRunEvents(ctx, id)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var last box.Progress
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				return err
			}
		}
	}
	fmt.Println("events", last.State)
	return nil
}

// refused asks for a run with a token that may only read.
func refused(ctx context.Context, plan box.Plan) error {
	reader, err := client(os.Getenv("READ_TOKEN"))
	if err != nil {
		return err
	}
	answer, err := reader.StartRunWithResponse(ctx, &box.StartRunParams{}, plan)
	if err != nil {
		return err
	}
	problem := answer.ApplicationproblemJSON403
	if problem == nil {
		return fmt.Errorf("a reader started a run: %s", answer.Body)
	}
	fmt.Println("refused", *problem.Status, strings.Contains(*problem.Detail, "needs the scope run"))
	return nil
}

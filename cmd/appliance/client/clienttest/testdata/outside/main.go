// Command outside asks a box for its health, and is of another module than the client: see
// outside_test.go.
package main

import (
	"context"
	"fmt"
	"os"

	"eidetic/cmd/appliance/client"
)

func main() {
	c := client.New(client.Config{Base: os.Args[1], Trust: client.Trust{Fingerprint: os.Args[2]}})
	defer c.Close()
	var h client.Health // the type has a name here
	h, err := c.Health(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(h.Status, h.Starts)
}

// Package nstest runs tests of networks in namespaces of their own, as root or
// as an ordinary user. In goes a test; a second process runs the same test in new
// user, network and mount namespaces, where it can make interfaces, routes and
// further network namespaces, which vanish with the process. Namespace is package
// netspace's, with methods that fail the test.
package nstest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/unshare"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/netspace"
)

const insideVar = "EIDETIC_NSTEST"

// Inside reports whether the test runs in namespaces of its own. Where it does
// not, Inside runs this one test again in new ones, passes its output and outcome
// on, and returns false; the test must return then.
func Inside(t testing.TB) bool {
	t.Helper()
	if os.Getenv(insideVar) == t.Name() {
		here, err := netspace.Here()
		check(t, err)
		defer here.Close()
		check(t, here.Up("lo"))
		return true
	}
	testlab.NeedNamespaces(t)
	args := []string{
		"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$",
		"-test.count=1",
		"-test.timeout=" + timeout(t).String(),
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), insideVar+"="+t.Name())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := unshare.Run(cmd, unshare.Network|unshare.Mounts); err != nil {
		t.Errorf("inside namespaces: %v\n%s", err, &out)
	} else if testing.Verbose() {
		t.Logf("inside namespaces:\n%s", &out)
	}
	return false
}

// timeout returns how long the test can take inside. It is a little less than this
// process has left, so that a hanging test prints its stacks.
func timeout(t testing.TB) time.Duration {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, set := d.Deadline(); set {
			left := time.Until(deadline)
			return max(left-left/20, time.Second).Round(time.Second)
		}
	}
	return 30 * time.Minute
}

// Namespace is a network namespace whose methods fail the test.
type Namespace struct{ *netspace.Namespace }

// Here returns the namespace that the test runs in.
func Here(t testing.TB) *Namespace {
	t.Helper()
	return wrap(t)(netspace.Here())
}

// New makes a network namespace, with lo up, for as long as the test runs.
func New(t testing.TB) *Namespace {
	t.Helper()
	return wrap(t)(netspace.New())
}

func wrap(t testing.TB) func(*netspace.Namespace, error) *Namespace {
	return func(n *netspace.Namespace, err error) *Namespace {
		t.Helper()
		check(t, err)
		t.Cleanup(n.Close)
		return &Namespace{n}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Veth joins two namespaces by a pair of interfaces and brings both up.
func Veth(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string) {
	t.Helper()
	check(t, netspace.Veth(a.Namespace, nameA, b.Namespace, nameB))
}

// Address gives an interface an address in prefix form: "192.168.77.1/24".
func (n *Namespace) Address(t testing.TB, name, prefix string) {
	t.Helper()
	check(t, n.Namespace.Address(name, prefix))
}

// Default routes everything through a gateway.
func (n *Namespace) Default(t testing.TB, gateway string) {
	t.Helper()
	check(t, n.Namespace.Default(gateway))
}

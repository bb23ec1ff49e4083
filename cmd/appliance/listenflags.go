package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/box/doctor"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"

	"golang.org/x/net/http/httpguts"
)

// authorityFlags choose the certificate authority of record and replay.
type authorityFlags struct {
	CADir string `name:"ca-dir" type:"path" placeholder:"DIR" help:"Where the certificate authority is kept; made when there is none. A folder of your own settings, by default."`
}

// dir is the folder of the authority.
func (f *authorityFlags) dir() (string, error) {
	if f.CADir != "" {
		return f.CADir, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w; say where the certificate authority is kept, with --ca-dir", err)
	}
	return filepath.Join(dir, "eidetic", "ca"), nil
}

// load reads the authority, or makes it.
func (f *authorityFlags) load() (*ca.Authority, error) {
	dir, err := f.dir()
	if err != nil {
		return nil, err
	}
	return ca.LoadOrCreate(dir, time.Now)
}

// usage returns what a person does to lead a browser through the explicit proxy.
func (f *authorityFlags) usage(proxy netip.AddrPort, authority *ca.Authority) string {
	dir, err := f.dir()
	if err != nil {
		dir = "" // cannot happen: the authority was loaded from there
	}
	return fmt.Sprintf(`  proxy        http://%[1]v
  certificate  %[2]s, or http://box.test/ through the proxy
               SHA-256 %[3]s
  Chromium     chromium --user-data-dir="$(mktemp -d)" --proxy-server=http://%[1]v --ignore-certificate-errors-spki-list=%[4]s URL
  curl         curl --proxy http://%[1]v --cacert %[2]s URL`,
		proxy, filepath.Join(dir, ca.CertFile), authority.Fingerprint(), authority.SPKI())
}

// originFlags say how record and replay reach origins.
type originFlags struct {
	Resolver netip.AddrPort `placeholder:"IP:PORT" help:"The name server to ask for origins; this machine's, by default."`
	Trust    string         `type:"existingfile" placeholder:"FILE" help:"Certificates of authorities to trust for origins, besides this machine's: PEM or DER."`
	Insecure bool           `name:"insecure-origin" help:"Do not verify the certificates of origins; the report says so."`
	Private  bool           `name:"allow-private" help:"Let pages reach this machine and private networks. Without it a page there reaches its own host only."`
	// Strange says that the pages were not named by the person who gives the command.
	Strange bool `kong:"-"`
}

// pem reads the certificates of --trust.
func (f *originFlags) pem() (string, error) {
	if f.Trust == "" {
		return "", nil
	}
	text, err := ca.ReadAuthorities(f.Trust)
	if err != nil {
		return "", fmt.Errorf("--trust: %w", err)
	}
	return text, nil
}

// reach is what the flags mean for pages, of which there may be none.
func (f *originFlags) reach(ctx context.Context, pages ...string) (sandbox.Reach, error) {
	roots, err := f.pem()
	if err != nil {
		return sandbox.Reach{}, err
	}
	r := sandbox.Reach{Resolver: f.Resolver, Roots: roots, AnyCertificate: f.Insecure, Private: f.Private}
	if !r.Private && !f.Strange {
		r.Open(ctx, pages)
	}
	return r, nil
}

// pageFlags say how the origins of pages that are named on the command line are reached.
type pageFlags struct {
	originFlags
	Header []string `sep:"none" placeholder:"NAME: VALUE" help:"Send this field with every request to the page's own origin while it is recorded, such as 'Cookie: session=…' for a page behind a login. Recordings do not hold it."`

	signIn proxy.Session `kong:"-"` // of addresses with a user and a password
}

// withoutUser takes user and password out of an address, as curl does, and sends them to its origin. From here on
// nothing that is printed, logged or written holds them.
func (f *pageFlags) withoutUser(page string) string {
	u := lab.ParseURL(page)
	if u.User == "" {
		return page
	}
	user, password, _ := strings.Cut(u.User, ":")
	plain := func(text string) string {
		if t, err := url.PathUnescape(text); err == nil {
			return t
		}
		return text
	}
	if f.signIn == nil {
		f.signIn = proxy.Session{}
	}
	f.signIn[u.Origin()] = []proxy.Field{{
		Name: "Authorization", Value: lab.NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(plain(user)+":"+plain(password)))),
	}}
	if u.Fragment != "" {
		return u.Sent() + "#" + u.Fragment
	}
	return u.Sent()
}

// given tells whether one of the flags was.
func (f *pageFlags) given() bool {
	return f.Resolver.IsValid() || f.Trust != "" || f.Insecure || f.Private || len(f.Header) > 0
}

// reach is what the flags mean for these pages.
func (f *pageFlags) reach(ctx context.Context, pages ...string) (sandbox.Reach, error) {
	r, err := f.originFlags.reach(ctx, pages...)
	if err != nil || len(f.Header)+len(f.signIn) == 0 {
		return r, err
	}
	var fields []proxy.Field
	for _, h := range f.Header {
		name, value, ok := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return r, fmt.Errorf("--header %.20q…: write NAME: VALUE, such as 'Cookie: session=1'", name)
		}
		fields = append(fields, proxy.Field{Name: name, Value: lab.NewSecret(value)})
	}
	r.Send = proxy.Session{}
	for _, page := range pages {
		origin := lab.ParseURL(page).Origin()
		r.Send[origin] = append(slices.Clone(f.signIn[origin]), fields...)
	}
	return r, nil
}

// ownGateway is the box's address in a network where it is no gateway.
func ownGateway() netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 77, 1}) }

// validAddress checks a flag that says where to listen; an empty one does not listen.
func validAddress(flag, addr string) error {
	if addr == "" {
		return nil
	}
	if _, err := netip.ParseAddrPort(addr); err != nil {
		if _, port, err := net.SplitHostPort(addr); err == nil && port != "" {
			return fmt.Errorf(
				"%s %s: give an IP address, such as 127.0.0.1:%s, or 0.0.0.0:%s for all of this machine's",
				flag,
				addr,
				port,
				port,
			)
		}
		return fmt.Errorf("%s %s: give IP:PORT, such as 127.0.0.1:8080", flag, addr)
	}
	return nil
}

// runError gives an error of a task in namespaces its exit status.
func runError(ctx context.Context, err error) error {
	var origin *sandbox.OriginError
	if errors.As(err, &origin) {
		return cannot(origin)
	}
	return ended(ctx, err)
}

// visitPages opens pages in a browser of our own, for record and replay.
func visitPages(ctx context.Context, v sandbox.Visit) error {
	if err := doctor.CheckVirtualDevice(ctx); err != nil {
		return cannot(err)
	}
	if err := v.Run(ctx, ownCommands()); err != nil {
		return runError(ctx, err)
	}
	return nil
}

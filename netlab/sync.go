package netlab

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"eidetic/netlab/inject"
)

// A browser has a process for each site: scheme and registrable domain, whatever the port. A load that begins on a
// page of another site begins with the birth of a process, which takes a tenth of a second or two and differs by as
// much from load to load. So the green page that a load begins on is a page of the measured page's own site, at an
// address that no recording has: a name below the page's own, so that the browser knows neither the page's address
// nor a connection to it, or, where there can be no such name, a port of the page's own host.
const (
	syncLabel = "eidetic-sync"
	syncPath  = inject.BoxPath + "sync"
	// SyncPort is that port. Browsers refuse many of the lower ones.
	SyncPort = 61080
	// meterQuery begins the query by which that page tells how long its layout took.
	meterQuery = "meter="
)

// SyncURL is the address of the green page that leads to a page, a page of its site.
func SyncURL(page string) string {
	u, err := url.Parse(page)
	if err != nil || u.Hostname() == "" {
		return ForeignSyncURL(page)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	at := url.URL{Scheme: u.Scheme, Host: syncLabel + "." + host, Path: syncPath, RawQuery: sealedQuery + seal(page)}
	const longest = 253 // of a name (RFC 1035)
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || len(at.Host) > longest {
		at.Host = net.JoinHostPort(host, strconv.Itoa(SyncPort))
	}
	return at.String()
}

// ForeignSyncURL is the address of the same page on a site of its own, as for a visitor who comes from elsewhere.
func ForeignSyncURL(page string) string {
	return "http://" + BoxHost + "/sync?" + sealedQuery + seal(page)
}

// A browser is started with the address of the green page, and every user of the machine may read a program's
// arguments, so the page that it leads to, whose query may be a secret, is sealed with a key of this process, which
// serves it too.
const sealedQuery = "to="

var sealer = sync.OnceValue(func() cipher.AEAD {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has one of AES's lengths
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has GCM's block size
	}
	return aead
})

func seal(page string) string {
	return base64.RawURLEncoding.EncodeToString(sealer().Seal(nil, nil, []byte(page), nil))
}

// unseal returns the page that was sealed in this process.
func unseal(text string) (page string, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	plain, err := sealer().Open(nil, nil, sealed, nil)
	return string(plain), err == nil
}

// isSync says whether an address is one that SyncURL made.
func isSync(u *url.URL) bool {
	return u.Path == syncPath &&
		(strings.HasPrefix(u.Hostname(), syncLabel+".") || u.Port() == strconv.Itoa(SyncPort))
}

// noteMeter keeps what the synchronisation page tells of how long a fixed layout took in it. It is false for another
// address.
func (n *Network) noteMeter(u *url.URL) bool {
	told, ok := strings.CutPrefix(u.RawQuery, meterQuery)
	if !ok {
		return false
	}
	const longest, most = 12, 60_000
	if ms, err := strconv.ParseFloat(told, 64); err == nil && len(told) <= longest && ms > 0 && ms < most {
		n.meter.Store(&ms)
	}
	return true
}

// PageMeter is how long the synchronisation page took for a fixed layout since the network was armed, in ms; false if
// it has not told.
func (n *Network) PageMeter() (ms float64, ok bool) {
	told := n.meter.Load()
	if told == nil {
		return 0, false
	}
	return *told, true
}

package wire

import (
	"strings"
	"sync"
)

// handshakes tells a person why devices could not be spoken to, once for each device and reason.
type handshakes struct {
	mu   sync.Mutex
	told map[string]bool
}

// mostTold bounds what is remembered and told: a device can come with any number of addresses.
const mostTold = 256

// isNews tells whether a reason is told of a device for the first time.
func (h *handshakes) isNews(device, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := device + " " + why
	if h.told[key] || len(h.told) >= mostTold {
		return false
	}
	if h.told == nil {
		h.told = map[string]bool{}
	}
	h.told[key] = true
	return true
}

// whyFailed says why a handshake failed, if a person can do something about it, else "". A device that went away, or
// tried something, is no news. crypto/tls has no types for these errors.
func whyFailed(err error) string {
	text := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("remote error: tls: unknown certificate authority", "remote error: tls: bad certificate", "remote error: tls: unknown certificate"):
		return "the device, or one of its programs, does not trust the box's certificate: install it from http://box.test/, " +
			"unless the program trusts its own servers alone"
	case has("tls: client offered only unsupported versions"):
		return "the device speaks TLS 1.1 at most, which browsers and the box do not: update it"
	case has("tls: client requested unsupported application protocols"):
		return "the device asks for a protocol that is not HTTP"
	}
	return ""
}

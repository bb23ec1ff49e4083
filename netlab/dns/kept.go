package dns

import (
	"sync"

	"github.com/miekg/dns"
)

const (
	// maxKept and maxKeptNegative bound what hostile questions can make us
	// keep: 4096 × (512 + 1232) bytes are 7 MB.
	maxKept, maxKeptNegative = 4096, 512
	maxKeptQuestion          = 512
)

// kept are packed answers by the bytes of their questions, from after the ID
// to the end: whatever an answer may depend on is in them, so that a kept
// answer is the one that ServeDNS would give. They belong to one Source, which
// must not change. A nil kept is empty and keeps nothing.
type kept struct {
	mu        sync.RWMutex
	answers   map[string]*keptAnswer
	negatives int
}

type keptAnswer struct {
	answer   []byte // with any ID
	up, down int    // bytes, for Config.Delay
	query    Query  // but for the times and the client
}

// newKept returns where answers of src are kept, or nil when they may change.
// Only a Table's cannot: what a Forwarder does not know it asks again.
func newKept(src Source) *kept {
	if _, ok := src.(*Table); !ok {
		return nil
	}
	return &kept{answers: map[string]*keptAnswer{}}
}

func (k *kept) of(question []byte) *keptAnswer {
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.answers[string(question)]
}

// keep keeps an answer if it is one for ever. Those with addresses are, since
// Pool gives each origin one; pointers depend on which it has given by now,
// service records on Config.HTTP3, and an error is worth another try.
func (k *kept) keep(question string, a *keptAnswer, m *dns.Msg) {
	qtype := m.Question[0].Qtype
	if k == nil || question == "" || qtype != dns.TypeA && qtype != dns.TypeAAAA || a.query.Error != "" {
		return
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError || len(a.answer) > ednsSize {
		return
	}
	negative := m.Rcode == dns.RcodeNameError
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, have := k.answers[question]; have || negative && k.negatives == maxKeptNegative {
		return
	}
	if len(k.answers) == maxKept { // make room: any other will do
		for other, o := range k.answers {
			if o.query.RCode == dns.RcodeToString[dns.RcodeNameError] {
				k.negatives--
			}
			delete(k.answers, other)
			break
		}
	}
	k.answers[question] = a
	if negative {
		k.negatives++
	}
}

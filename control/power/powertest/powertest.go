// Package powertest has plugs for tests: they answer as the makers' documents say.
package powertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Plug is a simulated plug with one relay.
type Plug struct {
	URL string

	mu       sync.Mutex
	on       bool
	switched []string // "off", "on", in order
	Stuck    bool     // the relay does not move
	busy     int      // so many requests to switch it on are not answered as they should be
	onSwitch func(on bool)
}

// Kinds are the interfaces of plugs.
const (
	Shelly1  = "shelly, first generation"
	Shelly2  = "shelly, with RPC"
	Tasmota  = "tasmota"
	Password = "joker" // of a Tasmota plug
)

// New makes a plug that is on, at an address of this machine. onSwitch, if it is not nil, is called when the relay moves.
func New(t testing.TB, kind string, onSwitch func(on bool)) *Plug {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return At(t, l, kind, onSwitch)
}

// At is New at an address of any network.
func At(t testing.TB, l net.Listener, kind string, onSwitch func(on bool)) *Plug {
	p := &Plug{on: true, onSwitch: onSwitch}
	mux := http.NewServeMux()
	switch kind {
	case Shelly1:
		mux.HandleFunc("GET /relay/0", func(w http.ResponseWriter, r *http.Request) {
			p.set(r.FormValue("turn") == "on")
			answer(w, map[string]any{"ison": p.On(), "has_timer": false, "source": "http"})
		})
	case Shelly2:
		mux.HandleFunc("GET /rpc/Switch.Set", func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("id") != "0" {
				http.Error(w, `{"code":-105,"message":"Argument 'id', value 1 not found!"}`, http.StatusInternalServerError)
				return
			}
			was := p.On()
			p.set(r.FormValue("on") == "true")
			answer(w, map[string]any{"was_on": was})
		})
		mux.HandleFunc("GET /rpc/Switch.GetStatus", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, map[string]any{"id": 0, "source": "HTTP_in", "output": p.On(), "temperature": map[string]any{"tC": 41.2}})
		})
	case Tasmota:
		mux.HandleFunc("GET /cm", func(w http.ResponseWriter, r *http.Request) {
			name, state, _ := strings.Cut(r.FormValue("cmnd"), " ")
			switch {
			case r.FormValue("password") != Password:
				answer(w, map[string]any{"WARNING": "Need user=<username>&password=<password>"})
			case name != "Power" && name != "Power1":
				answer(w, map[string]any{"Command": "Unknown"})
			default:
				p.set(strings.EqualFold(state, "on"))
				answer(w, map[string]any{"POWER": map[bool]string{true: "ON", false: "OFF"}[p.On()]})
			}
		})
	default:
		panic(fmt.Sprintf("powertest: there is no kind %q", kind))
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.FormValue("turn") + r.FormValue("on") + r.FormValue("cmnd"); p.isBusy(asked) {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Plug) set(on bool) {
	p.mu.Lock()
	if p.Stuck {
		p.mu.Unlock()
		return
	}
	moved := p.on != on
	p.on = on
	p.switched = append(p.switched, map[bool]string{true: "on", false: "off"}[on])
	p.mu.Unlock()
	if moved && p.onSwitch != nil {
		p.onSwitch(on)
	}
}

// Busy makes the plug refuse to be switched on so many times.
func (p *Plug) Busy(times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = times
}

func (p *Plug) isBusy(asked string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == 0 || !strings.HasSuffix(asked, "on") && asked != "true" {
		return false
	}
	p.busy--
	return true
}

// On says whether the power is on.
func (p *Plug) On() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// Switched is what the relay was told, in order.
func (p *Plug) Switched() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.switched...)
}

package panel

import (
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// A page, and what leads to it, are there only where the panel has what it shows: a head deletes no evidence and has no
// certificate for devices, and a box has no boxes.
func TestPagesOfAPanel(t *testing.T) {
	box := setup{Store: emptyStore(t), Version: "v1", Retainer: fakeRetainer{}, Certificate: []byte("x")}
	head, _ := headOf(t, setup{Store: emptyStore(t), Version: "v1"})
	for _, c := range []struct {
		name           string
		config         setup
		storage, fleet bool
	}{{"a box", box, true, false}, {"a head", head, false, true}} {
		s := newServer(t, c.config)
		runs := ask(t, s, http.MethodGet, "/", nil).text
		for link, want := range map[string]bool{
			`href="/storage"`: c.storage, `href="/api/v1/certificate"`: c.storage, `href="/boxes"`: c.fleet, "appliance devices": !c.fleet, "Let one join": c.fleet,
		} {
			if got := strings.Contains(runs, link); got != want {
				t.Errorf("%s: the list of runs has %q: %v; want %v", c.name, link, got, want)
			}
		}
		for path, want := range map[string]bool{"/storage": c.storage, "/boxes": c.fleet, "/history": true} {
			if got := ask(t, s, http.MethodGet, path, nil); (got.StatusCode == http.StatusOK) != want {
				t.Errorf("%s: GET %s = %d; want a page: %v", c.name, path, got.StatusCode, want)
			}
		}
	}
}

// Each page asks for the token itself, so none needs one.
func TestPagesNeedNoToken(t *testing.T) {
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1", Token: lab.NewSecret(token), Retainer: fakeRetainer{}})
	for path := range pages {
		if got := ask(t, s, http.MethodGet, path, nil); got.StatusCode == http.StatusUnauthorized {
			t.Errorf("GET %s without a token = %d; want the page, or that there is none", path, got.StatusCode)
		}
	}
}

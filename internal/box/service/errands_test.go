package service

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/run/errand"
	"eidetic/internal/web/panel"
)

// TestErrandsOfDevices: what cannot be asked of a device is refused with a status that tells why.
func TestErrandsOfDevices(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	desk := &portDevice{config: deviceConfig{Name: "desk", Port: "e0"}.withDefaults(0), err: errNoRole}
	desk.seat.Open, desk.seat.Live = desk.parts, t.TempDir()
	var list deviceList
	list.add("virtual", &virtualDevice{})
	list.add("desk", desk)
	keeper := &errand.Keeper{Store: s, Log: slog.New(slog.DiscardHandler)}
	defer keeper.Close()
	all := errands{&list, keeper}
	for _, c := range []struct {
		device, do string
		status     int
		want       string
	}{
		{"none", errand.Film, http.StatusNotFound, "there is no device"},
		{"virtual", errand.Film, http.StatusConflict, "a screen while a run uses it"},
		{"virtual", errand.Record, http.StatusConflict, "a network in runs only"},
		{"desk", "dance", http.StatusUnprocessableEntity, "write film, record, qualify or noise"},
		{"virtual", errand.Qualify, http.StatusConflict, "a screen while a run uses it"},
	} {
		var refused *panel.Refusal
		_, err := all.Start(c.device, panel.ErrandRequest{Do: c.do}, "anna")
		if !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v; want %d and %q", c.do, c.device, err, c.status, c.want)
		}
	}
	if e, err := all.Get("desk"); err != nil || e.State != "none" {
		t.Errorf("Get() before anything was asked = %+v, %v", e, err)
	}
	if got := desk.describe(t.Context()).Errands; !slices.Equal(got, []string{errand.Film, errand.Record, errand.Qualify, errand.Noise}) {
		t.Errorf("it can be asked for %q", got)
	}
	// Its port is not up: the errand fails with the reason, and the device is free again.
	for _, do := range []string{errand.Record, errand.Film} {
		if _, err := all.Start("desk", panel.ErrandRequest{Do: do}, "anna"); err != nil {
			t.Fatal(err)
		}
		back, err := desk.seat.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		back()
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := all.Get("desk"); err != nil || got.State != errand.Failed && got.State != errand.Stopped {
		t.Errorf("the film of a device without a network: %+v, %v", got, err)
	}
}

package panel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

type fakeSupporter struct{ breaks error }

func (f fakeSupporter) Support(_ context.Context, w io.Writer, health Health) error {
	_, err := io.WriteString(w, "bundle of "+health.Version)
	return errors.Join(err, f.breaks)
}

func TestSupportRoute(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token), Version: "v1", Supporter: fakeSupporter{}})
	got := ask(t, s, http.MethodGet, "/api/v1/support", sending(token, ""))
	if got.StatusCode != 200 || got.text != "bundle of v1" || got.Header.Get("Content-Type") != "application/gzip" {
		t.Errorf("GET support = %d %s", got.StatusCode, got.text)
	}
	if log := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text; !strings.Contains(log, "GET /api/v1/support") {
		t.Errorf("the audit log has no support bundle: %s", log)
	}
	s = newServer(t, setup{Store: newStore(t), Supporter: fakeSupporter{errors.New("the disk failed")}})
	answer, err := s.Client().Get(s.URL + "/api/v1/support")
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("a bundle that broke off ended well")
	}
}

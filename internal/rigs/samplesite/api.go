package samplesite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds what the API reads of a request, in bytes.
const maxBody = 16 << 10

// api serves JSON to the shop's modules.
func (s *Site) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/stock", s.endpoint(http.MethodGet, "gzip", s.stock))
	mux.HandleFunc("/v1/recommendations", s.endpoint(http.MethodGet, "zstd", s.recommendations))
	mux.HandleFunc("/v1/reviews", s.endpoint(http.MethodGet, "br", s.reviews))
	mux.HandleFunc("/v1/quote", s.endpoint(http.MethodPost, "gzip", s.quote))
	mux.HandleFunc("/v1/events", s.endpoint(http.MethodPost, "", s.events))
	mux.HandleFunc("/v1/search", s.endpoint(http.MethodGet, "gzip", s.search))
	mux.HandleFunc("/v1/basket", s.endpoint(http.MethodPost, "gzip", s.basket))
	mux.HandleFunc("/v1/orders", s.endpoint(http.MethodPost, "gzip", s.orders))
	return mux
}

// badRequest is an error in the request.
type badRequest struct{ error }

// endpoint makes a handler with CORS, think time and a content coding from a function that returns a value.
func (s *Site) endpoint(verb, coding string, answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allow(w)
		if !method(w, r, verb) {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		v, err := answer(r)
		var bad badRequest
		switch {
		case errors.As(err, &bad):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if !s.think(r, "api", 35*time.Millisecond) {
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		body, err := json.Marshal(v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.Set("Content-Type", "application/json")
		h.Add("Vary", "Accept-Encoding")
		c := negotiate(r.Header.Get("Accept-Encoding"), coding)
		if c != "identity" {
			if body, err = encode(body, c); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			h.Set("Content-Encoding", c)
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // an error means that the client has disconnected
	}
}

// stockList is the response of /v1/stock. Revision differs in every response.
type stockList struct {
	Revision int            `json:"revision"`
	Left     map[string]int `json:"left"`
}

func (s *Site) stock(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	out := stockList{Revision: s.revision, Left: map[string]int{}}
	for _, p := range catalogue() {
		out.Left[p.ID] = 1 + s.dice.stock.IntN(24)
	}
	return out, nil
}

// recommendations shuffles products and prices. The query is a cache buster and is ignored.
func (s *Site) recommendations(*http.Request) (any, error) {
	type item struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Picture string `json:"picture"`
		Price   string `json:"price"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.dice.recommendations
	list := priced(r, related())
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var out []item
	for _, p := range list {
		out = append(out, item{p.ID, p.Name, "https://" + CDN + "/img/" + p.Picture, p.Price()})
	}
	return out, nil
}

func (s *Site) reviews(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.dice.reviews
	n := 1800 + r.IntN(900)
	return map[string]any{"count": n, "average": fmt.Sprintf("4.%d", 6+r.IntN(4)), "recommend": 92 + r.IntN(7)}, nil
}

// order is the body of a quote.
type order struct {
	Items []struct {
		ID  string `json:"id"`
		Qty int    `json:"qty"`
	} `json:"items"`
	Delivery string `json:"delivery"`
	Voucher  string `json:"voucher"`
}

// quote computes a sum from the basket and the delivery in the body.
func (s *Site) quote(r *http.Request) (any, error) {
	var o order
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, badRequest{fmt.Errorf("read the order (at most %d bytes): %w", maxBody, err)}
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, badRequest{fmt.Errorf("the order is not JSON: %w", err)}
	}
	cents := map[string]int{}
	for _, p := range append(catalogue(), related()...) {
		cents[p.ID] = p.Cents
	}
	sum, pieces := 0, 0
	for i, item := range o.Items {
		c, ok := cents[item.ID]
		if !ok || item.Qty < 1 || item.Qty > 99 {
			return nil, badRequest{fmt.Errorf("items[%d]: no product %q, or a quantity outside 1 to 99 (%d)", i, item.ID, item.Qty)}
		}
		sum += c * item.Qty
		pieces += item.Qty
	}
	ship, known := map[string]int{"standard": 490, "express": 1490}[o.Delivery]
	if !known {
		return nil, badRequest{fmt.Errorf("delivery %q: want standard or express", o.Delivery)}
	}
	if o.Voucher != "" {
		sum -= sum / 10
	}
	return map[string]any{"pieces": pieces, "goods": euros(sum), "delivery": euros(ship), "total": euros(sum + ship)}, nil
}

// events accepts a page's report and returns its length.
func (s *Site) events(r *http.Request) (any, error) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, badRequest{fmt.Errorf("read the event: %w", err)}
	}
	return map[string]int64{"accepted_bytes": n}, nil
}

package samplesite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"

	_ "embed" // the store's templates
)

// Store is the URL of the part of the shop that a journey goes through: a list that is searched
// by typing, products, a basket, and a payment. Everything in it is the same in every load.
const Store = "https://" + WWW + "/store/"

//go:embed assets/store.gohtml
var storeSource string

// storePage is what a page of the store shows.
type storePage struct {
	Title    string
	Products []product
	Product  product
}

// storeThink is how long the store's server takes for a document.
const storeThink = 60 * time.Millisecond

// store serves the list and the products.
func (s *Site) store(mux *http.ServeMux) {
	pages, err := template.New("store").Parse(storeSource)
	show := func(w http.ResponseWriter, r *http.Request, name string, p storePage) {
		var body bytes.Buffer
		if err == nil {
			err = pages.ExecuteTemplate(&body, name, p)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if !s.think(r, "document", storeThink) {
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "private, max-age=0, must-revalidate")
		h.Set("Content-Security-Policy", policy("store"))
		_, _ = w.Write(body.Bytes()) // an error means that the client has disconnected
	}
	mux.HandleFunc("GET /store/{$}", func(w http.ResponseWriter, r *http.Request) {
		show(w, r, "list", storePage{Title: "All objects", Products: catalogue()})
	})
	mux.HandleFunc("GET /store/{id}", func(w http.ResponseWriter, r *http.Request) {
		p, ok := productOf(r.PathValue("id"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		show(w, r, "product", storePage{Title: p.Name, Product: p})
	})
}

// productOf finds a product of the catalogue.
func productOf(id string) (product, bool) {
	for _, p := range catalogue() {
		if p.ID == id {
			return p, true
		}
	}
	return product{}, false
}

// search lists the products whose name or kind holds what was typed.
func (s *Site) search(r *http.Request) (any, error) {
	q := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	matches := []string{}
	for _, p := range catalogue() {
		if strings.Contains(strings.ToLower(p.Name+" "+p.Kind), q) {
			matches = append(matches, p.ID)
		}
	}
	return map[string]any{"matches": matches}, nil
}

// item reads the product and the number of pieces of a request's body.
func item(r *http.Request) (p product, pieces int, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return p, 0, badRequest{fmt.Errorf("read the item (at most %d bytes): %w", maxBody, err)}
	}
	var asked struct {
		ID  string `json:"id"`
		Qty int    `json:"qty"`
	}
	if err := json.Unmarshal(raw, &asked); err != nil {
		return p, 0, badRequest{fmt.Errorf("the item is not JSON: %w", err)}
	}
	p, ok := productOf(asked.ID)
	if !ok || asked.Qty < 1 || asked.Qty > 99 {
		return p, 0, badRequest{fmt.Errorf("no product %q, or a quantity outside 1 to 99 (%d)", asked.ID, asked.Qty)}
	}
	return p, asked.Qty, nil
}

// basket answers with the basket's line and sum.
func (s *Site) basket(r *http.Request) (any, error) {
	p, n, err := item(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"pieces": n, "line": fmt.Sprintf("%d × %s", n, p.Name), "total": euros(n * p.Cents)}, nil
}

// orders takes an order.
func (s *Site) orders(r *http.Request) (any, error) {
	p, n, err := item(r)
	if err != nil {
		return nil, err
	}
	if !s.think(r, "pay", 90*time.Millisecond) {
		return nil, r.Context().Err()
	}
	return map[string]any{"order": fmt.Sprintf("H-%s-%d", strings.ToUpper(p.ID), 4000+n)}, nil
}

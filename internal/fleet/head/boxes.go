package head

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"eidetic/internal/base/bounded"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of what a box sends.
const (
	maxJoin     = 256 << 10
	maxSmall    = 64 << 10
	maxFileList = 12 << 20
	longestWait = 30 * time.Second
)

// BoxHandler answers boxes under /fleet/v1. Its connections are TLS with a certificate of the client's, whose
// fingerprint is who the box is.
func (h *Head) BoxHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fleet/v1/join", h.join)
	known := func(pattern string, f func(http.ResponseWriter, *http.Request, ledger.Box) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			box, err := h.boxOf(r)
			if err == nil {
				err = f(w, r, box)
			}
			if err != nil {
				h.answer(w, r, err)
			}
		})
	}
	known("PUT /fleet/v1/offer", h.describe)
	known("POST /fleet/v1/claims", h.claim)
	known("PUT /fleet/v1/parts/{part}/lease", h.renew)
	known("PUT /fleet/v1/parts/{part}/files", h.hold)
	known("POST /fleet/v1/parts/{part}/end", h.end)
	known("POST /fleet/v1/parts/{part}/return", h.giveBack)
	known("GET /fleet/v1/parts/{part}/archives/{sha256}", h.recording)
	known("GET /fleet/v1/updates/{sha256}", h.bundle)
	known("HEAD /fleet/v1/blobs/{sha256}", h.upload)
	known("PATCH /fleet/v1/blobs/{sha256}", h.upload)
	return mux
}

// fingerprint is that of the certificate that a box shows, or "".
func fingerprint(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return pin.Of(r.TLS.PeerCertificates[0])
}

func (h *Head) boxOf(r *http.Request) (ledger.Box, error) {
	print := fingerprint(r)
	if print == "" {
		return ledger.Box{}, ledger.ErrUnknownBox
	}
	return h.ledger.BoxOf(r.Context(), print)
}

// refusal is an answer to a box.
type refusal struct {
	status  int
	kind    string
	detail  string
	missing []string
}

func (e *refusal) Error() string { return e.detail }

// problemBody is RFC 9457's.
type problemBody struct {
	Type    string   `json:"type,omitempty"`
	Title   string   `json:"title"`
	Status  int      `json:"status"`
	Detail  string   `json:"detail"`
	Missing []string `json:"missing,omitempty"`
}

// answer tells a box what is wrong.
func (h *Head) answer(w http.ResponseWriter, r *http.Request, err error) {
	var said *refusal
	var away *lab.AwayError
	switch {
	case errors.As(err, &said):
	case errors.Is(err, ledger.ErrLost):
		said = &refusal{status: http.StatusConflict, kind: fleet.LostProblem, detail: err.Error()}
	case errors.Is(err, ledger.ErrUnknownBox):
		said = &refusal{status: http.StatusForbidden, detail: err.Error()}
	case errors.Is(err, ledger.ErrCode):
		said = &refusal{status: http.StatusForbidden, detail: err.Error()}
	case errors.Is(err, ledger.ErrNameTaken):
		said = &refusal{status: http.StatusConflict, detail: err.Error()}
	case errors.Is(err, store.ErrNotFound), errors.Is(err, blob.ErrNotFound):
		said = &refusal{status: http.StatusNotFound, detail: err.Error()}
	case errors.Is(err, context.Canceled):
		said = &refusal{status: http.StatusServiceUnavailable, detail: "the head is stopping; ask again"}
	case errors.As(err, &away):
		h.Log.Warn("a box's call must wait", "method", r.Method, "path", r.URL.Path, "error", away.Err)
		w.Header().Set("Retry-After", strconv.Itoa(int(lab.AwayFor.Seconds())))
		said = &refusal{status: http.StatusServiceUnavailable, detail: away.Error()}
	default:
		h.Log.Error("a box's call failed", "method", r.Method, "path", r.URL.Path, "error", err)
		said = &refusal{status: http.StatusInternalServerError, detail: "something went wrong on the head's side; its log says what"}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(said.status)
	// An error here means that the box has gone.
	_ = json.NewEncoder(w).Encode(problemBody{said.kind, http.StatusText(said.status), said.status, said.detail, said.missing})
}

// read decodes a body of at most so many bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &refusal{status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body has more than %d bytes", limit)}
	case err != nil:
		return &refusal{status: http.StatusBadRequest, detail: "the body was cut off"}
	}
	if err := bounded.JSON(text, into); err != nil {
		return &refusal{status: http.StatusUnprocessableEntity, detail: "the body cannot be read: " + err.Error()}
	}
	return nil
}

func reply(w http.ResponseWriter, body any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // an error means that the box has gone
	return nil
}

func invalid(err error) error {
	return &refusal{status: http.StatusUnprocessableEntity, detail: err.Error()}
}

func (h *Head) join(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Code  string      `json:"code"`
		Name  string      `json:"name"`
		Offer fleet.Offer `json:"offer"`
	}
	print := fingerprint(r)
	err := read(w, r, maxJoin, &in)
	switch {
	case err != nil:
	case print == "":
		err = ledger.ErrUnknownBox
	default:
		if err = errors.Join(fleet.CheckBoxName(in.Name), in.Offer.Check()); err != nil {
			err = invalid(err)
		}
	}
	var box ledger.Box
	if err == nil {
		box, err = h.ledger.Join(r.Context(), in.Code, in.Name, print, in.Offer)
	}
	if err != nil {
		h.refused(r, in.Name, err)
		h.answer(w, r, err)
		return
	}
	h.Log.Info("a box has joined", "box", box.Name, "id", box.ID, "certificate", print, "from", r.RemoteAddr)
	_ = reply(w, map[string]string{"id": box.ID, "name": box.Name})
}

func (h *Head) describe(w http.ResponseWriter, req *http.Request, box ledger.Box) error {
	var offer fleet.Offer
	if err := read(w, req, maxJoin, &offer); err != nil {
		return err
	}
	if err := offer.Check(); err != nil {
		return invalid(err)
	}
	if err := h.ledger.Describe(req.Context(), box.ID, offer); err != nil {
		return err
	}
	wanted, err := h.ledger.Wanted(req.Context(), box.ID)
	if err != nil {
		return err
	}
	r, _, err := h.rollout(req.Context())
	if err != nil {
		return err
	}
	if at := r.at(); at != nil && at.ID == box.ID {
		h.rolling.ring()
	}
	return reply(w, map[string]any{"wanted": wanted, "health": box.Health, "reason": box.Reason, "update": r.tells(box.ID)})
}

// bundle sends the update that the box is told to install, and no other.
func (h *Head) bundle(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	rolled, _, err := h.rollout(r.Context())
	if err != nil {
		return err
	}
	told := rolled.tells(box.ID)
	if told == nil || told.SHA256 != r.PathValue("sha256") {
		return &refusal{status: http.StatusNotFound, detail: "the box is not told to install such an update"}
	}
	b, err := h.Blobs.Open(r.Context(), told.SHA256)
	if err != nil {
		return err
	}
	defer b.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, b)
	return nil
}

func (h *Head) claim(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	var in struct {
		Request string   `json:"request"`
		Free    []string `json:"free"`
		Wait    int      `json:"wait_s"`
	}
	if err := read(w, r, maxSmall, &in); err != nil {
		return err
	}
	if in.Request == "" || len(in.Request) > 64 || len(in.Free) > fleet.MaxDevices {
		return invalid(errors.New("request: a text of 1 to 64 bytes; free: at most 64 devices"))
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(max(time.Duration(in.Wait)*time.Second, 0), longestWait))
	defer cancel()
	for woken := false; ; woken = true {
		given, err := h.claimOnce(ctx, w, r, box, in.Request, in.Free)
		if given && woken {
			h.bell.ring() // it may have been another part than the one for which the box was woken
		}
		if given || err != nil {
			return err
		}
		if ctx.Err() != nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if box, err = h.boxOf(r); err != nil { // it may have changed
			return err
		}
	}
}

// claimOnce answers a claim if there is a part for it, and else returns when there may be one, or the context ends.
func (h *Head) claimOnce(
	ctx context.Context, w http.ResponseWriter, r *http.Request, box ledger.Box, request string, free []string,
) (given bool, err error) {
	wished := h.wished.wait()
	waiter := h.waiters.add(box, free) // before the look, so that nothing is missed
	defer h.waiters.leave(waiter)
	a, err := h.ledger.Claim(r.Context(), ledger.Claim{BoxID: box.ID, Request: request, Free: free})
	if err == nil {
		a.Stay = h.Stay
		if doing := box.Name + " begins"; a.Part == a.Run { // it has no other parts
			h.events.Publish(runqueue.Progress{Run: a.Run, State: store.StateRunning, Doing: doing})
		} else {
			h.news(r.Context(), a.Run, doing, fleet.Progress{})
		}
		return true, reply(w, a)
	}
	if !errors.Is(err, ledger.ErrNothing) {
		return false, err
	}
	select {
	case <-ctx.Done():
	case <-waiter.rung:
	case <-wished:
		if wanted, err := h.ledger.Wanted(ctx, box.ID); err == nil && len(wanted) > 0 {
			return true, reply(w, fleet.Assignment{News: true})
		}
	}
	return false, nil
}

func lease(r *http.Request, box ledger.Box) ledger.Lease {
	return ledger.Lease{BoxID: box.ID, Part: r.PathValue("part"), Token: r.Header.Get(fleet.LeaseHeader)}
}

func (h *Head) renew(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	var p fleet.Progress
	if err := read(w, r, maxSmall, &p); err != nil {
		return err
	}
	p.Doing = lab.Clip(p.Doing, 300)
	l := lease(r, box)
	renewal, err := h.ledger.Renew(r.Context(), l, p)
	if err != nil {
		return err
	}
	if part, err := h.ledger.PartOf(r.Context(), l); err == nil {
		h.news(r.Context(), part.Run, box.Name+": "+p.Doing, p)
	}
	return reply(w, renewal)
}

func (h *Head) hold(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	var in struct {
		Files []fleet.File `json:"files"`
	}
	if err := read(w, r, maxFileList, &in); err != nil {
		return err
	}
	if err := fleet.CheckFiles(in.Files); err != nil {
		return invalid(err)
	}
	l := lease(r, box)
	if _, err := h.ledger.PartOf(r.Context(), l); err != nil {
		return err
	}
	missing, err := h.missing(r.Context(), in.Files)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		if err := h.ledger.Hold(r.Context(), l, in.Files); err != nil {
			return err
		}
	}
	return reply(w, map[string][]string{"missing": missing})
}

// missing lists the digests of files whose content the head has not got.
func (h *Head) missing(ctx context.Context, files []fleet.File) ([]string, error) {
	missing := []string{}
	seen := map[string]bool{}
	for _, f := range files {
		if f.Stays || seen[f.SHA256] {
			continue
		}
		seen[f.SHA256] = true
		size, has, err := h.Blobs.Has(ctx, f.SHA256)
		if err != nil {
			return nil, err
		}
		if !has || size != f.Bytes {
			missing = append(missing, f.SHA256)
		}
	}
	return missing, nil
}

func (h *Head) end(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	var o fleet.Outcome
	if err := read(w, r, maxFileList, &o); err != nil {
		return err
	}
	if !slices.Contains([]string{store.StateDone, store.StateFailed, store.StateInterrupted}, o.State) {
		return invalid(fmt.Errorf("state: %.40q is none of done, failed and interrupted", o.State))
	}
	if err := fleet.CheckFiles(o.Files); err != nil {
		return invalid(err)
	}
	o.Error = lab.Clip(o.Error, 2000)
	missing, err := h.missing(r.Context(), o.Files)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &refusal{status: http.StatusUnprocessableEntity, detail: "the content of files is missing: send it first", missing: missing}
	}
	l := lease(r, box)
	if err := h.ledger.End(r.Context(), l, o); err != nil {
		return err
	}
	h.waiters.wakeBox(box.ID) // a device is free
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Head) giveBack(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if err := read(w, r, maxSmall, &in); err != nil {
		return err
	}
	part, unknown := h.ledger.PartOf(r.Context(), lease(r, box)) // it is not, where the answer to the same call was lost
	if err := h.ledger.Return(r.Context(), lease(r, box), lab.Clip(in.Reason, 300)); err != nil {
		return err
	}
	if unknown == nil {
		h.waiters.wake(part.Need)
	}
	h.waiters.wakeBox(box.ID)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// recording sends a recording that the part of the lease replays, and no other.
func (h *Head) recording(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	part, err := h.ledger.PartOf(r.Context(), lease(r, box))
	if err != nil {
		return err
	}
	digest := r.PathValue("sha256")
	if !slices.ContainsFunc(part.Archives, func(a fleet.ArchiveFile) bool { return a.SHA256 == digest }) {
		return &refusal{status: http.StatusNotFound, detail: "the part replays no such recording"}
	}
	b, err := h.Blobs.Open(r.Context(), digest)
	if err != nil {
		return err
	}
	defer b.Close()
	w.Header().Set("Content-Type", "application/wacz")
	http.ServeContent(w, r, "", time.Time{}, b)
	return nil
}

// upload takes a file of a part whose lease the box holds, or one that stayed with it and is wanted.
func (h *Head) upload(w http.ResponseWriter, r *http.Request, box ledger.Box) error {
	digest := r.PathValue("sha256")
	if token := r.Header.Get(fleet.LeaseHeader); token != "" {
		if _, err := h.ledger.PartOf(r.Context(), ledger.Lease{BoxID: box.ID, Part: r.URL.Query().Get("part"), Token: token}); err != nil {
			return err
		}
	} else {
		wanted, err := h.ledger.Wanted(r.Context(), box.ID)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(wanted, func(f fleet.Wanted) bool { return f.SHA256 == digest }) {
			return &refusal{status: http.StatusForbidden, detail: "nobody wants this file: it is of no part that the box holds"}
		}
	}
	h.uploads.Handler(func(*http.Request) string { return box.ID }).ServeHTTP(w, r)
	if r.Method == http.MethodPatch {
		if _, has, err := h.Blobs.Has(r.Context(), digest); err == nil && has {
			if err := h.ledger.Arrived(r.Context(), digest); err != nil {
				h.Log.Error("a file of a box has come, and the ledger cannot be told", "error", err)
			}
			h.ended.ring()
		}
	}
	return nil
}

// news tells those who follow a run how it goes.
func (h *Head) news(ctx context.Context, run, doing string, p fleet.Progress) {
	r, err := h.ledger.Run(ctx, run)
	if err != nil || isEnd(r.State) {
		return
	}
	out := runqueue.Progress{Run: run, State: store.StateRunning, Trial: p.Trial, Of: p.Of, Doing: doing}
	if len(r.Parts) > 1 {
		ended, trial := 0, 0
		for _, part := range r.Parts {
			if isEnd(part.State) {
				ended++
			}
			trial += part.Progress.Trial
		}
		out.Trial, out.Of = trial, r.Plan.Total()
		out.Doing = strconv.Itoa(ended) + " of " + strconv.Itoa(len(r.Parts)) + " pages done; " + doing
	}
	h.events.Publish(out)
}

func isEnd(state string) bool {
	return state == store.StateDone || state == store.StateFailed || state == store.StateInterrupted
}

package archive

import (
	"bytes"
	"slices"
	"strings"

	"eidetic/internal/lab"

	"golang.org/x/net/html"
)

// addIcons adds an empty answer for the icon of each document: browsers ask for icons by themselves, do not save
// them in a HAR and do not ask for them when they are driven by a tool, so that every replay would miss them.
func (a *Archive) addIcons(notes *harNotes) {
	have := map[string]bool{}
	for _, e := range a.exchanges {
		have[e.URL] = true
	}
	for _, doc := range slices.Clone(a.exchanges) {
		if !isDocument(doc) {
			continue
		}
		for _, icon := range icons(doc) {
			if have[icon] {
				continue
			}
			have[icon] = true
			last := a.exchanges[len(a.exchanges)-1]
			a.exchanges = append(a.exchanges, &lab.Exchange{
				ID: uuid([]byte("HAR icon\n" + doc.ID + "\n" + icon)), Order: last.Order + 1, Wall: last.Wall, Start: last.Start,
				Method: "GET", URL: icon, Protocol: doc.Protocol, TLS: doc.TLS, Server: doc.Server, Status: 204,
			})
			notes.add("icon", icon, "added with an empty answer (204): browsers ask for icons by themselves, and tools do not save them")
		}
	}
}

// icons returns the icons that a document names, or else the one that browsers look for.
func icons(doc *lab.Exchange) (out []string) {
	base := lab.NetURL(doc.URL)
	origin := hostOf(doc.URL)
	add := func(href string) {
		u, err := base.Parse(strings.TrimSpace(href))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return
		}
		u.Fragment, u.RawFragment = "", ""
		if raw := u.String(); hostOf(raw) == origin { // of another origin, protocol and address are not known
			out = append(out, raw)
		}
	}
	const most = 20 // no document has more icons
	named := false
	// The head is looked through, with what a page may have in it: a hostile body of 60 MB takes eleven seconds.
	body := doc.Response.Body[:min(len(doc.Response.Body), 1<<20)]
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(1 << 20)
	for kind := z.Next(); kind != html.ErrorToken && len(out) < most; kind = z.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		t, at := z.Token(), map[string]string{}
		for _, attr := range t.Attr {
			at[attr.Key] = attr.Val
		}
		if t.Data == "link" && slices.Contains(strings.Fields(strings.ToLower(at["rel"])), "icon") && at["href"] != "" {
			named = true
			add(at["href"])
		}
	}
	if !named {
		add("/favicon.ico")
	}
	return out
}

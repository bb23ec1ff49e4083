package match

import (
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// What a page's own script says in the fields of a request. Servers look at them without a word in Vary, so that one URL
// has several answers: with a login and without, for a fragment of a page and for the page, for one action and for
// another.

// scriptFields lists the fields that a browser does not send by itself, and that say what is asked for. Of a field that is
// there several times the first counts, as for Header.
func scriptFields(fields []lab.HeaderField) (own []pair) {
	for _, f := range fields {
		name := strings.ToLower(f.Name)
		if isScriptField(name) && f.Value != "" && !slices.ContainsFunc(own, func(p pair) bool { return p.name == name }) {
			own = append(own, pair{name, f.Value})
		}
	}
	return own
}

// isScriptField leaves out what browsers and proxies send, what usable looks at by itself, and what tells one request
// from all others: names of traces and requests.
func isScriptField(name string) bool {
	switch name {
	case "accept", "accept-charset", "accept-encoding", "accept-language", "alt-used", "available-dictionary", "cache-control", "connection",
		"content-encoding", "content-length", "content-type", "cookie", "date", "device-memory", "dictionary-id", "dnt", "downlink", "dpr", "ect",
		"expect", "forwarded", "from", "host", "http2-settings", "keep-alive", "origin", "pragma", "priority", "range", "referer", "rtt",
		"save-data", "te", "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests", "user-agent", "via", "viewport-width", "width",
		"x-requested-with":
		return false
	case "baggage", "b3", "newrelic", "sentry-trace", "traceparent", "tracestate", "x-client-data", "x-correlation-id", "x-request-id",
		"x-amz-date", "x-amzn-trace-id":
		return false
	}
	for _, prefix := range []string{"sec-", "if-", "proxy-", "x-forwarded-", "x-b3-", "x-datadog-", "x-newrelic-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// nearestFields returns the entries whose scripts said what this request's says, as far as any did: the fewest fields that
// only one of both has, then the fewest other values.
func nearestFields(list []*Entry, h Header) []*Entry {
	if len(list) < 2 {
		return list
	}
	asked := map[string]string{} // by the fields that some entry has: others tell none of them from another
	for _, en := range list {
		for _, p := range en.own {
			if _, known := asked[p.name]; !known {
				asked[p.name] = h.Get(p.name)
			}
		}
	}
	if len(asked) == 0 {
		return list
	}
	least, nearest := -1, list[:0:0]
	for _, en := range list {
		unlike := en.unlike(asked)
		if least < 0 || unlike < least {
			least, nearest = unlike, nil
		}
		if unlike == least {
			nearest = append(nearest, en)
		}
	}
	return nearest
}

// unlike says how far the entry's fields are from those that are asked, of which an empty one is absent.
func (en *Entry) unlike(asked map[string]string) (unlike int) {
	const onlyOne = 1 << 20 // is more than all other values together
	absent := 0
	for _, value := range asked {
		if value != "" {
			absent++
		}
	}
	for _, p := range en.own {
		switch value := asked[p.name]; {
		case value == "":
			unlike += onlyOne
			continue
		case value != p.value && !(isVolatile(value) && isVolatile(p.value)):
			unlike++
		}
		absent--
	}
	return unlike + onlyOne*absent
}

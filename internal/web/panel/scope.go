package panel

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/credentials"
)

// needs is the scope that a request needs. What is not listed here and changes something
// needs the scope admin, so that a forgotten route is closed and not open.
func needs(method, path string, query url.Values) credentials.Scope {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch path {
		case "/api/v1/config", "/api/v1/tokens", "/api/v1/audit", // passwords, and what others do
			"/api/v1/backup", "/api/v1/support", // all of it
			"/api/v1/webhooks", "/api/v1/deliveries": // addresses that often are secrets
			return credentials.Admin
		}
		return credentials.Read
	case http.MethodPost:
		if path == "/api/v1/runs" || path == "/api/v1/plan" || path == "/api/v1/bisects" || path == "/api/v1/suite-results" || path == "/api/v1/references" ||
			ofOne(path, "/api/v1/devices/", "/input") || isErrand(path) ||
			ofOne(path, "/api/v1/runs/", "/annotations") || ofOne(path, "/api/v1/bisects/", "/resume") || ofOne(path, "/api/v1/bisects/", "/again") ||
			ofOne(path, "/api/v1/workflows/", "/runs") || ofOne(path, "/api/v1/schedules/", "/firings") || ofOne(path, "/api/v1/archives/", "/edit") || isOfAlert(path) ||
			ofOne(path, "/api/v1/boxes/", "/measurements") || ofOne(path, "/api/v1/suite-results/", "/resume") {
			return credentials.Run
		}
	case http.MethodPut:
		if strings.HasPrefix(path, "/api/v1/archives/") || strings.HasPrefix(path, "/api/v1/workflows/") ||
			strings.HasPrefix(path, "/api/v1/schedules/") || strings.HasPrefix(path, "/api/v1/suites/") || ofOne(path, "/api/v1/bisects/", "/deployment") ||
			ofOne(path, "/api/v1/repositories/", "/deployment") ||
			ofOne(path, "/api/v1/runs/", "/pin") || isTurn(path) {
			return credentials.Run
		}
	case http.MethodPatch:
		if strings.HasPrefix(path, "/api/v1/alerts/") {
			return credentials.Run
		}
		if strings.HasPrefix(path, "/api/v1/boxes/") { // changeBox asks for more where more is changed than maintenance
			return credentials.Run
		}
	case http.MethodDelete:
		cancels := strings.HasPrefix(path, "/api/v1/runs/") || strings.HasPrefix(path, "/api/v1/bisects/") ||
			strings.HasPrefix(path, "/api/v1/suite-results/")
		if cancels && !deletesFiles(query) || isTurn(path) || isErrand(path) {
			return credentials.Run
		}
	}
	return credentials.Admin
}

// isTurn says whether a path is of the turn of giving a device input.
func isTurn(path string) bool {
	return strings.HasPrefix(path, "/api/v1/devices/") && strings.HasSuffix(path, "/driver")
}

// isErrand says whether a path is of what is asked of a device between runs.
func isErrand(path string) bool {
	return ofOne(path, "/api/v1/devices/", "/errand") || ofOne(path, "/api/v1/devices/", "/errand/trigger")
}

// ofOne says whether a path is of one thing of a collection.
func ofOne(path, collection, part string) bool {
	return strings.HasPrefix(path, collection) && strings.HasSuffix(path, part)
}

// deletesFiles says whether a request to cancel a run asks to delete it. A value that is no
// truth value counts as yes; the handler refuses it.
func deletesFiles(query url.Values) bool {
	if !query.Has("files") {
		return false
	}
	yes, err := strconv.ParseBool(query.Get("files"))
	return yes || err != nil
}

// describeScopes adds to the description of each operation which scope it needs, and the
// answers of the guard.
func describeScopes(api *huma.OpenAPI) {
	problems := map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}}}
	for path, item := range api.Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
			http.MethodPatch: item.Patch,
		} {
			if op == nil || op.Security == nil {
				continue
			}
			op.Security = []map[string][]string{{"token": {string(needs(method, path, nil))}}}
			if op.Responses == nil {
				op.Responses = map[string]*huma.Response{}
			}
			for status, why := range map[string]string{
				"401": "The token is missing or wrong", "403": "The token's scope is too small",
				"429": "Too many wrong tokens came from this address; Retry-After says how many seconds to wait",
			} {
				if op.Responses[status] == nil {
					op.Responses[status] = &huma.Response{Description: why, Content: problems}
				}
			}
		}
	}
}

// isOfAlert says whether somebody says something of an alert.
func isOfAlert(path string) bool {
	return ofOne(path, "/api/v1/alerts/", "/acknowledgement") || ofOne(path, "/api/v1/alerts/", "/resolution") ||
		ofOne(path, "/api/v1/alerts/", "/acceptance")
}

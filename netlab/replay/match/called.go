package match

import (
	"cmp"
	"regexp"
	"strings"
)

// Many calls have one address: GraphQL's operations, the methods of JSON-RPC and SOAP, the actions of AWS. The answer to
// one of them is never the answer to another, however alike the rest of both requests is.

// operation matches the begin of a GraphQL document with a name. Of several operations operationName names one.
var operation = regexp.MustCompile(`^\s*(?:query|mutation|subscription)\s+([A-Za-z_]\w*)\s*[({@]`) // constant

// calledBy is what a request calls, or "" if nothing says that: of a batch, all that it calls. The surest name counts.
func calledBy(header Header, r *Request) string {
	if name := cmp.Or(header.Get("X-Amz-Target"), header.Get("SOAPAction")); name != "" {
		return name
	}
	var named, documents, hashes, methods []string
	isRPC := false
	for _, list := range [2][]pair{r.query, r.body} {
		for _, p := range list {
			// Of a batch, the names are ".0.method"; of a form with files, "operations.query" (GraphQL multipart requests).
			switch strings.TrimPrefix(strings.TrimLeft(p.name, ".0123456789"), "operations.") {
			case "operationName":
				if p.value != "" && p.value != "null" {
					named = append(named, p.value)
				}
			case "query":
				if found := operation.FindStringSubmatch(p.value); found != nil {
					documents = append(documents, found[1])
				}
			case "extensions.persistedQuery.sha256Hash":
				hashes = append(hashes, p.value)
			case "method":
				methods = append(methods, p.value)
			case "jsonrpc":
				isRPC = true
			}
		}
	}
	if !isRPC {
		methods = nil
	}
	for _, names := range [][]string{named, documents, hashes, methods} {
		if len(names) > 0 {
			return strings.Join(names, " ")
		}
	}
	return ""
}

// callOthers tells two requests that say what they call, and call other things.
func callOthers(a, b *Request) bool { return a.called != "" && b.called != "" && a.called != b.called }

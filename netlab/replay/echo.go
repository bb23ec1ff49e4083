package replay

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay/match"
)

// mostEchoed bounds an answer that is changed, in bytes.
const mostEchoed = 4 << 20

// echo puts the values of the request in the place of the recorded ones, where a client knows its answer by them.
func (a *answer) echo(echoes []match.Echo) {
	if a.status != http.StatusOK || len(a.body) == 0 || len(a.body) > mostEchoed || a.truncated != "" {
		return
	}
	r, err := inject.NewDecoder(inject.ContentCoding(a.fields), bytes.NewReader(a.body))
	if err != nil {
		return
	}
	defer r.Close()
	text, err := readWithin(r, mostEchoed)
	if err != nil {
		return
	}
	changed, ids := text, map[string]string{}
	for _, e := range echoes {
		if e.IsID {
			ids[e.Recorded] = e.Asked
		} else {
			changed = withFunction(changed, e)
		}
	}
	if len(ids) > 0 {
		changed = withIDs(changed, ids)
	}
	if bytes.Equal(changed, text) {
		return
	}
	a.fields = recodedHeader(a.fields, "", len(changed))
	a.body, a.sum = changed, ""
	if n := len(a.chunks); n > 0 {
		a.chunks = []lab.Chunk{{At: a.chunks[n-1].At, Bytes: len(changed)}}
	}
}

// withFunction is a script in which the first call, and what stands before it, is of another function.
func withFunction(text []byte, e match.Echo) []byte {
	const most = 256 // bytes before the call
	head := text[:min(len(text), most+len(e.Recorded))]
	end := bytes.Index(head, []byte(e.Recorded+"("))
	if end < 0 {
		return text
	}
	end += len(e.Recorded)
	return append([]byte(strings.ReplaceAll(string(text[:end]), e.Recorded, e.Asked)), text[end:]...)
}

// withIDs is an answer of JSON-RPC, or a batch of them, with the ids that the client has given its calls.
func withIDs(text []byte, asked map[string]string) []byte {
	var batch []json.RawMessage
	if json.Unmarshal(text, &batch) != nil {
		return withID(text, asked)
	}
	for i, one := range batch {
		batch[i] = withID(one, asked)
	}
	out, err := json.Marshal(batch)
	if err != nil {
		return text
	}
	return out
}

func withID(text []byte, asked map[string]string) []byte {
	var members map[string]json.RawMessage
	var word string
	if json.Unmarshal(text, &members) != nil || members["id"] == nil {
		return text
	}
	isWord := json.Unmarshal(members["id"], &word) == nil
	if !isWord {
		word = string(members["id"])
	}
	id, ok := asked[word]
	switch {
	case !ok || !isWord && !json.Valid([]byte(id)):
		return text
	case isWord:
		members["id"], _ = json.Marshal(id) // a text has a form in JSON
	default:
		members["id"] = json.RawMessage(id)
	}
	out, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return out
}

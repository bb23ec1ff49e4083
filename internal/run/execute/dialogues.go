package execute

import (
	"encoding/json"
	"slices"
	"sync"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// dialogueAnnotation is the annotation by which a page's dialogues arrive.
const dialogueAnnotation = "dialogue"

// Bounds of what is kept of a trial's dialogues.
const (
	mostDialogues    = 20
	maxDialogueText  = 200 // bytes
	maxDialogueKinds = 20  // bytes
)

// dialogues are those of a session.
type dialogues struct {
	mu   sync.Mutex
	list []lab.Dialogue
}

func (d *dialogues) add(n replay.Annotation) {
	one, ok := Dialogue(n)
	d.mu.Lock()
	defer d.mu.Unlock()
	if ok && len(d.list) < mostDialogues {
		d.list = append(d.list, one)
	}
}

// Dialogue is what a page asks a person, if an annotation says so.
func Dialogue(n replay.Annotation) (d lab.Dialogue, ok bool) {
	var said struct {
		Kind, Text string
		Answered   bool
	}
	if n.Name != dialogueAnnotation || json.Unmarshal(n.Body, &said) != nil || said.Kind == "" {
		return d, false // not our script's
	}
	return lab.Dialogue{
		Kind: lab.OneLine(said.Kind, maxDialogueKinds), Text: lab.OneLine(said.Text, maxDialogueText), Answered: said.Answered, At: n.Time,
	}, true
}

func (d *dialogues) all() []lab.Dialogue {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

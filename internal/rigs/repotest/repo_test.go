package repotest

import (
	"os"
	"testing"
)

// TestRepository applies every rule to this repository.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.GoFiles) == 0 || !tree.has("go.mod") {
		t.Fatal("the tree is not this repository")
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, v := range rule.Check(tree) {
				t.Error(v)
			}
			if t.Failed() {
				t.Log("why:", rule.Why)
			}
		})
	}
}

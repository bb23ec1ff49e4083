package bounded

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Place is the token of a field of a text in YAML, such as steps[2].click, or nil where the text does not have it; the
// nearest is that of the field that it would be in.
func Place(tree *ast.File, path string, nearest bool) (at *token.Token) {
	if tree == nil || len(tree.Docs) == 0 {
		return nil
	}
	var node ast.Node = tree.Docs[0].Body
	for _, part := range Elements(path) {
		var found *token.Token
		switch in := node.(type) {
		case *ast.MappingNode:
			i := slices.IndexFunc(in.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == part })
			if i >= 0 {
				node, found = in.Values[i].Value, in.Values[i].Key.GetToken()
			}
		case *ast.SequenceNode:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(in.Values) {
				node, found = in.Values[i], in.Values[i].GetToken()
			}
		}
		switch {
		case found != nil:
			at = found
		case nearest:
			return at
		default:
			return nil
		}
	}
	return at
}

// Elements are the names and numbers that a path consists of.
func Elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

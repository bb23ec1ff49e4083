// Package docs holds the documents, so that the binary shows them where it runs, without a network. The pictures
// are not among them: they are seven times as large as the texts.
package docs

import "embed"

// Files are the documents, by their paths in this folder.
//
//go:embed *.md devices/*.md formats/*.md
var Files embed.FS

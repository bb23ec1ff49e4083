package repotest

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxFile is the largest allowed size of a file in the repository, in bytes.
const maxFile = 1 << 20

func textRules() []Rule {
	return []Rule{
		{
			"no unfinished marks",
			"what is unfinished is an issue with a number, not a remark that stays",
			forbidWords(`\b(?:T[O]DO|FIX[M]E|X[X]X|HA[C]K)\b`, "TO"+"DO", "FIX"+"ME", "X"+"XX", "HA"+"CK"),
		},
		{
			"no machine paths",
			"a path of one developer's machine is wrong on every other",
			forbidWords(`(?:^|[\s"'=(:])/(?:home|Users|work)/\w+`, "/ho"+"me/", "/Use"+"rs/", "/wo"+"rk/"),
		},
		{"no registry hosts", "which mirror, proxy or registry serves a machine is that machine's configuration", checkHosts},
		{"small files", "history keeps every version of a big file for ever", checkSize},
		{"no stray spaces", "they make differences that mean nothing", forbid(func(line []byte) []byte {
			return line[len(bytes.TrimRight(line, " \t")):]
		})},
	}
}

// authored reports whether we wrote the text, so that the rules on wording apply; it excludes
// licences, checksums, test data and bundled files of other projects.
func authored(f File) bool {
	base := path.Base(f.Path)
	licence := strings.HasPrefix(base, "LICENSE") || strings.HasSuffix(base, ".LICENSE") || base == "OFL.txt"
	return f.Text() && !licence && !strings.Contains("/"+f.Path, "/testdata/") && !strings.Contains(f.Path, "/vendor/") &&
		base != "go.sum" && !strings.Contains(base, ".min.") && path.Ext(base) != ".svg"
}

// forbidWords makes a check that finds a pattern in any authored line. Each match contains
// one of the literals: a regular expression is slow on the lines that cannot match.
func forbidWords(pattern string, literals ...string) func(*Tree) []Violation {
	re := regexp.MustCompile(pattern)
	return forbid(func(line []byte) []byte {
		if !slices.ContainsFunc(literals, func(l string) bool { return bytes.Contains(line, []byte(l)) }) {
			return nil
		}
		return re.Find(line)
	})
}

// forbid makes a check of the authored lines in which find finds something.
func forbid(find func(line []byte) []byte) func(*Tree) []Violation {
	return func(t *Tree) (found []Violation) {
		for _, f := range t.Files {
			if !authored(f) {
				continue
			}
			for i, line := range bytes.Split(f.Data, []byte("\n")) {
				if m := find(line); len(m) > 0 {
					found = append(found, Violation{f.Path, i + 1, fmt.Sprintf("has %q", m)})
				}
			}
		}
		return found
	}
}

func checkSize(t *Tree) (found []Violation) {
	for _, f := range t.Files {
		if len(f.Data) > maxFile {
			found = append(found, Violation{Path: f.Path, What: fmt.Sprintf("has %d bytes, more than %d", len(f.Data), maxFile)})
		}
	}
	return found
}

// defaultHosts are files that may name a host, each with its reason.
func defaultHosts() map[string]string {
	return map[string]string{
		"image/debian/debian.go": "the default of --mirror: an image of Debian has to come from somewhere",
	}
}

func checkHosts(t *Tree) []Violation {
	found := forbidWords(`\b(?:deb|security|snapshot)\.debian\.org\b|\bproxy\.golang\.org\b|\bregistry\.npmjs\.org\b|\bpypi\.org\b`, ".org")(t)
	return slices.DeleteFunc(found, func(v Violation) bool { return defaultHosts()[v.Path] != "" })
}

package execute

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// mostAssets bounds the differences of recordings that a run tells.
const mostAssets = 20

// assetsOf says in what the recordings of the arms of each cell differ: what one of them has alone, and whose content
// is another. Of several recordings of an arm it is the first.
func assetsOf(all []*cellArm) (rows []lab.AssetRow) {
	for i := 0; i+1 < len(all); i++ {
		control, treatment := all[i], all[i+1]
		if control.cell != treatment.cell || control.recorded == treatment.recorded {
			continue
		}
		for _, row := range assetsOfTwo(control.recorded, control.arm.Page, treatment.recorded, treatment.arm.Page) {
			if control.of.Name != "" {
				row.Name = control.of.Name + ": " + row.Name
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b lab.AssetRow) int { return cmp.Compare(b.Moved(), a.Moved()) })
	return rows[:min(len(rows), mostAssets)]
}

// asset is an answer of a recording.
type asset struct {
	name string // its address without the page's server
	body []byte
}

func assetsIn(a *archive.Archive, page string) (all []asset) {
	for _, e := range inOrder(a) {
		if !e.IsPending() {
			all = append(all, asset{withoutServer(e.URL, page), e.Response.Body})
		}
	}
	return all
}

// assetsOfTwo pairs answers by their address, and what is left by the address without what looks like a digest: a build
// names its files by their content, so that the same file has another name in each.
func assetsOfTwo(control *archive.Archive, page string, treatment *archive.Archive, other string) (rows []lab.AssetRow) {
	a, b := assetsIn(control, page), assetsIn(treatment, other)
	for _, key := range []func(string) string{func(name string) string { return name }, withoutDigest} {
		var left []asset
		waiting := map[string][]asset{}
		for _, one := range a {
			waiting[key(one.name)] = append(waiting[key(one.name)], one)
		}
		for _, two := range b {
			list := waiting[key(two.name)]
			if len(list) == 0 {
				left = append(left, two)
				continue
			}
			one := list[0]
			waiting[key(two.name)] = list[1:]
			if !bytes.Equal(one.body, two.body) {
				rows = append(rows, lab.AssetRow{Name: two.name, Found: lab.AssetChanged, Control: len(one.body), Treatment: len(two.body)})
			}
		}
		b = left
		var rest []asset
		for _, one := range a { // in their order
			if list := waiting[key(one.name)]; len(list) > 0 && list[0].name == one.name {
				rest, waiting[key(one.name)] = append(rest, one), list[1:]
			}
		}
		a = rest
	}
	for _, one := range a {
		rows = append(rows, lab.AssetRow{Name: one.name, Found: lab.AssetRemoved, Control: len(one.body)})
	}
	for _, two := range b {
		rows = append(rows, lab.AssetRow{Name: two.name, Found: lab.AssetAdded, Treatment: len(two.body)})
	}
	return rows
}

// digest is what stands for the content of a file in its name: eight or more letters and digits with a digit among
// them.
var digest = regexp.MustCompile(`[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*`) // constant

func withoutDigest(name string) string {
	return digest.ReplaceAllStringFunc(name, func(text string) string {
		if len(text) < 8 {
			return text
		}
		return "#"
	})
}

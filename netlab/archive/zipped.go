package archive

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// What a zip is that is no WACZ, or one that somebody packed by hand.

// plainName is the name of a file in a zip as the format has it: some programs of Windows write \ between folders, and
// others begin with the folder that was packed.
func plainName(name string) string {
	name = strings.ReplaceAll(name, "\\", "/")
	for strings.HasPrefix(name, "./") || strings.HasPrefix(name, "/") {
		name = name[strings.IndexByte(name, '/')+1:]
	}
	return name
}

// checkPacking refuses what cannot be unpacked here.
func checkPacking(f *zip.File) error {
	const encrypted = 1 // of its flags
	methods := map[uint16]string{9: "Deflate64", 12: "bzip2", 14: "LZMA", 20: "zstd", 93: "zstd", 95: "xz", 99: "AES"}
	switch {
	case f.Flags&encrypted != 0:
		return fmt.Errorf("%.80q in the zip is encrypted: unpack the zip with its password, and import what is in it", f.Name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("%.80q in the zip is compressed by %s, which is not read: unpack the zip, and pack it again with zip -r",
			f.Name, cmp.Or(methods[f.Method], fmt.Sprint("method ", f.Method)))
	}
	return nil
}

// inFolder returns the files by their names in the WACZ: whoever zips a folder has its name before all of them.
func inFolder(files map[string]*zip.File) map[string]*zip.File {
	if files[namePackage] != nil {
		return files
	}
	folder, n := "", 0
	for name := range files {
		if path.Base(name) == namePackage && !isNote(name) {
			folder, n = path.Dir(name)+"/", n+1
		}
	}
	if n != 1 {
		return files
	}
	inside := map[string]*zip.File{}
	for name, f := range files {
		if rest, ok := strings.CutPrefix(name, folder); ok {
			inside[rest] = f
		}
	}
	return inside
}

// warcFile is a WARC of a zip, with its name in the WACZ.
type warcFile struct {
	name string
	file *zip.File
}

// warcsOf lists the WARCs in the order of the zip: what is under archive/, or, in a zip that is no WACZ, what is named
// as they are.
func warcsOf(z *zip.Reader, files map[string]*zip.File) (list []warcFile) {
	for name, f := range files {
		is := strings.HasPrefix(name, dirData)
		if files[namePackage] == nil {
			lower := strings.ToLower(name)
			is = strings.HasSuffix(lower, ".warc") || strings.HasSuffix(lower, ".warc.gz") || strings.HasSuffix(lower, ".warc.zst")
		}
		if is && !isNote(name) {
			list = append(list, warcFile{name, f})
		}
	}
	at := map[*zip.File]int{}
	for i, f := range z.File {
		at[f] = i
	}
	slices.SortFunc(list, func(a, b warcFile) int { return at[a.file] - at[b.file] })
	return list
}

// noWARC is the error for a zip without a WARC, by what it has, and what its package names.
func noWARC(files map[string]*zip.File, named map[string]string) error {
	has := func(suffix string) bool {
		for name := range files {
			if strings.HasSuffix(strings.ToLower(name), suffix) && !isNote(name) {
				return true
			}
		}
		return false
	}
	switch {
	case has(".wacz"):
		return errors.New("the zip has several WACZ files: unpack it, and join them with appliance archive merge")
	case has("-meta.json"):
		return errors.New("the zip is a session of Charles: " + charlesJSON)
	case has(".network"):
		return errors.New("the zip is a trace of Playwright: record with recordHar, and import that HAR")
	case has(".mp"), has(".flow"), has(".mitm"):
		return errors.New("the zip has flows of mitmproxy: " + unpack)
	case files["manifest.json"] != nil && files["index.html"] != nil:
		return errors.New("the zip is " + singleFile)
	case slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(name string) bool { return strings.HasSuffix(name, ".wacz") }):
		return errors.New("the zip names WACZ files that it does not have (a collection): get them, import each, and join them with appliance archive merge")
	case files[namePackage] != nil:
		return errors.New("the WACZ has nothing under archive/")
	}
	return fmt.Errorf("the zip has no %s, so it is not a WACZ, and no HAR or WARC: %s", namePackage, saveHAR)
}

package archive

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// Names inside the WACZ.
const (
	dirData     = "archive/"
	nameData    = dirData + "data.warc.gz"
	nameIndex   = "indexes/index.cdxj"
	namePages   = "pages/pages.jsonl"
	namePackage = "datapackage.json"
	nameDigest  = "datapackage-digest.json"
)

// indexLine is one line of the CDXJ index.
type indexLine struct {
	key, stamp string

	URL      string `json:"url"`
	MIME     string `json:"mime"`
	Status   int    `json:"status,string"`
	Digest   string `json:"digest"`
	Length   int64  `json:"length,string"`
	Offset   int64  `json:"offset,string"`
	Filename string `json:"filename"`
	Method   string `json:"method,omitempty"`
	// RequestBody is appended to URLs by replayers that tell POSTs apart so.
	RequestBody string `json:"requestBody,omitempty"`
}

func newIndexLine(e *lab.Exchange, payload string, length int64) indexLine {
	mime, _, _ := strings.Cut(e.Response.Get("Content-Type"), ";")
	if mime = strings.TrimSpace(mime); mime == "" {
		mime = "unk"
	}
	line := indexLine{
		stamp: e.Wall.UTC().Format("20060102150405"),
		URL:   e.URL, MIME: mime, Status: e.Status, Digest: payload, Length: length, Filename: "data.warc.gz",
	}
	full := e.URL
	if e.Method != "GET" && e.Method != "" {
		line.Method = e.Method
		line.RequestBody = bodyQuery(e)
		sep := "?"
		if strings.Contains(full, "?") {
			sep = "&"
		}
		full += sep + "__wb_method=" + e.Method
		if line.RequestBody != "" {
			full += "&" + line.RequestBody
		}
	}
	line.key = surt(full)
	return line
}

// bodyQuery renders a request body as the query that pywb and wabac append to
// the URL of a POST: forms as they are, other bodies as __wb_post_data.
func bodyQuery(e *lab.Exchange) string {
	const most = 4096 // longer keys are of no use
	if len(e.Request.Body) == 0 || len(e.Request.Body) > most {
		return ""
	}
	if strings.HasPrefix(e.Request.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return oneLine(string(e.Request.Body))
	}
	return "__wb_post_data=" + url.QueryEscape(string(e.Request.Body))
}

// surt renders the sort-friendly key of a URL as pywb does: host reversed,
// without www, lower case, query sorted.
func surt(raw string) string {
	u := lab.ParseURL(string(lab.AppendURLKey(nil, raw)))
	if u.Host == "" {
		return oneLine(strings.ToLower(raw))
	}
	host := strings.ToLower(u.Hostname())
	if rest, ok := strings.CutPrefix(host, "www"); ok {
		if bare := strings.TrimLeft(rest, "0123456789"); strings.HasPrefix(bare, ".") {
			host = bare[1:]
		}
	}
	labels := strings.Split(host, ".")
	if !strings.Contains(host, ":") && strings.Trim(host, "0123456789.") != "" {
		slices.Reverse(labels)
	}
	key := strings.Join(labels, ",")
	if strings.Trim(host, "0123456789.") == "" {
		key = host
	}
	if p := u.Port(); p != "" {
		key += ":" + p
	}
	path := strings.ToLower(u.Path)
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if path == "" {
		path = "/"
	}
	key += ")" + path
	if u.Query != "" {
		params := strings.Split(strings.ToLower(u.Query), "&")
		slices.Sort(params)
		key += "?" + strings.Join(params, "&")
	}
	return oneLine(key)
}

// resource is a file of the package, with its hash.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

type dataPackage struct {
	Profile   string     `json:"profile"`
	Version   string     `json:"wacz_version"`
	Title     string     `json:"title,omitempty"`
	Software  string     `json:"software,omitempty"`
	Created   string     `json:"created"`
	MainPage  string     `json:"mainPageUrl,omitempty"`
	Resources []resource `json:"resources"`
}

type packageDigest struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
}

// pack writes the WACZ beside its final name and moves it there when it is complete.
func (w *Writer) pack(data *os.File) error {
	like, err := data.Stat()
	if err != nil {
		return err
	}
	temp, err := atomicfile.Create(w.path, filepath.Base(data.Name())+".*.tmp")
	if err != nil {
		return err
	}
	defer temp.Discard()
	if err := w.writeZip(temp, io.NewSectionReader(data, 0, w.size)); err != nil {
		return err
	}
	// The users who may read the recording, which holds cookies and passwords, were chosen
	// when its working file was made.
	if err := copyMode(temp.File, like); err != nil {
		return err
	}
	return temp.Commit()
}

// copyMode makes f readable for the users that can read like.
func copyMode(f *os.File, like os.FileInfo) error {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // root can; for others it is theirs already, or becomes so
	}
	return f.Chmod(like.Mode().Perm())
}

func (w *Writer) writeZip(out io.Writer, data io.Reader) error {
	z := zip.NewWriter(out)
	var resources []resource
	add := func(name string, r io.Reader) (resource, error) {
		// Stored, not deflated: replayers read ranges of the WARC in place.
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: w.o.Wall.UTC()})
		if err != nil {
			return resource{}, err
		}
		h := sha256.New()
		n, err := io.Copy(io.MultiWriter(f, h), r)
		res := resource{filepath.Base(name), name, "sha256:" + hex.EncodeToString(h.Sum(nil)), n}
		return res, err
	}
	for _, part := range []struct {
		name string
		r    io.Reader
	}{
		{nameData, data},
		{nameIndex, bytes.NewReader(w.cdxj())},
		{namePages, bytes.NewReader(w.pageLines())},
	} {
		res, err := add(part.name, part.r)
		if err != nil {
			return err
		}
		resources = append(resources, res)
	}
	p := dataPackage{
		Profile: "data-package", Version: "1.1.1", Title: w.o.Title, Software: w.o.Software,
		Created: w.o.Wall.UTC().Format(time.RFC3339), Resources: resources,
	}
	if len(w.pages) > 0 {
		p.MainPage = w.pages[0].URL
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	res, err := add(namePackage, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if _, err := add(nameDigest, bytes.NewReader(marshal(packageDigest{namePackage, res.Hash}))); err != nil {
		return err
	}
	return z.Close()
}

func (w *Writer) cdxj() []byte {
	slices.SortStableFunc(w.index, func(a, b indexLine) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.stamp, b.stamp))
	})
	var b bytes.Buffer
	for _, line := range w.index {
		b.WriteString(line.key + " " + line.stamp + " ")
		b.Write(marshal(line))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func (w *Writer) pageLines() []byte {
	var b bytes.Buffer
	b.WriteString(`{"format":"json-pages-1.0","id":"pages","title":"Pages"}` + "\n")
	for _, p := range w.pages {
		if p.Title == "" {
			p.Title = p.URL
		}
		b.Write(marshal(p))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

package suite

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/base/bounded"
	"eidetic/internal/base/tempdir"
	"eidetic/internal/lab"
)

// Source says where the newest release of a browser is: in a folder of this machine, among the files of a server that
// lists their checksums, or in packages of apt.
type Source struct {
	Name string `yaml:"name"`
	// Folder is a pattern of folders, such as /srv/browsers/firefox-*; the one with the highest version is the newest.
	Folder string `yaml:"folder"`
	// Sums is the URL of a list as sha256sum writes it, and File a pattern of the names in it.
	Sums string `yaml:"sums"`
	File string `yaml:"file"`
	// Apt are packages of one version each, by the sources of this machine's apt; they are unpacked, and not installed.
	Apt []string `yaml:"apt"`
	// Program is the browser's program in the folder, or in what is unpacked.
	Program string `yaml:"program"`
}

// What sources may have.
const (
	maxSources = 20
	maxSums    = 8 << 20
	maxRelease = 2 << 30
)

var packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,79}$`) // never written

var archivePattern = regexp.MustCompile(`\.tar(\.(gz|xz|bz2|zst))?$`) // never written

// ReadSources reads a YAML list of sources.
func ReadSources(file string) ([]Source, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%s: more than %d KiB", file, maxText>>10)
	}
	text = bounded.Source(text)
	var all []Source
	err = bounded.YAML(text, func() error { return bounded.Strict(text, &all) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(all) == 0 || len(all) > maxSources {
		return nil, fmt.Errorf("%s: %d sources; from 1 to %d", file, len(all), maxSources)
	}
	for i, s := range all {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: [%d]%w", file, i, err)
		}
		if slices.ContainsFunc(all[:i], func(other Source) bool { return other.Name == s.Name }) {
			return nil, fmt.Errorf("%s: [%d].name: %q is there twice", file, i, s.Name)
		}
	}
	return all, nil
}

func (s Source) check() error {
	switch {
	case !namePattern.MatchString(s.Name):
		return fmt.Errorf(".name: %q: a name has small letters, digits and -, at most 40", lab.Clip(s.Name, 60))
	case !filepath.IsLocal(s.Program):
		return fmt.Errorf(".program: %q: the program's path in its folder, such as firefox/firefox", lab.Clip(s.Program, 60))
	case count(s.Folder != "", s.Sums != "", len(s.Apt) > 0) != 1:
		return errors.New(": name a folder, or sums and file, or apt")
	case len(s.Apt) > 20 || slices.ContainsFunc(s.Apt, func(name string) bool { return !packagePattern.MatchString(name) }):
		return errors.New(".apt: at most 20 names of packages, such as chromium")
	case s.Folder != "" && !filepath.IsAbs(s.Folder):
		return fmt.Errorf(".folder: %q: an absolute pattern, such as /srv/browsers/firefox-*", lab.Clip(s.Folder, 60))
	case s.Sums == "":
		return nil
	}
	if u, err := url.Parse(s.Sums); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf(".sums: %q: an https address of a list of SHA-256 sums", lab.Clip(s.Sums, 60))
	}
	if _, err := path.Match(s.File, ""); err != nil || !archivePattern.MatchString(s.File) {
		return fmt.Errorf(".file: %q: a pattern of a tar archive's name in the list, such as linux-x86_64/en-GB/firefox-*.tar.xz",
			lab.Clip(s.File, 60))
	}
	return nil
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// Newest finds the newest release, fetches and unpacks it below dir if it is not there yet, and returns its program.
func (s Source) Newest(ctx context.Context, client *http.Client, dir string) (program string, err error) {
	var folder string
	switch {
	case s.Folder != "":
		found, e := filepath.Glob(s.Folder)
		if e != nil || len(found) == 0 {
			return "", fmt.Errorf("%s: %s: there is no such folder", s.Name, s.Folder)
		}
		folder = newestOf(found)
	case s.Sums != "":
		folder, err = s.fetch(ctx, client, dir)
	default:
		folder, err = s.packages(ctx, dir)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	program = filepath.Join(folder, s.Program)
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s: %s is no program", s.Name, program)
	}
	return program, nil
}

// newestOf is the name with the highest version; of equal ones the last by its letters.
func newestOf(names []string) string {
	return slices.MaxFunc(names, func(a, b string) int {
		if by := slices.Compare(numbersOf(path.Base(a)), numbersOf(path.Base(b))); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
}

// fetch unpacks the newest file of a list into dir/NAME-HASH, as a whole or not at all.
func (s Source) fetch(ctx context.Context, client *http.Client, dir string) (folder string, err error) {
	sums, err := s.list(ctx, client)
	if err != nil {
		return "", err
	}
	var names []string
	for name := range sums {
		if ok, err := path.Match(s.File, name); ok && err == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%s lists no %s", s.Sums, s.File)
	}
	name := newestOf(names)
	base := archivePattern.ReplaceAllString(path.Base(name), "")
	folder = filepath.Join(dir, s.Name, base+"-"+sums[name][:12])
	at, err := url.Parse(s.Sums)
	if err != nil {
		return "", err
	}
	return folder, whole(folder, func(half, unpacked string) error {
		packed := filepath.Join(half, "packed")
		if err := download(ctx, client, at.JoinPath("..", name).String(), packed, sums[name]); err != nil {
			return err
		}
		return unpackFile(ctx, packed, unpacked)
	})
}

// whole makes a folder, unless it is there, as a whole or not at all: do fills unpacked, and may use half.
func whole(folder string, do func(half, unpacked string) error) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	half, remove, err := tempdir.Make(filepath.Dir(folder), ".fetching-")
	if err != nil {
		return err
	}
	defer remove()
	unpacked := filepath.Join(half, "unpacked")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	if err := do(half, unpacked); err != nil {
		return err
	}
	return os.Rename(unpacked, folder)
}

// output is what a program prints in a folder.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, lab.Clip(strings.TrimSpace(errs.String()), 300))
	}
	return string(out), nil
}

// packages unpacks the packages' newest versions. Apt checks their signatures.
func (s Source) packages(ctx context.Context, dir string) (folder string, err error) {
	uris, err := output(ctx, "/", "apt-get", append([]string{"download", "--print-uris"}, s.Apt...)...)
	if err != nil {
		return "", err
	}
	var files []string // 'ADDRESS' FILE SIZE SHA256:SUM
	for line := range strings.Lines(uris) {
		if words := strings.Fields(line); len(words) >= 3 {
			files = append(files, words[1])
		}
	}
	if len(files) != len(s.Apt) {
		return "", fmt.Errorf("apt-get knows %d of %d packages: %s", len(files), len(s.Apt), strings.Join(s.Apt, " "))
	}
	sum := sha256.Sum256([]byte(uris))
	folder = filepath.Join(dir, s.Name, strings.TrimSuffix(path.Base(files[0]), ".deb")+"-"+hex.EncodeToString(sum[:6]))
	return folder, whole(folder, func(half, unpacked string) error {
		if _, err := output(ctx, half, "apt-get", append([]string{"download"}, s.Apt...)...); err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(half, "*.deb"))
		if err != nil || len(found) != len(s.Apt) {
			return fmt.Errorf("apt-get has fetched %d of %d packages", len(found), len(s.Apt))
		}
		for _, file := range found {
			if err := unpackPackage(ctx, file, unpacked); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(file), err)
			}
		}
		return nil
	})
}

// list reads the checksums: of each line the sum and the name.
func (s Source) list(ctx context.Context, client *http.Client) (map[string]string, error) {
	body, err := get(ctx, client, s.Sums)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	all := map[string]string{}
	limited := &io.LimitedReader{R: body, N: maxSums + 1}
	lines := bufio.NewScanner(limited)
	for lines.Scan() {
		if name, sum, ok := sumOf(lines.Text()); ok {
			all[name] = sum
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, fmt.Errorf("%s: %w", s.Sums, lines.Err())
	case limited.N <= 0: // the newest may be in what was not read
		return nil, fmt.Errorf("%s: more than %d MiB", s.Sums, maxSums>>20)
	case len(all) == 0:
		return nil, fmt.Errorf("%s is no list of SHA-256 sums: no line of it is like those of sha256sum", s.Sums)
	}
	return all, nil
}

// taggedSum is a line as BSD's programs, sha256sum --tag and openssl write it.
var taggedSum = regexp.MustCompile(`^SHA(?:2-)?256 ?\((.+)\) ?= ?([0-9A-Fa-f]{64})$`) // never written

// sumOf reads a line of a list of checksums.
func sumOf(line string) (name, sum string, ok bool) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if m := taggedSum.FindStringSubmatch(line); m != nil {
		name, sum = m[1], m[2]
	} else if at := strings.IndexAny(line, " \t"); at > 0 {
		sum, name = line[:at], strings.TrimLeft(line[at:], " \t*")
	}
	name, sum = strings.TrimPrefix(name, "./"), strings.ToLower(sum)
	return name, sum, hashPattern.MatchString(sum) && filepath.IsLocal(name)
}

func get(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	own := *client
	own.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if to.URL.Scheme != "https" || len(via) > 5 {
			return fmt.Errorf("it leads to %s, not by https, or after too many others", to.URL.Redacted())
		}
		return nil
	}
	resp, err := own.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	return resp.Body, nil
}

// download writes a file whose SHA-256 is known, and keeps none that has another.
func download(ctx context.Context, client *http.Client, address, file, sum string) (err error) {
	body, err := get(ctx, client, address)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(body, maxRelease+1))
	switch got := hex.EncodeToString(hash.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case n > maxRelease:
		return fmt.Errorf("%s: more than %d GiB", address, maxRelease>>30)
	case got != sum:
		return fmt.Errorf("%s: its SHA-256 is %s, and the list says %s", address, got, sum)
	}
	return nil
}

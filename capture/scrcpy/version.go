package scrcpy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// DefaultServer is where packages of scrcpy keep the server's file.
const DefaultServer = "/usr/share/scrcpy/scrcpy-server"

// Bounds of the server's file: those of the releases have 30 to 100 kB.
const (
	maxFile = 16 << 20
	maxCode = 32 << 20 // of its classes.dex
)

// Where to get the file, for errors.
const getServer = "download scrcpy-server-v… of a release of scrcpy (github.com/Genymobile/scrcpy), or install Debian's package scrcpy " +
	"where there is one, and name the file as the screen's server"

// Server is the server's file, which is pushed to the phone.
type Server struct {
	Path    string
	Version string // "3.3.4"
	data    []byte
	speaks  dialect
}

// dialect is the protocol of a version.
type dialect struct {
	major int
	scid  bool // the socket's name has a number
	meta  int  // bytes of what is said of the phone: its name, in 1.x its size, too
	codec int  // bytes of the codec's head
	// sessions: packets that say the size, and flags one bit lower.
	sessions bool
}

// ReadServer reads the server's file and finds out its version.
func ReadServer(path string) (Server, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, fmt.Errorf("scrcpy: there is no server at %s: %s", path, getServer)
	}
	if err != nil {
		return Server{}, fmt.Errorf("scrcpy: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Server{}, fmt.Errorf("scrcpy: %w", err)
	}
	s := Server{Path: path, data: data}
	if s.Version, err = versionOf(data); err == nil {
		s.speaks, err = dialectOf(s.Version)
	}
	if err != nil {
		return Server{}, fmt.Errorf("scrcpy: %s: %w", path, err)
	}
	return s, nil
}

// mismatch is what the server prints when it is started as another version; in its code the version stands in the text.
var mismatch = regexp.MustCompile(`The server version \(([0-9]{1,3}(?:\.[0-9]{1,3}){1,2})\) does not match the client`) // constant

// versionOf finds the version in the code within a server's file, a JAR. Other files are refused, so that none gets to
// a phone by mistake.
func versionOf(file []byte) (string, error) {
	if len(file) > maxFile {
		return "", fmt.Errorf("more than %d bytes: it is no server of scrcpy", maxFile)
	}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "", fmt.Errorf("it is no server of scrcpy, which is a JAR: %w: %s", err, getServer)
	}
	code, err := z.Open("classes.dex")
	if err != nil {
		return "", fmt.Errorf("it is no server of scrcpy: %w: %s", err, getServer)
	}
	defer code.Close()
	text, err := io.ReadAll(io.LimitReader(code, maxCode))
	if err != nil {
		return "", fmt.Errorf("it is damaged: %w", err)
	}
	found := mismatch.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("it does not say which version of scrcpy it is: %s", getServer)
	}
	return string(found[1]), nil
}

// dialectOf returns the protocol of a version.
func dialectOf(version string) (d dialect, err error) {
	words := strings.Split(version, ".")
	var minor int
	if len(words) > 1 {
		d.major, err = strconv.Atoi(words[0])
		minor, _ = strconv.Atoi(words[1])
	}
	const name, size = 64, 4
	switch {
	case err == nil && d.major == 1 && minor >= 23:
		d.meta = name + size
	case d.major == 2 || d.major == 3:
		d.scid, d.meta, d.codec = true, name, 12
	case d.major == 4:
		d.scid, d.meta, d.codec, d.sessions = true, name, 4, true
	default:
		return dialect{}, fmt.Errorf("it is scrcpy %s: take 1.23 to 1.25, 2, 3 or 4, whose protocols are known", version)
	}
	return d, nil
}

// options are the words after the server's version.
func (d dialect) options(scid uint32, o Options) (words []string) {
	words = []string{"tunnel_forward=true", "control=false", "cleanup=false", "downsize_on_error=false", "log_level=info"}
	// MediaFormat's BT.709 and limited range: an encoder that is asked for no colours may not say which it makes.
	const colours = "codec_options=color-standard=1,color-range=2"
	before := ""
	if d.scid {
		words = append(words, fmt.Sprintf("scid=%08x", scid), "audio=false", "video_codec=h264")
		before = "video_"
	}
	words = append(words, fmt.Sprintf("%sbit_rate=%d", before, bitRate), before+colours)
	if o.MaxSize > 0 {
		words = append(words, fmt.Sprintf("max_size=%d", o.MaxSize))
	}
	if o.MaxRate > 0 {
		words = append(words, fmt.Sprintf("max_fps=%d", o.MaxRate))
	}
	return words
}

// socket is the name of the socket at which the server waits.
func (d dialect) socket(scid uint32) string {
	if d.scid {
		return fmt.Sprintf("scrcpy_%08x", scid)
	}
	return "scrcpy"
}

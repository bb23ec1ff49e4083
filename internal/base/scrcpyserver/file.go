// Package scrcpyserver runs the server of scrcpy on an Android phone: a program that adb puts there, which encodes the
// screen and takes input. Its file is the user's, and its version, which stands in it, says what it speaks. In go the file
// and the options of a start; out comes the first connection to the server, and why it ended.
//
// Standards: scrcpy, doc/develop.md, and the sources of its versions 1.23 to 4.1.
package scrcpyserver

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

// Default is where packages of scrcpy keep the server's file.
const Default = "/usr/share/scrcpy/scrcpy-server"

// Bounds of the server's file: those of the releases have 30 to 100 kB.
const (
	maxFile = 16 << 20
	maxCode = 32 << 20 // of its classes.dex
)

// getServer says where to get the file, for errors.
const getServer = "download scrcpy-server-v… of a release of scrcpy (github.com/Genymobile/scrcpy), or install Debian's package scrcpy " +
	"where there is one, and name the file by server: FILE"

// File is the server's file, which is pushed to the phone.
type File struct {
	Path         string
	Version      string // "3.3.4"
	Major, Minor int
	data         []byte
}

// Read reads the server's file and finds out its version.
func Read(path string) (File, error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, fmt.Errorf("scrcpy: there is no server at %s: %s", path, getServer)
	}
	if err != nil {
		return File{}, fmt.Errorf("scrcpy: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("scrcpy: %w", err)
	}
	f := File{Path: path, data: data}
	if f.Version, err = versionOf(data); err == nil {
		f.Major, f.Minor, err = known(f.Version)
	}
	if err != nil {
		return File{}, fmt.Errorf("scrcpy: %s: %w", path, err)
	}
	return f, nil
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

// known returns the numbers of a version whose protocols are known.
func known(version string) (major, minor int, err error) {
	words := strings.Split(version, ".")
	if len(words) > 1 {
		major, err = strconv.Atoi(words[0])
		minor, _ = strconv.Atoi(words[1])
	}
	if err != nil || !(major == 1 && minor >= 23 || major >= 2 && major <= 4) {
		return 0, 0, fmt.Errorf("it is scrcpy %s: take 1.23 to 1.25, 2, 3 or 4, whose protocols are known", version)
	}
	return major, minor, nil
}

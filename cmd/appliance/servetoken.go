package main

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/atomicfile"
	"eidetic/internal/panel"
)

// token reads the panel's token, or makes one in the data folder. It returns
// the file that it is kept in.
func (c ServeCmd) token() (token, file string, err error) {
	if c.TokenFile != "" {
		token, err = readToken(c.TokenFile)
		return token, c.TokenFile, err
	}
	file = filepath.Join(c.Data, "token")
	token, err = readToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, file, err
	}
	if err := os.MkdirAll(c.Data, 0o755); err != nil {
		return "", "", fmt.Errorf("--data: %w", err)
	}
	token = newToken()
	if err := atomicfile.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", "", fmt.Errorf("keep the token: %w", err)
	}
	return token, file, nil
}

// newToken returns 80 random bits as letters and digits that a person can type.
func newToken() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // crypto/rand never returns an error
	return strings.ToLower(base32.StdEncoding.EncodeToString(b))
}

// readToken reads a file that holds nothing but a token.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the panel's token: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", fmt.Errorf("the panel's token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < panel.MinToken {
		return "", fmt.Errorf("the panel's token: %s holds %d characters, at least %d are needed", file, len(token), panel.MinToken)
	}
	return token, nil
}

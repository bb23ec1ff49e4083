package service

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

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// Token reads the panel's token from the file. Without a file name the token is
// that of the data folder, where one is made if there is none. It returns the
// file that the token is in.
func Token(file, data string) (token lab.Secret, kept string, err error) {
	if file != "" {
		token, err = ReadToken(file)
		return token, file, err
	}
	file = filepath.Join(data, "token")
	token, err = ReadToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, file, err
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return token, "", fmt.Errorf("data folder: %w", err)
	}
	token = newToken()
	if err := atomicfile.WriteFile(file, []byte(token.Reveal()+"\n"), 0o600); err != nil {
		return lab.Secret{}, "", fmt.Errorf("keep the token: %w", err)
	}
	return token, file, nil
}

// newToken returns 80 random bits as letters and digits that a person can type.
func newToken() lab.Secret {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // crypto/rand never returns an error
	return lab.NewSecret(strings.ToLower(base32.StdEncoding.EncodeToString(b)))
}

// ReadToken reads a file that holds only a token.
func ReadToken(file string) (token lab.Secret, err error) {
	f, err := os.Open(file)
	if err != nil {
		return token, fmt.Errorf("the panel's token: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return token, fmt.Errorf("the panel's token: %w", err)
	}
	plain := strings.TrimSpace(string(bounded.UTF8(text))) // Windows' editors and shells write a mark before it
	if len(plain) < panel.MinToken {
		return token, fmt.Errorf("the panel's token: %s holds %d characters, at least %d are needed", file, len(plain), panel.MinToken)
	}
	return lab.NewSecret(plain), nil
}

// Package credentials decides who may use the panel and keeps a log of what they did: the
// box's own token, named tokens with scopes, sessions of browsers, the delay after wrong
// tokens, and the audit log.
//
// In go secrets as they came with a request and the address that they came from; out comes
// an [Identity]. Secrets are kept as SHA-256 only: every secret that this package makes has
// 130 random bits, which no dictionary holds, so a slow hash would add nothing (RFC 9700
// and OWASP's advice on slow hashes are about passwords that people choose). Everything is
// bounded: tokens, sessions, addresses that are delayed, and the log.
package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Scope is what a token may do. Each scope includes the ones before it.
type Scope string

const (
	Read  Scope = "read"  // look at runs, recordings and devices
	Run   Scope = "run"   // and start and cancel runs, upload recordings
	Admin Scope = "admin" // and delete, configure, update, reset, manage tokens
)

// Allows says whether a token of scope s may do what needs the scope need.
func (s Scope) Allows(need Scope) bool { return s.rank() >= need.rank() && need.rank() > 0 }

// rank is 0 for a scope that does not exist.
func (s Scope) rank() int {
	switch s {
	case Read:
		return 1
	case Run:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// Identity is who makes a request.
type Identity struct {
	Name  string // of the token, for people and for the log
	Scope Scope
	// Expires is the end of a session; zero for a token.
	Expires time.Time
	token   string // ID of the token
	session string // digest of the session's secret; empty for a token
}

const (
	// OwnToken is the name of the box's own token, which no other token may have.
	OwnToken = "box"
	// MaxTokens bounds the named tokens.
	MaxTokens = 100
	// MaxName bounds the name of a token, in characters.
	MaxName = 60
	// prefix marks a secret of this package, so that a scanner of repositories can find
	// one that somebody committed.
	prefix = "eid_"
)

// Errors of [Store.Create] and [Store.Revoke].
var (
	ErrName    = fmt.Errorf("the name of a token has 1 to %d printable characters, and is not %q", MaxName, OwnToken)
	ErrTaken   = errors.New("there is a token of this name already: choose another name, or revoke that token first")
	ErrScope   = errors.New("the scope of a token is read, run or admin")
	ErrMany    = fmt.Errorf("there are %d tokens already, which is the most: revoke one first", MaxTokens)
	ErrNoToken = errors.New("there is no such token")
)

// checkName returns the name without surrounding space, or ErrName.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	n := utf8.RuneCountInString(name)
	if n == 0 || n > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) ||
		strings.EqualFold(name, OwnToken) {
		return "", ErrName
	}
	return name, nil
}

// digest is the form in which a secret is kept.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Package webhook posts events to addresses that people gave, signed as Standard Webhooks
// (standardwebhooks.com, version 1) says: the headers webhook-id, webhook-timestamp and
// webhook-signature, where the signature is HMAC-SHA256 over "id.timestamp.body".
//
// In go an address, a secret and a body; out comes the status of the answer. Addresses come
// from anybody who may make webhooks, and a name's addresses come from anybody's name server,
// so a [Guard] judges each address when it is connected to: a webhook must not reach the box
// itself, its devices, or what only the box's network may reach. Redirects are not followed,
// and nothing of an answer's body is kept.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// secretPrefix begins a secret, as the standard has it.
const secretPrefix = "whsec_"

// The standard's bounds of a secret's bytes.
const (
	leastSecret = 24
	mostSecret  = 64
)

// NewSecret draws a secret.
func NewSecret() lab.Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return lab.NewSecret(secretPrefix + base64.StdEncoding.EncodeToString(key))
}

// CheckSecret returns an error for a text that is no secret of the standard.
func CheckSecret(secret lab.Secret) error {
	_, err := keyOf(secret)
	return err
}

func keyOf(secret lab.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(secret.Reveal(), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < leastSecret || len(key) > mostSecret {
		return nil, fmt.Errorf("a secret is %s and %d to %d bytes in Base64; leave it out, and the box makes one", secretPrefix, leastSecret, mostSecret)
	}
	return key, nil
}

// Sign returns the value of the header webhook-signature.
func Sign(secret lab.Secret, id string, at time.Time, body []byte) (string, error) {
	key, err := keyOf(secret)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

package update

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Keys are the public keys that a system trusts: it installs what is signed by any of them. A
// system that comes with an update has keys of its own, so an update that is signed by an old key
// can introduce a new one, and a later update, signed by the new one, can leave the old one out.
type Keys []ed25519.PublicKey

// ParseKeys reads public keys, each a PEM block PUBLIC KEY (PKIX, RFC 8410).
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a PEM block %s, want PUBLIC KEY", block.Type)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("not an Ed25519 key")
		}
		if !keys.has(public) {
			keys = append(keys, public)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("not PEM")
	}
	return keys, nil
}

func (k Keys) has(key ed25519.PublicKey) bool {
	return slices.ContainsFunc(k, func(other ed25519.PublicKey) bool { return other.Equal(key) })
}

// PEM is what ParseKeys reads.
func (k Keys) PEM() (text []byte, err error) {
	for _, key := range k {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			return nil, err
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	}
	return text, nil
}

// verify reports whether one of the keys signed the message.
func (k Keys) verify(message, signature []byte) bool {
	return slices.ContainsFunc(k, func(key ed25519.PublicKey) bool { return ed25519.Verify(key, message, signature) })
}

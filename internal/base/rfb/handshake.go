package rfb

import (
	"crypto/des"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

var be = binary.BigEndian

// The supported security types (RFC 6143, 7.2).
const (
	securityNone = 1
	securityVNC  = 2
)

// maxWords bounds the length of a server's text for people.
const maxWords = 1 << 10

// handshake does RFC 6143, 7.1 to 7.3.
func (c *Conn) handshake(password lab.Secret) error {
	minor, err := c.negotiateVersion()
	if err != nil {
		return err
	}
	security, err := c.chooseSecurity(minor)
	if err != nil {
		return err
	}
	if security == securityVNC {
		if password.IsZero() {
			return errors.New("the server asks for a password, and none was given")
		}
		if err := c.answerChallenge(password); err != nil {
			return err
		}
	}
	// Before 3.8 a server with security type None sends no SecurityResult.
	if security == securityVNC || minor >= 8 {
		if err := c.securityResult(minor); err != nil {
			return err
		}
	}
	const shared = 1 // other clients stay connected
	if err := c.Send([]byte{shared}); err != nil {
		return err
	}
	return c.serverInit()
}

// readFull reads exactly len(b) bytes.
func (c *Conn) readFull(b []byte) error {
	if _, err := io.ReadFull(c.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("the VNC server closed the connection: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("read from the VNC server: %w", err)
	}
	return nil
}

// negotiateVersion exchanges versions and returns the minor one of 3.x.
func (c *Conn) negotiateVersion() (int, error) {
	var b [12]byte
	if err := c.readFull(b[:]); err != nil {
		return 0, err
	}
	major, err1 := strconv.ParseUint(string(b[4:7]), 10, 16)
	minor, err2 := strconv.ParseUint(string(b[8:11]), 10, 16)
	if string(b[:4]) != "RFB " || b[7] != '.' || b[11] != '\n' || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("this is no VNC server: it greets with %q", b[:])
	}
	var v int
	switch {
	case major > 3 || major == 3 && minor >= 8:
		v = 8 // RealVNC's 4.1 and 5.0 and Apple's 3.889 mean 3.8 with additions
	case major == 3 && minor == 7:
		v = 7
	case major == 3 && minor >= 3:
		v = 3 // some servers announce 3.5 by mistake and mean 3.3
	default:
		return 0, fmt.Errorf("the server speaks RFB %d.%d; 3.3 is the oldest understood", major, minor)
	}
	c.Version = fmt.Sprintf("3.%d", v)
	return v, c.Send(fmt.Appendf(nil, "RFB 003.%03d\n", v))
}

// chooseSecurity selects None if it is offered, otherwise VNC Authentication.
func (c *Conn) chooseSecurity(minor int) (byte, error) {
	var offered []byte
	if minor == 3 { // in 3.3 the server chooses
		var b [4]byte
		if err := c.readFull(b[:]); err != nil {
			return 0, err
		}
		if v := be.Uint32(b[:]); v != 0 && v < 256 {
			offered = []byte{byte(v)}
		} else if v != 0 {
			return 0, broken("security type %d", v)
		}
	} else {
		n, err := c.r.ReadByte()
		if err != nil {
			return 0, fmt.Errorf("read from the VNC server: %w", err)
		}
		offered = make([]byte, n)
		if err := c.readFull(offered); err != nil {
			return 0, err
		}
	}
	if len(offered) == 0 {
		words, err := c.readText()
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("the server refuses: %q", words)
	}
	for _, t := range []byte{securityNone, securityVNC} {
		if !slices.Contains(offered, t) {
			continue
		}
		if minor == 3 {
			return t, nil
		}
		return t, c.Send([]byte{t})
	}
	return 0, fmt.Errorf("the server offers the security types %v only; set it to None (1) or VNC Authentication (2): %s",
		offered, remedy(offered))
}

// remedy says which setting of the server offers a supported security type. The types tell the server's maker (rfbproto,
// security types).
func remedy(offered []byte) string {
	for _, t := range offered {
		switch {
		case t >= 30 && t <= 36:
			return `on a Mac, Screen Sharing's "VNC viewers may control screen with password"`
		case t == 17 || t == 113:
			return `in UltraVNC, "Require MS Logon" off, and a VNC password`
		case t == 5 || t == 6 || t >= 129 && t <= 133:
			return `in RealVNC, Encryption "Prefer off" and Authentication "VNC password"; in wayvnc, enable_auth=false`
		}
	}
	return "in TigerVNC, -SecurityTypes VncAuth"
}

// answerChallenge encrypts the server's 16 bytes with the password (7.2.2).
func (c *Conn) answerChallenge(password lab.Secret) error {
	var b [16]byte
	if err := c.readFull(b[:]); err != nil {
		return err
	}
	answer, err := encryptChallenge(b, password.Reveal())
	if err != nil {
		return err
	}
	return c.Send(answer[:])
}

// encryptChallenge is DES with the bits of each byte of the key in reverse order.
func encryptChallenge(challenge [16]byte, password string) (answer [16]byte, err error) {
	var key [8]byte
	copy(key[:], password)
	for i, k := range key {
		key[i] = bits.Reverse8(k)
	}
	block, err := des.NewCipher(key[:])
	if err != nil {
		return answer, fmt.Errorf("VNC authentication: %w", err)
	}
	block.Encrypt(answer[:8], challenge[:8])
	block.Encrypt(answer[8:], challenge[8:])
	return answer, nil
}

// securityResult reads whether the server accepts the client (7.1.3).
func (c *Conn) securityResult(minor int) error {
	var b [4]byte
	if err := c.readFull(b[:]); err != nil {
		return err
	}
	result := be.Uint32(b[:])
	if result == 0 {
		return nil
	}
	if minor >= 8 {
		words, err := c.readText()
		if err != nil {
			return fmt.Errorf("the server refuses the password: %w", err)
		}
		return fmt.Errorf("the server refuses the password: %q", words)
	}
	if result == 2 {
		return errors.New("the server refuses: too many attempts; wait before the next")
	}
	return errors.New("the server refuses the password")
}

// readText reads a text for people, and only the beginning of a long one.
func (c *Conn) readText() (string, error) {
	var b [4]byte
	if err := c.readFull(b[:]); err != nil {
		return "", err
	}
	text := make([]byte, min(be.Uint32(b[:]), maxWords))
	if err := c.readFull(text); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(text), "�"), nil
}

// serverInit reads the screen's size, the server's own pixel format, which is not used, and
// the desktop's name.
func (c *Conn) serverInit() error {
	var b [24]byte
	if err := c.readFull(b[:]); err != nil {
		return err
	}
	c.width, c.height = int(be.Uint16(b[:])), int(be.Uint16(b[2:]))
	n := be.Uint32(b[20:])
	const longest = 1 << 16
	if n > longest {
		return broken("a desktop name of %d bytes", n)
	}
	name := make([]byte, n)
	if err := c.readFull(name); err != nil {
		return err
	}
	c.Name = strings.ToValidUTF8(string(name[:min(len(name), maxWords)]), "�")
	err := c.checkSize(c.width, c.height)
	if errors.Is(err, ErrNoPixels) { // some servers have no size before a client has said what it understands
		_ = c.Send(AppendEncodings(nil, Raw, DesktopSize, ExtDesktopSize)) // the next connection shows whether it helped
	}
	return err
}

package video

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// ivf reads the packets of an encoder: a header of 32 bytes, and before each
// packet its length and its number.
type ivf struct{ r io.Reader }

// maxPacket bounds what one picture may take.
const maxPacket = 64 << 20

func newIVF(r io.Reader) (*ivf, error) {
	var header [32]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, fmt.Errorf("the encoder's output: %w", err)
	}
	if !bytes.HasPrefix(header[:], []byte("DKIF")) || string(header[8:12]) != "VP80" {
		return nil, fmt.Errorf("the encoder's output is not IVF with VP8: %q", header[:12])
	}
	return &ivf{r}, nil
}

// next returns the next packet, or io.EOF.
func (i *ivf) next() ([]byte, error) {
	var header [12]byte
	if _, err := io.ReadFull(i.r, header[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[:])
	if size == 0 || size > maxPacket {
		return nil, fmt.Errorf("the encoder's output has a packet of %d bytes", size)
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(i.r, packet); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the stream may end only between packets
		}
		return nil, fmt.Errorf("the encoder's output: %w", err)
	}
	return packet, nil
}

// The elements of WebM that a film has (Matroska, RFC 9559; EBML, RFC 8794).
const (
	idEBML           = 0x1A45DFA3
	idSegment        = 0x18538067
	idSeekHead       = 0x114D9B74
	idSeek           = 0x4DBB
	idSeekID         = 0x53AB
	idSeekPosition   = 0x53AC
	idInfo           = 0x1549A966
	idTimestampScale = 0x2AD7B1
	idDuration       = 0x4489
	idMuxingApp      = 0x4D80
	idWritingApp     = 0x5741
	idTracks         = 0x1654AE6B
	idTrackEntry     = 0xAE
	idTrackNumber    = 0xD7
	idTrackUID       = 0x73C5
	idTrackType      = 0x83
	idFlagLacing     = 0x9C
	idLanguage       = 0x22B59C
	idCodecID        = 0x86
	idVideo          = 0xE0
	idPixelWidth     = 0xB0
	idPixelHeight    = 0xBA
	idColour         = 0x55B0
	idMatrix         = 0x55B1
	idRange          = 0x55B9
	idTransfer       = 0x55BA
	idPrimaries      = 0x55BB
	idCluster        = 0x1F43B675
	idTimestamp      = 0xE7
	idBlockGroup     = 0xA0
	idBlock          = 0xA1
	idBlockDuration  = 0x9B
	idReferenceBlock = 0xFB
	idCues           = 0x1C53BB6B
	idCuePoint       = 0xBB
	idCueTime        = 0xB3
	idCuePositions   = 0xB7
	idCueTrack       = 0xF7
	idCueCluster     = 0xF1
	idVoid           = 0xEC
)

// element writes an element with its content.
func element(id uint32, content ...[]byte) []byte {
	body := bytes.Join(content, nil)
	out := identifier(id)
	if len(body) < 127 {
		out = append(out, 0x80|byte(len(body)))
	} else {
		out = binary.BigEndian.AppendUint64(out, 1<<56|uint64(len(body)))
	}
	return append(out, body...)
}

// identifier encodes an element's identifier, whose first bits tell its length.
func identifier(id uint32) []byte {
	return bytes.TrimLeft(binary.BigEndian.AppendUint32(nil, id), "\x00")
}

// number is an unsigned integer of eight bytes, so that it can be replaced.
func number(id uint32, v uint64) []byte {
	return element(id, binary.BigEndian.AppendUint64(nil, v))
}

func text(id uint32, s string) []byte { return element(id, []byte(s)) }

// seekRoom is where the list of the main elements goes, at the film's end.
const seekRoom = 128

// mostCluster bounds the bytes of a cluster, and longestCluster its time: a
// block's own time, in milliseconds, has 16 bits with a sign.
const (
	mostCluster    = 4 << 20
	longestCluster = 30_000
)

// muxer writes a WebM file of one VP8 track.
type muxer struct {
	out     io.WriterAt
	at      int64 // where the next element goes
	segment int64 // where the segment's content begins
	info    int64
	tracks  int64
	cluster bytes.Buffer // the blocks of the cluster that is being filled
	begins  int64        // its time
	key     bool         // it begins with a key frame
	cues    []byte
	last    int64 // time of the newest block
	blocks  int
}

func newMuxer(out io.WriterAt, width, height int) (*muxer, error) {
	m := &muxer{out: out}
	head := element(idEBML,
		number(0x4286, 1), number(0x42F7, 1), number(0x42F2, 4), number(0x42F3, 8), // versions, and the longest identifier and size
		text(0x4282, "webm"), number(0x4287, 2), number(0x4285, 2))
	head = append(head, identifier(idSegment)...)
	head = binary.BigEndian.AppendUint64(head, 1<<56) // finish writes the size here
	m.segment = int64(len(head))
	head = append(head, make([]byte, seekRoom)...)
	m.info = int64(len(head))
	head = append(head, m.about(0)...)
	m.tracks = int64(len(head))
	head = append(head, element(idTracks, element(idTrackEntry,
		number(idTrackNumber, 1), number(idTrackUID, 1), number(idTrackType, 1), number(idFlagLacing, 0),
		text(idLanguage, "und"), text(idCodecID, "V_VP8"),
		element(idVideo, number(idPixelWidth, uint64(width)), number(idPixelHeight, uint64(height)),
			// BT.601 of limited range from sRGB (ITU-T H.273): without it Chromium takes large pictures for BT.709.
			element(idColour, number(idMatrix, 6), number(idRange, 1), number(idTransfer, 13), number(idPrimaries, 1)))))...)
	return m, m.write(head)
}

// about describes the film; its size does not depend on the length.
func (m *muxer) about(length int64) []byte {
	return element(idInfo,
		number(idTimestampScale, 1e6), // times are milliseconds
		element(idDuration, binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(length)))),
		text(idMuxingApp, "Eidetic"), text(idWritingApp, "Eidetic"))
}

func (m *muxer) write(b []byte) error {
	_, err := m.out.WriteAt(b, m.at)
	m.at += int64(len(b))
	return err
}

// add takes the next packet, which is shown at a time and for a duration.
func (m *muxer) add(packet []byte, at, duration int64) error {
	key := len(packet) > 0 && packet[0]&1 == 0 // RFC 6386, 9.1
	if m.blocks == 0 && (!key || at != 0) {
		return errors.New("the film does not begin with a key frame at 0")
	}
	if m.blocks > 0 && at <= m.last {
		return fmt.Errorf("a picture at %d ms follows one at %d ms", at, m.last)
	}
	if m.cluster.Len() > 0 && (key || at-m.begins > longestCluster || m.cluster.Len()+len(packet) > mostCluster) {
		if err := m.flush(); err != nil {
			return err
		}
	}
	if m.cluster.Len() == 0 {
		m.begins, m.key = at, key
	}
	head := []byte{0x81, byte((at - m.begins) >> 8), byte(at - m.begins), 0} // of track 1
	// A block group holds the duration. Without one, readers guess it from a frame rate, and this film has none.
	group := [][]byte{element(idBlock, head, packet), number(idBlockDuration, uint64(duration))}
	if !key {
		before := binary.BigEndian.AppendUint64(nil, uint64(m.last-at)) // a signed difference
		group = append(group, element(idReferenceBlock, before))
	}
	m.cluster.Write(element(idBlockGroup, group...))
	m.last = at
	m.blocks++
	return nil
}

// flush writes the cluster, with a cue if a player can begin there.
func (m *muxer) flush() error {
	if m.key {
		m.cues = append(m.cues, element(idCuePoint, number(idCueTime, uint64(m.begins)),
			element(idCuePositions, number(idCueTrack, 1), number(idCueCluster, uint64(m.at-m.segment))))...)
	}
	b := element(idCluster, number(idTimestamp, uint64(m.begins)), m.cluster.Bytes())
	m.cluster.Reset()
	return m.write(b)
}

// finish writes what is known at the end: cues, the list of elements, length and size.
func (m *muxer) finish(length int64) error {
	if m.cluster.Len() > 0 {
		if err := m.flush(); err != nil {
			return err
		}
	}
	cues := m.at
	if err := m.write(element(idCues, m.cues)); err != nil {
		return err
	}
	var seeks []byte
	for _, s := range []struct {
		id uint32
		at int64
	}{{idInfo, m.info}, {idTracks, m.tracks}, {idCues, cues}} {
		seeks = append(seeks, element(idSeek, element(idSeekID, identifier(s.id)), number(idSeekPosition, uint64(s.at-m.segment)))...)
	}
	head := element(idSeekHead, seeks)
	head = append(head, element(idVoid, make([]byte, seekRoom-len(head)-2))...)
	size := binary.BigEndian.AppendUint64(nil, 1<<56|uint64(m.at-m.segment))
	_, err := m.out.WriteAt(append(size, head...), m.segment-8)
	if err == nil {
		_, err = m.out.WriteAt(m.about(length), m.info)
	}
	return err
}

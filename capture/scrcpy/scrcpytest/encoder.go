package scrcpytest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"

	"eidetic/internal/lab"
)

// Packet is what an encoder makes.
type Packet struct {
	Config bool // parameter sets
	Key    bool
	Data   []byte // with start codes
}

// Encoder is libx264, as an encoder of a phone works: each picture becomes a packet at once, with the colours of BT.709.
type Encoder struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	began bool
}

// NewEncoder starts an encoder of pictures of a format, BGRX or grey. Every key-th picture needs none before it.
func NewEncoder(ctx context.Context, f lab.Format, key int, more ...string) (*Encoder, error) {
	pixels := map[lab.PixelFormat]string{lab.BGRX: "bgr0", lab.Grey: "gray"}[f.Pixels]
	args := []string{"-v", "error", "-nostdin", "-probesize", "32", "-analyzeduration", "0", "-f", "rawvideo", "-pix_fmt", pixels,
		"-s", fmt.Sprintf("%dx%d", f.Width, f.Height), "-r", "60", "-i", "pipe:0", "-c:v", "libx264", "-preset", "ultrafast",
		"-tune", "zerolatency", "-vf", "scale=out_color_matrix=bt709:out_range=tv", "-pix_fmt", "yuv420p", "-colorspace", "bt709", "-color_range", "tv",
		"-crf", "10", "-g", fmt.Sprint(key), "-threads", "1"}
	args = append(append(args, more...), "-flush_packets", "1", "-f", "flv", "pipe:1")
	cmd := exec.CommandContext(ctx, "ffmpeg", args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Encoder{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, cmd.Start()
}

// Close ends the encoder.
func (e *Encoder) Close() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait() // it was ended
}

// Encode makes a picture's packets: before the first, and before no other, that of the parameters.
func (e *Encoder) Encode(pix []byte) (list []Packet, err error) {
	if _, err := e.in.Write(pix); err != nil {
		return nil, err
	}
	for {
		p, ok, err := e.packet()
		if err != nil {
			return nil, fmt.Errorf("the encoder: %w", err)
		}
		if !ok {
			continue
		}
		if list = append(list, p); !p.Config {
			return list, nil
		}
	}
}

// packet reads a tag of FLV (Adobe Flash Video File Format Specification 10.1, annex E).
func (e *Encoder) packet() (p Packet, ok bool, err error) {
	const header, size, video = 9, 4, 9
	if !e.began {
		e.began = true
		if _, err := e.out.Discard(header + size); err != nil {
			return p, false, err
		}
	}
	var head [11]byte
	if _, err := io.ReadFull(e.out, head[:]); err != nil {
		return p, false, err
	}
	body := make([]byte, int(binary.BigEndian.Uint32(head[:])&0xffffff)+size)
	if _, err := io.ReadFull(e.out, body); err != nil {
		return p, false, err
	}
	body = body[:len(body)-size]
	if head[0] != video || len(body) < 5 {
		return p, false, nil
	}
	p.Key = body[0]>>4 == 1
	switch data := body[5:]; body[1] {
	case 0: // AVCDecoderConfigurationRecord (ISO/IEC 14496-15)
		p.Config, p.Key = true, false
		at := 6
		for range data[5] & 31 {
			p.Data, at = unit(p.Data, data, at, 2)
		}
		n := data[at]
		at++
		for range n {
			p.Data, at = unit(p.Data, data, at, 2)
		}
	case 1:
		for at := 0; at < len(data); {
			p.Data, at = unit(p.Data, data, at, 4)
		}
	default:
		return p, false, nil
	}
	return p, true, nil
}

// unit appends, with a start code, what stands at a place behind its length in so many bytes.
func unit(to, data []byte, at, bytes int) (out []byte, next int) {
	n := 0
	for range bytes {
		n = n<<8 | int(data[at])
		at++
	}
	return append(append(to, 0, 0, 0, 1), data[at:at+n]...), at + n
}

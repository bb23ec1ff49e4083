package scrcpy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/base/programs"
	"eidetic/internal/lab"
)

// decoder is ffmpeg, which gets each packet with its number and gives each picture with the number of its packet, at
// once: it waits neither for the next packet nor for other threads.
type decoder struct {
	cmd      *exec.Cmd
	in       *bufio.Writer
	stdin    io.WriteCloser
	numbers  *bufio.Reader // "frame:0    pts:0 …", a line before each picture
	pictures io.Reader
	words    *os.File // what it says of damage
	said     string   // the first of it
	close    []io.Closer
}

// decoderThreads are one: more would hold pictures back until others come.
const decoderThreads = "1"

// newDecoder starts ffmpeg, which makes NV12 of H.264.
func newDecoder(ctx context.Context, f lab.Format) (d *decoder, err error) {
	program, err := programs.FFmpeg().Find()
	if err != nil {
		return nil, err
	}
	size := fmt.Sprintf("%dx%d", f.Width, f.Height)
	const numbers = 3 // the first of the descriptors that a program gets besides the usual ones
	cmd := exec.CommandContext(ctx, program, "-v", "error", "-nostdin",
		"-threads", decoderThreads, "-flags", "low_delay", "-max_pixels", strconv.Itoa(maxPixels),
		"-probesize", "32", "-analyzeduration", "0", "-fpsprobesize", "0", "-f", "ivf", "-c:v", "h264", "-i", "pipe:0",
		"-map", "0:v:0", "-fps_mode", "passthrough", "-copyts", "-enc_time_base", "-1",
		// Only frames that have some note are printed.
		"-vf", "metadata=mode=add:key=n:value=1,metadata=mode=print:direct=1:file=pipe\\\\:"+strconv.Itoa(numbers),
		"-threads", "1", "-s", size, "-pix_fmt", "nv12", "-f", "rawvideo", "pipe:1")
	d = &decoder{cmd: cmd}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // ffmpeg has its own
		}
		if err != nil {
			d.shut()
		}
	}()
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			theirs, d.close = append(theirs, w), append(d.close, r)
		}
		return r, w, err
	}
	var out, lines *os.File
	if out, cmd.Stdout, err = file(pipe()); err != nil {
		return nil, err
	}
	if d.words, cmd.Stderr, err = file(pipe()); err != nil {
		return nil, err
	}
	var extra *os.File
	if lines, extra, err = pipe(); err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{extra}
	if d.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err = cmd.Start(); err != nil {
		return nil, fmt.Errorf("ffmpeg: %w", err)
	}
	d.in, d.numbers, d.pictures = bufio.NewWriterSize(d.stdin, 1<<16), bufio.NewReaderSize(lines, 1<<12), out
	head := append([]byte("DKIF\x00\x00\x20\x00H264"), make([]byte, 20)...)
	binary.LittleEndian.PutUint16(head[12:], uint16(f.Width))
	binary.LittleEndian.PutUint16(head[14:], uint16(f.Height))
	binary.LittleEndian.PutUint32(head[16:], 1000) // the unit of the stamps, which are numbers
	binary.LittleEndian.PutUint32(head[20:], 1)
	_, err = d.in.Write(head)
	return d, err
}

// file is for commands, whose files are interfaces.
func file(r, w *os.File, err error) (*os.File, io.Writer, error) { return r, w, err }

// write gives ffmpeg a packet.
func (d *decoder) write(number uint64, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(n)), number)
	for _, p := range append([][]byte{head}, parts...) {
		if _, err := d.in.Write(p); err != nil {
			return err
		}
	}
	return d.in.Flush()
}

// read waits for the next picture, and returns the number of its packet. complaint is what ffmpeg said before it.
func (d *decoder) read(pix []byte) (number uint64, complaint string, err error) {
	for {
		line, err := d.numbers.ReadSlice('\n')
		if err != nil {
			return 0, "", d.ended(err)
		}
		_, rest, ok := bytes.Cut(line, []byte("pts:"))
		if !ok {
			continue // the note
		}
		word, _, _ := bytes.Cut(rest, []byte(" "))
		if number, err = strconv.ParseUint(string(word), 10, 63); err != nil {
			return 0, "", fmt.Errorf("ffmpeg numbers a picture %q", word)
		}
		break
	}
	if _, err := io.ReadFull(d.pictures, pix); err != nil {
		return 0, "", d.ended(err)
	}
	return number, d.complaint(), nil
}

// complaint is what ffmpeg has said and was not read yet.
func (d *decoder) complaint() string {
	raw, err := d.words.SyscallConn()
	if err != nil {
		return ""
	}
	var b [1 << 10]byte
	n := 0
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), b[:]) // it does not wait
		return true
	})
	text := strings.Join(strings.Fields(string(b[:max(n, 0)])), " ")
	if d.said == "" {
		d.said = text
	}
	return text
}

// ended is why ffmpeg has ended.
func (d *decoder) ended(err error) error {
	words := d.complaint()
	if words == "" {
		words = d.said
	}
	if words == "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		words = "it ended"
	}
	if words != "" {
		err = errors.New(lab.Clip(words, 300))
	}
	return fmt.Errorf("the decoder: %w", err)
}

// shut ends ffmpeg.
func (d *decoder) shut() {
	if d.stdin != nil {
		_ = d.stdin.Close()
	}
	if d.cmd.Process != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait() // it was ended by us, or read has told its error
	}
	for _, c := range d.close {
		_ = c.Close()
	}
}

// decodeLimit bounds how long a picture may take to be decoded.
const decodeLimit = 5 * time.Second

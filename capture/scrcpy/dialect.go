package scrcpy

import (
	"fmt"

	"eidetic/internal/base/scrcpyserver"
)

// dialect is the protocol of a version's video.
type dialect struct {
	major int
	meta  int // bytes of what is said of the phone: its name, in 1.x its size, too
	codec int // bytes of the codec's head
	// sessions: packets that say the size, and flags one bit lower.
	sessions bool
}

// dialectOf returns the protocol of a server's video.
func dialectOf(f scrcpyserver.File) dialect {
	const name, size = 64, 4
	d := dialect{major: f.Major, meta: name}
	switch f.Major {
	case 1:
		d.meta += size
	case 2, 3:
		d.codec = 12
	default:
		d.codec, d.sessions = 4, true
	}
	return d
}

// options are the words of a start that films.
func (d dialect) options(o Options) (words []string) {
	words = []string{"control=false", "downsize_on_error=false"}
	// MediaFormat's BT.709 and limited range: an encoder that is asked for no colours may not say which it makes.
	const colours = "codec_options=color-standard=1,color-range=2"
	before := ""
	if d.major > 1 {
		words = append(words, "audio=false", "video_codec=h264")
		before = "video_"
	}
	words = append(words, fmt.Sprintf("%sbit_rate=%d", before, bitRate), before+colours)
	if o.MaxSize > 0 {
		words = append(words, fmt.Sprintf("max_size=%d", o.MaxSize))
	}
	if o.MaxRate > 0 {
		words = append(words, fmt.Sprintf("max_fps=%d", o.MaxRate))
	}
	return words
}

package samplesite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// Suite is the URL below which the pages of the suites are, whose knobs, in the query, are the right answers of what is
// measured on them (docs/suite.md).
const Suite = "https://" + WWW + "/suite/"

// suite serves them. What they load besides is made for each request, and the same for the same query, but for the videos:
// 2 s of a bar that moves by 7 pixels from picture to picture, in VP8, which browsers decode everywhere. With RATE 24, 30 or 60
// ffmpeg 5.1.9 has made video-RATE.webm:
//
//	bar="geq=lum='if(between(X,mod(N*7,440),mod(N*7,440)+39),62,205)':cb=128:cr=128"
//	ffmpeg -f lavfi -i "color=c=0xdddddd:s=480x320:r=RATE:d=2,format=yuv420p,$bar" -c:v libvpx -b:v 200k -g 300 \
//		-auto-alt-ref 0 -threads 1 -fflags +bitexact -flags +bitexact video-RATE.webm
func (s *Site) suite(mux *http.ServeMux) {
	mux.HandleFunc("GET /suite/{name}", pagesOf("suite"))
	made := func(name, kind string, write func(b *bytes.Buffer, r *http.Request)) {
		mux.HandleFunc("GET /suite/"+name, func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			write(&b, r)
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "no-cache")
			_, _ = w.Write(b.Bytes()) // an error means that the client has disconnected
		})
	}
	made("picture.svg", "image/svg+xml", func(b *bytes.Buffer, r *http.Request) {
		n := asked(r, "n", 0, 10_000)
		dice := rand.New(rand.NewPCG(uint64(n), 1))
		fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 120" preserveAspectRatio="none"><rect width="320" height="120" fill="hsl(%d 45%% 60%%)"/>`, n*47%360)
		for range 40 {
			fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="%d" fill="hsl(%d 50%% 45%%)"/>`, dice.IntN(320), dice.IntN(120), 4+dice.IntN(24), dice.IntN(360))
		}
		b.WriteString(`</svg>`)
	})
	made("series.json", "application/json", func(b *bytes.Buffer, r *http.Request) {
		dice := rand.New(rand.NewPCG(uint64(asked(r, "n", 0, 10_000)), 2))
		b.WriteByte('[')
		v := 50.0
		for i := range asked(r, "rows", 2000, 100_000) {
			if i > 0 {
				b.WriteByte(',')
			}
			v = min(max(v+dice.Float64()*6-3, 0), 100)
			fmt.Fprintf(b, "%.2f", v)
		}
		b.WriteByte(']')
	})
	made("bundle.js", "text/javascript; charset=utf-8", func(b *bytes.Buffer, r *http.Request) {
		b.WriteString("const parts = [];\n")
		size := asked(r, "kb", 500, 8000) << 10
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(b, "parts.push(function part%d(n) { let sum = %d; for (let i = 0; i < n; i++) sum = (sum * 31 + i) %% %d; return sum; });\n", i, i, 1000+i)
		}
		b.WriteString("const bundle = (n) => parts.reduce((sum, f) => (sum + f(n + 20)) % 1000, 0);\n")
	})
}

// asked is a number of the query within bounds.
func asked(r *http.Request, name string, usual, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return usual
	}
	return min(max(n, 0), most)
}

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"strings"
)

// The screen of both.
const (
	width  = 1280
	height = 720
)

// pages are what is loaded: a page of pictures, one that a script draws, and a long document.
var pages = []struct{ name, html string }{
	{"pictures", "<!doctype html><title>Pictures</title><link rel=stylesheet href=/style.css><h1>Pictures</h1><div>" +
		strings.Repeat("<img width=280 height=140 src=/picture.png?%d>", 16) + "</div><script src=/work.js></script>"},
	{"script", "<!doctype html><title>Script</title><link rel=stylesheet href=/style.css><h1>Rows</h1><table id=rows></table><script src=/rows.js></script>"},
	{"document", "<!doctype html><title>Document</title><link rel=stylesheet href=/style.css><h1>Document</h1>" +
		strings.Repeat("<h2>A heading</h2><p>"+strings.Repeat("Some words of a paragraph that is as long as others are. ", 12)+"</p>", 300) +
		"<img width=280 height=140 src=/picture.png>"},
}

// serve serves the pages on loopback, until end is called.
func serve() (origin string, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	text := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	for _, page := range pages {
		body := page.html
		for i := 0; strings.Contains(body, "%d"); i++ {
			body = strings.Replace(body, "%d", fmt.Sprint(i), 1)
		}
		text("/"+page.name, "text/html; charset=utf-8", body)
	}
	text("/style.css", "text/css", "body{font:16px/1.5 sans-serif;margin:24px}img{margin:4px}td{border:1px solid #ccc;padding:4px 9px}")
	text("/work.js", "text/javascript", "let sum=0;for(let i=0;i<4e6;i++)sum+=Math.sqrt(i);document.title+=' '+Math.round(sum)")
	text("/rows.json", "application/json", "["+strings.TrimSuffix(strings.Repeat(`["a name","a value",17],`, 1500), ",")+"]")
	text("/rows.js", "text/javascript", `fetch('/rows.json').then(r=>r.json()).then(list=>{
for(const row of list){const tr=document.createElement('tr');
for(const cell of row)tr.append(Object.assign(document.createElement('td'),{textContent:cell}));
document.getElementById('rows').append(tr)}})`)
	picture := draw()
	mux.HandleFunc("/picture.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture)
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

func draw() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 280, 140))
	for y := range 140 {
		for x := range 280 {
			m.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(x * y), 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, m) // a buffer takes everything
	return b.Bytes()
}

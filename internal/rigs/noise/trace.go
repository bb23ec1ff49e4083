package noise

import (
	"encoding/json"
	"strings"

	"eidetic/internal/lab"
)

// Event is one of a trace in Chrome's Trace Event format. Its times are in µs of
// CLOCK_MONOTONIC, the clock of everything else.
type Event struct {
	Name string          `json:"name"`
	Cat  string          `json:"cat"`
	Ph   string          `json:"ph"`
	TS   float64         `json:"ts"`
	Dur  float64         `json:"dur,omitempty"`
	PID  int             `json:"pid"`
	TID  int             `json:"tid"`
	Args json.RawMessage `json:"args,omitempty"`
}

// details are the arguments that are looked at.
type details struct {
	Data struct {
		RequestID   string `json:"requestId"`
		URL         string `json:"url"`
		DocumentURL string `json:"documentLoaderURL"`
	} `json:"data"`
}

// Marks of the browser.
const (
	markNavigation  = "browser: navigation begins"
	markSend        = "browser: page requested"
	markResponse    = "browser: page's header came"
	markStyleAsked  = "browser: first style sheet requested"
	markStyleDone   = "browser: last style sheet came"
	markScript      = "browser: script behind the style sheets runs"
	markScriptEnd   = "browser: that script ends"
	markFirstPaint  = "browser: first paint"
	markFirstDrawn  = "browser: first frame drawn after it"
	workParse       = "parsing"
	workLayout      = "style and layout"
	workPaint       = "paint and commit"
	workRaster      = "raster"
	workDecode      = "decoding pictures"
	workCollections = "garbage collection"
)

// AddTrace adds what the browser's trace says of a load of the page that began at start.
func (l *Load) AddTrace(events []Event, start lab.Time, page string) {
	at := func(ts float64) float64 { return ts/1e3 - float64(start)/1e6 }
	renderer := 0
	for _, e := range events {
		var d details
		if e.Name == "navigationStart" && json.Unmarshal(e.Args, &d) == nil && d.Data.DocumentURL == page {
			renderer = e.PID
			l.Marks[markNavigation] = at(e.TS)
		}
	}
	if renderer == 0 {
		return
	}
	first := func(name string, when float64) {
		if old, known := l.Marks[name]; !known || when < old {
			l.Marks[name] = when
		}
	}
	styles := map[string]bool{} // requests
	document := ""
	for _, e := range events {
		if e.PID != renderer {
			continue
		}
		var d details
		if len(e.Args) > 0 && json.Unmarshal(e.Args, &d) != nil {
			continue
		}
		when := at(e.TS)
		switch e.Name {
		case "ResourceSendRequest":
			switch {
			case d.Data.URL == page:
				document = d.Data.RequestID
				first(markSend, when)
			case strings.HasSuffix(d.Data.URL, ".css"):
				styles[d.Data.RequestID] = true
				first(markStyleAsked, when)
			}
		case "ResourceReceiveResponse":
			if d.Data.RequestID == document {
				first(markResponse, when)
			}
		case "ResourceFinish":
			if styles[d.Data.RequestID] {
				l.Marks[markStyleDone] = max(l.Marks[markStyleDone], when)
			}
		case "firstPaint":
			first(markFirstPaint, when)
		}
	}
	l.addWork(events, renderer, page, at)
}

// addWork sums up what kept the renderer and the compositor busy between the last style
// sheet and the first change on the screen, and finds the script and the frame between them.
func (l *Load) addWork(events []Event, renderer int, page string, at func(float64) float64) {
	from, known := l.Marks[markStyleDone]
	until, seen := l.Marks[markSeen]
	if !known || !seen {
		return
	}
	kinds := map[string]string{
		"ParseHTML": workParse, "UpdateLayoutTree": workLayout, "Layout": workLayout, "PrePaint": workPaint, "Paint": workPaint,
		"Layerize": workPaint, "Commit": workPaint, "RasterTask": workRaster, "Decode Image": workDecode,
		"MinorGC": workCollections, "MajorGC": workCollections, "V8.GCScavenger": workCollections,
	}
	for _, kind := range kinds {
		l.Work[kind] += 0
	}
	for _, e := range events {
		when := at(e.TS)
		if when+e.Dur/1e3 < from || when > until {
			continue
		}
		if kind := kinds[e.Name]; kind != "" && e.Ph == "X" && e.PID == renderer {
			l.Work[kind] += e.Dur / 1e3
		}
		var d details
		switch e.Name {
		case "EvaluateScript":
			if _, known := l.Marks[markScript]; !known && e.PID == renderer && json.Unmarshal(e.Args, &d) == nil && d.Data.URL == page {
				l.Marks[markScript], l.Marks[markScriptEnd] = when, when+e.Dur/1e3
			}
		case "Display::DrawAndSwap":
			if paint, painted := l.Marks[markFirstPaint]; painted && when >= paint-frame {
				if _, known := l.Marks[markFirstDrawn]; !known {
					l.Marks[markFirstDrawn] = when + e.Dur/1e3
				}
			}
		}
	}
}

// frame is the screen's period in ms.
const frame = 1000.0 / 60

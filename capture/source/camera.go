package source

import (
	"context"
	"maps"

	"eidetic/capture"
	"eidetic/capture/camera"
	"eidetic/capture/v4l2"
)

// openCamera opens a camera that looks at a screen. What a camera does by itself moves colours and
// brightness while it films, so it is switched off, unless the caller sets it.
func openCamera(ctx context.Context, path string, o Options) (capture.Source, error) {
	list, err := v4l2.List(path)
	if err != nil {
		return nil, err
	}
	set := map[string]int{}
	for _, g := range list {
		for _, c := range g.Controls {
			if value, is := automatic()[c.Name]; is && !c.ReadOnly {
				set[c.Name] = value
			}
		}
	}
	maps.Copy(set, o.Controls)
	from, err := v4l2.Open(v4l2.Options{Path: path, Format: o.Format, Controls: set})
	if err != nil {
		return nil, err
	}
	return opened(camera.Open(ctx, from, camera.Options{}))
}

// automatic are the controls of the UVC driver by which a camera adjusts itself, with the value
// that makes it stop; the driver's names changed with Linux 6.0.
func automatic() map[string]int {
	return map[string]int{
		"Exposure, Auto": 1, "Auto Exposure": 1, // manual mode
		"Exposure, Auto Priority": 0, "Exposure, Dynamic Framerate": 0,
		"White Balance Temperature, Auto": 0, "White Balance, Automatic": 0, "White Balance, Auto & Preset": 0,
		"Focus, Auto": 0, "Focus, Automatic Continuous": 0, "Gain, Automatic": 0,
	}
}

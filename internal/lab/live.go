package lab

import "image"

// LiveUpdate is what a live view of a device's screen shows newly: parts that replace those of the picture before.
type LiveUpdate struct {
	Size  image.Point // of the picture
	Parts []LivePart
	// Changes are when the screen changed since the update before, the newest ones; none where that is not known: of a
	// film, and of pictures that the grabber compresses, which differ while the screen stands still.
	Changes []Time
	Run     bool // of the film of a run
}

// LivePart is a picture in its place.
type LivePart struct {
	Area  image.Rectangle
	Type  string // of the bytes: image/png, which is exact, or image/jpeg
	Bytes []byte
}

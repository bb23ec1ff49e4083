package lab

import "image"

// LiveUpdate is what is new on a device's screen: a move within the picture before, and then parts that are drawn over it.
type LiveUpdate struct {
	Size  image.Point // of the picture
	Move  *Move       // nil: nothing was scrolled
	Parts []LivePart
	Taken Time // when the picture was taken; 0 of a film
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

package lab

import "image/color"

// The two full-screen pages of Eideticker's specification, by whose colours a trial is
// recognised on the screen.

// SyncGreen returns the colour of the page that marks the content area and the start.
func SyncGreen() color.RGBA { return color.RGBA{G: 255, A: 255} }

// SyncRed returns the colour of the page that ends a trial.
func SyncRed() color.RGBA { return color.RGBA{R: 255, A: 255} }

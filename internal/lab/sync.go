package lab

import "image/color"

// The two full-screen pages of Eideticker's specification, which a trial is
// recognised by on the screen.

// SyncGreen returns the colour of the page that fixes content area and start.
func SyncGreen() color.RGBA { return color.RGBA{G: 255, A: 255} }

// SyncRed returns the colour of the page that ends a trial.
func SyncRed() color.RGBA { return color.RGBA{R: 255, A: 255} }

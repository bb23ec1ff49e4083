package capture

import "eidetic/internal/lab"

// IsBlue says whether a picture is one blue.
func IsBlue(f lab.Format, pix []byte) bool { return isBlue(f, pix) }

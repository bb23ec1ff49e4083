package member

// processDir is the variable that makes the test binary a box with its files in that folder.
const processDir = "FLEET_BOX_DIR"

func boxProcess(dir string) error { return nil }

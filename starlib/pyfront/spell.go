package pyfront

import "github.com/mscclsh/mscclsh/starlib"

// nearest is the candidate that name was most likely meant to be, or "".
func nearest(name string, candidates []string) string { return starlib.Nearest(name, candidates) }

// Package tutorials holds the lessons: scripts divided into cells, numbered in
// the order in which they are meant to be read, and the programs that some of them
// take to pieces. Beside each lesson NAME.star stands NAME.out, what its cells
// print, which the command's tests compare.
//
// Only file text crosses this package's border. It imports nothing of this
// module; dividing a lesson into cells is internal/notebook's business, and running
// them the command's.
package tutorials

import (
	"embed"
	"io/fs"
	"strings"
)

// FS holds NAME.star for every name that Names lists, and the files that lessons
// load as "@tutorials/FILE".
//
//go:embed *.star *.xml *.txt
var FS embed.FS

// Names lists the lessons in their order, without ".star". Each begins with its
// number, of two digits.
func Names() []string {
	files, err := fs.Glob(FS, "*.star") // sorted; fails only on a bad pattern
	if err != nil {
		return nil
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".star")
	}
	return files
}

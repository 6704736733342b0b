// Package algorithms holds the library of collective algorithms as scripts, one
// a file, and hands them out embedded. Each script's docstring begins with a
// line that sums it up, then names its source and says what it costs: Steps is
// the number of messages on the longest chain (the alpha term), Bytes what is
// sent (the beta term), with n ranks, or N nodes of G GPUs, and S bytes as
// nccl-tests counts them (the larger of input and output). Scripts whose name
// begins with "onesided_" put and signal, and say for which sizes they are; all
// others route chunks.
//
// Only file text crosses this package's border. It imports nothing of this
// module; running a script is starlib's business.
package algorithms

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// DefaultTable is the name of a file that is no algorithm: the source of the table
// of algorithms that the NCCL library comes with.
const DefaultTable = "default_table"

// OneSidedTable is another such file: a table of the one-sided algorithms alone.
const OneSidedTable = "one_sided_table"

// FS holds NAME.star for every name that Names lists, and both tables. It is what scripts
// load as "@algorithms/NAME.star".
//
//go:embed *.star
var FS embed.FS

// oneSided begins the names of the scripts that put and signal.
const oneSided = "onesided_"

// ChunkRouting lists those of Names that route chunks.
func ChunkRouting() []string {
	return slices.DeleteFunc(Names(), func(n string) bool { return strings.HasPrefix(n, oneSided) })
}

// OneSided lists those of Names that put and signal.
func OneSided() []string {
	return slices.DeleteFunc(Names(), func(n string) bool { return !strings.HasPrefix(n, oneSided) })
}

// Names lists the algorithms in ascending order, without ".star".
func Names() []string {
	files, err := fs.Glob(FS, "*.star") // sorted; fails only on a bad pattern
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		if name := strings.TrimSuffix(f, ".star"); name != DefaultTable && name != OneSidedTable {
			names = append(names, name)
		}
	}
	return names
}

// Doc is the docstring of the algorithm with that name, as written.
func Doc(name string) (string, error) {
	text, err := FS.ReadFile(name + ".star")
	if err != nil {
		return "", fmt.Errorf("reading algorithm %q: no such algorithm", name)
	}
	_, rest, _ := strings.Cut(string(text), `"""`)
	doc, _, _ := strings.Cut(rest, `"""`)
	return strings.TrimSpace(doc), nil
}

// Summary is the first line of Doc.
func Summary(name string) (string, error) {
	doc, err := Doc(name)
	line, _, _ := strings.Cut(doc, "\n")
	return line, err
}

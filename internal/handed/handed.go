// Package handed finds real files of others, which tests of several packages judge and
// run if they lie beside the module. Only tests import it.
package handed

import (
	"os"
	"path/filepath"
	"testing"
)

// Plans is the folder of MSCCL++ plans with their index.tsv; without one the test is
// skipped.
func Plans(t testing.TB) string { return folder(t, "plans") }

// XML is that of MSCCL XML files.
func XML(t testing.TB) string { return folder(t, "xml") }

// folder is where NAME/index.tsv lies: in the folder that MSCCLSH_DATA names, or in a
// shared/data beside a folder above the test's.
func folder(t testing.TB, name string) string {
	t.Helper()
	folders := []string{os.Getenv("MSCCLSH_DATA")}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folders = append(folders, filepath.Join(dir, "shared", "data"))
	}
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(f, name, "index.tsv")); f != "" && err == nil {
			return filepath.Join(f, name)
		}
	}
	t.Skipf("no folder with %s/index.tsv: set MSCCLSH_DATA", name)
	return ""
}

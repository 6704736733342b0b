package compiler_test

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// TestFilesExport: the programs of real MSCCL files that pass the check become
// plans that pass it too.
func TestFilesExport(t *testing.T) {
	root, exported := handed.XML(t), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".xml" {
			return err
		}
		data, err := os.Open(path)
		if err != nil {
			return err
		}
		defer data.Close()
		in, err := mscclxml.Read(data, mscclxml.ReadOptions{File: path})
		if err != nil {
			return nil // judged by the tests of the reader
		}
		for _, p := range in.Programs {
			r, err := checker.Check(context.Background(), p, checker.Options{})
			if err != nil || !r.OK {
				continue
			}
			q, notes, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{})
			if err == nil {
				err = compiler.RunLaunches(q, rand.New(rand.NewPCG(1, 4)), 3)
			}
			if err == nil {
				err = checkAndRun(q, forOneSize(notes))
			}
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
			exported++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d programs exported", exported)
}

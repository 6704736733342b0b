package runtime

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// npyFile is a .npy file as numpy.save writes it (format 1.0, header padded to
// 64 bytes), put together by hand.
func npyFile(header string, data ...byte) []byte {
	header += strings.Repeat(" ", (64-(10+len(header)+1)%64)%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

func write(t *testing.T, name string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReadInputs(t *testing.T) {
	dir := t.TempDir()
	allreduce := ir.NewCollective(ir.AllReduce, 2, 1, true)
	broadcast := rooted(ir.Broadcast, 2, 1, 1, ir.None)
	write(t, filepath.Join(dir, "raw0"), []byte{1, 2, 3, 4})
	write(t, filepath.Join(dir, "raw1"), []byte{5, 6, 7, 8})
	write(t, filepath.Join(dir, "root1.npy"), npyFile("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", 1, 0, 2, 0))
	write(t, filepath.Join(dir, "both.npy"), npyFile("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1, 2), }", 1, 2, 3, 4, 5, 6, 7, 8))
	write(t, filepath.Join(dir, "bytes1.npy"), npyFile("{'descr': '<u1', 'fortran_order': False, 'shape': (2,), }", 1, 2))
	first, second := []byte{1, 2, 3, 4}, []byte{5, 6, 7, 8}
	for _, c := range []struct {
		pattern string
		coll    *ir.Collective
		d       DType
		want    [2][]byte
	}{
		{"raw{rank}", allreduce, FP32, [2][]byte{first, second}},
		{"both.npy", allreduce, FP16, [2][]byte{first, second}},
		{"raw0", allreduce, BF16, [2][]byte{{1, 2}, {3, 4}}},
		{"bytes{rank}.npy", broadcast, Uint8, [2][]byte{nil, {1, 2}}}, // rank 0 has no input and no file
	} {
		got, err := ReadInputs(filepath.Join(dir, c.pattern), c.coll, c.d)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for r, want := range c.want {
			if !bytes.Equal(got[r], want) {
				t.Errorf("%s rank %d: got %v, want %v", c.pattern, r, got[r], want)
			}
		}
	}
	for _, c := range []struct {
		pattern string
		d       DType
		want    string
	}{
		{"none{rank}", FP32, "none0: no such file or directory"},
		{"raw{rank}", FP64, "raw0: 4 bytes are no whole number of fp64 elements of 8 bytes"},
		{"raw0", FP32, "raw0: 4 bytes can't be divided among 2 ranks in elements of 4 bytes"},
		{"both.npy", FP32, `both.npy: the file holds elements of type "<f2", want "<f4" for fp32`},
		{"both.npy", BF16, "both.npy: .npy has no type for bf16: use a raw file"},
		{"root1.npy", FP16, `root1.npy: the file holds elements of type "<i2", want "<f2" for fp16`},
	} {
		_, err := ReadInputs(filepath.Join(dir, c.pattern), allreduce, c.d)
		if want := filepath.Join(dir, c.want); err == nil || err.Error() != want {
			t.Errorf("%s as %v: got %v, want %s", c.pattern, c.d, err, want)
		}
	}
}

func TestNpyHeaderRefuses(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want string
	}{
		{[]byte("NUMPY"), "no .npy file"},
		{[]byte("\x93NUMPY\x09\x00\x01\x00 "), ".npy format 9 is not known"},
		{[]byte("\x93NUMPY\x01\x00\xff\x00{}"), "reading the .npy header: unexpected EOF"},
		{[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), "4294967295 bytes, more than 1048576"},
		{npyFile("{}"), "lacks descr"},
		{npyFile("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), `type ">f4", want "<f4"`},
		{npyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"), "Fortran order"},
		{npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3), }"), "too large"},
		{npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2,), }"), "not valid"},
	} {
		_, err := readNpyHeader(bytes.NewReader(c.file), FP32)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.file, err, c.want)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.npy"), npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 0, 0, 0, 0))
	_, _, err := readTensor(filepath.Join(dir, "x.npy"), FP32)
	if want := "shape [3] needs 12 bytes of data, the file has 4"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	write(t, filepath.Join(dir, "y.npy"), npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0, 0))
	_, err = readStacked(filepath.Join(dir, "y.npy"), 2, FP32)
	if want := "the first axis of shape [1] must be the 2 ranks"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWriteOutputs(t *testing.T) {
	dir := t.TempDir()
	outs := [][]byte{{1, 0, 2, 0}, {3, 0, 4, 0}}
	if err := WriteOutputs(filepath.Join(dir, "all.npy"), FP16, outs); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "all.npy"))
	if err != nil {
		t.Fatal(err)
	}
	want := npyFile("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2,), }", 1, 0, 2, 0, 3, 0, 4, 0)
	if !bytes.Equal(got, want) || (len(got)-8)%64 != 0 {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if err := WriteOutputs(filepath.Join(dir, "r{rank}.bin"), BF16, [][]byte{nil, {9, 9}}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "r1.bin")); err != nil || !bytes.Equal(b, []byte{9, 9}) {
		t.Errorf("got %v, %v", b, err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 2 { // nothing for rank 0
		t.Errorf("got %v, %v, want 2 files", names, err)
	}
}

func TestWriteOutputsLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		pattern string
		d       DType
		outs    [][]byte
		want    string
	}{
		{"a.npy", BF16, [][]byte{{1, 2}}, "a.npy: .npy has no type for bf16: use a raw file"},
		{"b.bin", FP16, [][]byte{{1, 2}, nil},
			"b.bin: outputs of rank 0 (2 bytes) and rank 1 (0 bytes) differ in size and can't share a file\n    put {rank} into the name to write one file a rank"},
		{"{rank}/c.bin", FP16, [][]byte{{1, 2}, {3, 4}}, "1/c.bin: creating it: "},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "0"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := WriteOutputs(filepath.Join(dir, c.pattern), c.d, c.outs)
		if want := filepath.Join(dir, c.want); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, "/")) {
			t.Errorf("got %v, want %s", err, want)
		}
		for _, glob := range []string{"*", "0/*", ".*", "0/.*"} {
			names, err := filepath.Glob(filepath.Join(dir, glob))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if filepath.Base(n) != "0" {
					t.Errorf("%s: %s was left behind", c.pattern, n)
				}
			}
		}
	}
}

func FuzzNpyHeader(f *testing.F) {
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"))
	f.Add(npyFile("{'shape': (), 'fortran_order': False, 'descr': '<f4'}"))
	f.Add([]byte("\x93NUMPY\x02\x00\x03\x00\x00\x00{ }"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readNpyHeader(bytes.NewReader(b), FP32)
		if err != nil {
			return
		}
		n := int64(1)
		for _, k := range h.shape {
			n *= k
		}
		if n != h.elems || h.elems < 0 {
			t.Errorf("shape %v has %d elements", h.shape, h.elems)
		}
	})
}

// What is no regular file is neither waited for nor renamed over.
func TestSpecialFilesAreLeftAlone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("this file system has no pipes: %v", err)
	}
	const refused = "not a regular file"
	if _, err := ReadInputs(pipe, ir.NewCollective(ir.AllReduce, 2, 1, true), FP32); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("reading: got %v, want %q", err, refused)
	}
	if err := WriteOutputs(pipe, FP32, [][]byte{make([]byte, 4), make([]byte, 4)}); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("writing: got %v, want %q", err, refused)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is gone: %v, %v", info, err)
	}
}

// A link stays a link; what it points to is written.
func TestOutputFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutputs(link, FP32, [][]byte{{1, 2, 3, 4}}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, []byte{1, 2, 3, 4}) {
		t.Errorf("got %v, %v, want the four bytes", b, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

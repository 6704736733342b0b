package runtime

import (
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

const npyMagic = "\x93NUMPY"

// maxNpyHeader bounds what is read before anything is known about a file.
const maxNpyHeader = 1 << 20

var (
	npyDescr   = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	npyFortran = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9,\sL]*)\)`)
)

// npyHeader is what a .npy file says about its data.
type npyHeader struct {
	shape []int64
	elems int64 // product of shape
}

// readNpyHeader reads the header of a .npy file (format 1 to 3) and leaves r at
// the data, which must be of type d in C order.
func readNpyHeader(r io.Reader, d DType) (*npyHeader, error) {
	want := dtypes[d].npy
	if want == "" {
		return nil, fmt.Errorf(".npy has no type for %v: use a raw file", d)
	}
	var pre [8]byte
	if _, err := io.ReadFull(r, pre[:]); err != nil || string(pre[:6]) != npyMagic {
		return nil, fmt.Errorf("no .npy file: it does not begin with %q", npyMagic)
	}
	var length uint32
	switch pre[6] {
	case 1:
		var n uint16
		if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
			return nil, fmt.Errorf("reading the .npy header: %w", err)
		}
		length = uint32(n)
	case 2, 3:
		if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
			return nil, fmt.Errorf("reading the .npy header: %w", err)
		}
	default:
		return nil, fmt.Errorf(".npy format %d is not known", pre[6])
	}
	if length > maxNpyHeader {
		return nil, fmt.Errorf("the .npy header has %d bytes, more than %d", length, maxNpyHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("reading the .npy header: %w", err)
	}
	descr, fortran, shape := npyDescr.FindSubmatch(text), npyFortran.FindSubmatch(text), npyShape.FindSubmatch(text)
	switch {
	case descr == nil || fortran == nil || shape == nil:
		return nil, fmt.Errorf("the .npy header lacks descr, fortran_order or shape")
	case !sameDescr(string(descr[1]), want):
		return nil, fmt.Errorf("the file holds elements of type %q, want %q for %v", descr[1], want, d)
	case string(fortran[1]) == "True":
		return nil, fmt.Errorf("the file is in Fortran order: save it in C order")
	}
	return parseShape(string(shape[1]), d)
}

// sameDescr ignores the byte order of one-byte types.
func sameDescr(got, want string) bool {
	return got == want || want[0] == '|' && len(got) == 3 && got[1:] == want[1:]
}

func parseShape(s string, d DType) (*npyHeader, error) {
	h := &npyHeader{elems: 1}
	for f := range strings.SplitSeq(s, ",") {
		f = strings.TrimSuffix(strings.TrimSpace(f), "L")
		if f == "" {
			continue
		}
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the .npy shape (%s) is not valid: %w", s, err)
		}
		if n > 0 && h.elems > (1<<62)/int64(d.Size())/n {
			return nil, fmt.Errorf("the .npy shape (%s) is too large", s)
		}
		h.shape = append(h.shape, n)
		h.elems *= n
	}
	return h, nil
}

// npyPreamble is everything before the data of a .npy file of format 1.0, padded
// to a multiple of 64 bytes as the format asks.
func npyPreamble(d DType, shape ...int64) ([]byte, error) {
	if dtypes[d].npy == "" {
		return nil, fmt.Errorf(".npy has no type for %v: use a raw file", d)
	}
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = strconv.FormatInt(n, 10)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", dtypes[d].npy, strings.Join(dims, ", "))
	const fixed = len(npyMagic) + 2 + 2
	pad := 63 - (fixed+len(text))%64
	text += strings.Repeat(" ", pad) + "\n"
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...), nil
}

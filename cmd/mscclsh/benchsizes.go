package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// benchSizes is what bench measures when nothing is said: nccl-tests' usual range.
const benchSizes = "1KiB..64MiB"

// maxBenchSizes is the longest list of sizes, so that a slip isn't a year's work.
const maxBenchSizes = 1000

// parseSizes reads a list of sizes: 4KiB,1MiB or 1KiB..1GiB for the powers of two
// between, 1KiB..1GiB:4 for every second of them. The result ascends and holds
// nothing twice.
func parseSizes(text string) ([]int64, error) {
	var out []int64
	for part := range strings.SplitSeq(text, ",") {
		from, rest, isRange := strings.Cut(part, "..")
		if !isRange {
			n, err := parseSize(part)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
			continue
		}
		to, factorText, hasFactor := strings.Cut(rest, ":")
		factor := int64(2)
		if hasFactor {
			var err error
			if factor, err = strconv.ParseInt(factorText, 10, 64); err != nil || factor < 2 {
				return nil, fmt.Errorf("size: got factor %q, want a whole number from 2 on, as in 1KiB..1GiB:4", factorText)
			}
		}
		least, err := parseSize(from)
		if err != nil {
			return nil, err
		}
		most, err := parseSize(to)
		if err != nil {
			return nil, err
		}
		if least < 1 || least > most {
			return nil, fmt.Errorf("size: the range %q is empty", part)
		}
		for n := least; ; n *= factor {
			out = append(out, n)
			if n > most/factor || n > math.MaxInt64/factor {
				break
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > maxBenchSizes {
		return nil, fmt.Errorf("size: %q are %d sizes, want at most %d", text, len(out), maxBenchSizes)
	}
	return out, nil
}

// parseDevices reads a list of GPUs: 0,1 or 0-3.
func parseDevices(text string) ([]int32, error) {
	bad := fmt.Errorf("devices: got %q, want numbers of GPUs such as 0,1 or 0-3", text)
	var out []int32
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 8)
		b, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 8)
		if err1 != nil || err2 != nil || a > b {
			return nil, bad
		}
		for n := a; n <= b; n++ {
			if slices.Contains(out, int32(n)) {
				return nil, fmt.Errorf("devices: GPU %d is named twice in %q", n, text)
			}
			out = append(out, int32(n))
		}
	}
	return out, nil
}

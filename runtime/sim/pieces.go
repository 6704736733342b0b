package sim

import (
	"encoding/binary"
	"slices"
)

// Values of parts of a chunk. size is the bytes of a chunk; whole values have no
// parts.

// runsOf is a value as runs.
func (v *values) runsOf(x int32, size int64) []run {
	if x >= 0 {
		return []run{{size, x}}
	}
	return v.mixed[-x-1]
}

// join is the value of runs: neighbors that are alike are one.
func (v *values) join(runs []run) int32 {
	var out []run
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].value == r.value {
			out[n-1].to = r.to
			continue
		}
		out = append(out, r)
	}
	if len(out) == 1 {
		return out[0].value
	}
	key := make([]byte, 0, 12*len(out))
	for _, r := range out {
		key = binary.LittleEndian.AppendUint64(key, uint64(r.to))
		key = binary.LittleEndian.AppendUint32(key, uint32(r.value))
	}
	if x, ok := v.byMixed[string(key)]; ok {
		return x
	}
	v.mixed = append(v.mixed, slices.Clone(out))
	x := -int32(len(v.mixed))
	v.byMixed[string(key)] = x
	return x
}

// merge makes of two values, byte by byte, what f makes of two whole ones.
func (v *values) merge(a, b int32, size int64, f func(a, b int32) int32) int32 {
	ra, rb := v.runsOf(a, size), v.runsOf(b, size)
	var out []run
	for len(ra) > 0 && len(rb) > 0 {
		to := min(ra[0].to, rb[0].to)
		out = append(out, run{to, f(ra[0].value, rb[0].value)})
		if ra[0].to == to {
			ra = ra[1:]
		}
		if rb[0].to == to {
			rb = rb[1:]
		}
	}
	return v.join(out)
}

// addParts is a+b of any two values.
func (v *values) addParts(a, b int32, size int64) int32 {
	if a >= 0 && b >= 0 {
		return v.add(a, b)
	}
	return v.merge(a, b, size, v.add)
}

// copiedParts is what a copy of a value holds.
func (v *values) copiedParts(a int32) int32 {
	if a >= 0 {
		return copied(a)
	}
	runs := slices.Clone(v.mixed[-a-1])
	for i := range runs {
		runs[i].value = copied(runs[i].value)
	}
	return v.join(runs)
}

// replace is old with its bytes from to to as in now.
func (v *values) replace(old, now int32, from, to, size int64) int32 {
	if from == 0 && to == size {
		return now
	}
	var out []run
	keep := func(x int32, from, to int64) { // bytes from to to of x
		at := int64(0)
		for _, r := range v.runsOf(x, size) {
			if low, high := max(at, from), min(r.to, to); low < high {
				out = append(out, run{high, r.value})
			}
			at = r.to
		}
	}
	keep(old, 0, from)
	keep(now, from, to)
	keep(old, to, size)
	return v.join(out)
}

// complete reports whether bytes from to to of a value are nowhere empty.
func (v *values) complete(x int32, from, to, size int64) bool {
	at := int64(0)
	for _, r := range v.runsOf(x, size) {
		if r.value == valueEmpty && at < to && r.to > from {
			return false
		}
		at = r.to
	}
	return true
}

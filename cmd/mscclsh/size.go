package main

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// sizeUnits in bytes. A bare K, M or G is nccl-tests' power of 1024.
var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50, "eib": 1 << 60,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15, "eb": 1e18,
}

// parseSize reads a number of bytes such as 4096, 64MiB, 64M or 1.5GB.
func parseSize(s string) (int64, error) {
	text := strings.ReplaceAll(s, " ", "")
	end := len(text)
	for end > 0 && (text[end-1] < '0' || text[end-1] > '9') {
		end--
	}
	number, unit := text[:end], strings.ToLower(text[end:])
	scale, known := sizeUnits[unit]
	if !known || number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("size: got %q, want a number of bytes such as 4096, 64KiB or 1.5GiB", s)
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("size: got %q, want a number of bytes such as 4096, 64KiB or 1.5GiB", s)
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if !r.IsInt() {
		return 0, fmt.Errorf("size: %q is not a whole number of bytes", s)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("size: %q is more than %d bytes", s, int64(math.MaxInt64))
	}
	return r.Num().Int64(), nil
}

// formatSize is n bytes for people: exact where a binary unit divides it, else
// with three digits.
func formatSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i, scale := 0, int64(1)
	for i+1 < len(units) && n >= scale*1024 {
		i, scale = i+1, scale*1024
	}
	if n%scale == 0 {
		return fmt.Sprintf("%d %s", n/scale, units[i])
	}
	v := float64(n) / float64(scale)
	if v >= 1023.5 && i+1 < len(units) {
		i, v = i+1, v/1024
	}
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, units[i])
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, units[i])
	}
	return fmt.Sprintf("%.0f %s", v, units[i])
}

// exactSize writes a bound, which must not be rounded: in the largest unit that
// divides it.
func exactSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for n > 0 && n%1024 == 0 && i+1 < len(units) {
		i, n = i+1, n/1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}

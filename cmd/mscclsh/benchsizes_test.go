package main

import (
	"slices"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int64
	}{
		{"4096", []int64{4096}},
		{"1KiB..8KiB", []int64{1024, 2048, 4096, 8192}},
		{"1KiB..1MiB:16", []int64{1024, 16384, 262144}},
		{"3..20", []int64{3, 6, 12}},
		{"1MiB,1KiB..2KiB,1KiB", []int64{1024, 2048, 1 << 20}},
		{"0", []int64{0}},
		{"1KiB..1KiB", []int64{1024}},
	} {
		if got, err := parseSizes(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "1..", "..1", "2KiB..1KiB", "0..8", "1..8:1", "1..8:x", "1,,2", "-4"} {
		if got, err := parseSizes(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestParseDevices(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int32
	}{{"0", []int32{0}}, {"1,0", []int32{1, 0}}, {"0-3", []int32{0, 1, 2, 3}}, {"4,0-1", []int32{4, 0, 1}}} {
		if got, err := parseDevices(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "1,1", "0-2,1", "3-1", "-1", "0-", "256"} {
		if got, err := parseDevices(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

package checker

import (
	"testing"
)

// Sizes that are not tried are told: of parts by the dozen, cut in two ways or with packets.
func TestOneSidedSizesLeftOut(t *testing.T) {
	one := demand(t, 1, 2, 2, false)
	for _, c := range []struct {
		flags, text string
		least       int64
		want        string
	}{
		{"", "copy i[0] x1 -> o[0] x1 part 0 of 40", 0, ""},
		{"", "copy i[0] x1 -> o[0] x1 part 0 of 40\nnop\ncopy i[1] x1 -> o[0] x1 part 0 of 3", 0, "warning:undecided"},
		{"", "copy i[0] x1 -> o[0] x1 part 0 of 4\nnop\ncopy i[1] x1 -> o[0] x1 part 0 of 8", 0, ""},
		{"LL double-scratch", "cpkt i[0] x1 -> s[0] x1 packets part 0 of 40", 0, "warning:undecided"},
		{"LL double-scratch", "cpkt i[0] x1 -> s[0] x1 packets part 0 of 16", 0, ""},
		{"LL double-scratch", "cpkt i[0] x1 -> s[0] x1 packets part 0 of 40", 2 * 16 * 40, ""}, // no part is empty
	} {
		p := oneSided(t, one, c.flags, "gpu 0\ntb 0\n"+c.text)
		p.MinBytes = c.least
		if got := codes(check(t, p)); got != c.want {
			t.Errorf("%s, from %d bytes: got %q, want %q", c.text, c.least, got, c.want)
		}
	}
}

// fullUnits by hand: 8 parts of 3 chunks need 3 units each, 5 of 1 need 5.
func TestFullUnits(t *testing.T) {
	one := demand(t, 1, 3, 3, false)
	for _, c := range []struct {
		text string
		want int32
	}{
		{"copy i[0] x3 -> o[0] x3 part 0 of 8", 3},
		{"copy i[0] x3 -> o[0] x3 part 0 of 8\ncopy i[0] x1 -> o[0] x1 part 4 of 5", 5},
		{"copy i[0] x3 -> o[0] x3\nbarrier on 0 of 1", 1},
	} {
		if got := fullUnits(oneSided(t, one, "", "gpu 0\ntb 0\n"+c.text)); got != c.want {
			t.Errorf("%s: %d, want %d", c.text, got, c.want)
		}
	}
}

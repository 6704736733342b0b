package checker

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// What a pipeline takes more than pipelines of as many turns give decides at which sizes
// a program ends, though a few turns show nothing.
func TestOneSidedTurns(t *testing.T) {
	one := demand(t, 1, 1, 1, false, "0 o0 = 0.0")
	taking := sub(sub(pipeline, "semaphores 0", "semaphores 0 3"), "copy i[0]", "sem_acquire on 1\nnop\ncopy i[0]")
	given := sub(sub(taking, "0 3", "0 0"), "tb 1\n", "tb 1\nsem_release on 1\nsem_release on 1\nsem_release on 1\n")
	told := `
gpu 0
channels memory 1
tb 0
pipeline unit 80 chunks 1 {
copy i[0] x1 -> s[0] x1
nop
signal memory on 0
}
gpu 1
channels memory 0
tb 0
pipeline unit 64 chunks 1 {
wait memory on 0
nop
copy i[0] x1 -> o[0] x1
}
`
	for _, c := range []struct {
		name string
		coll *ir.Collective
		text string
		max  int64 // bytes
		want string
		says string
	}{
		{"as many turns", one, pipeline, 0, "", ""},
		// Units of 64 bytes: the fourth turn is that of 208 bytes, 13 times 16.
		{"three turns, then none", one, taking, 0, "warning:leftover deadlock", "a message of 208 bytes never ends"},
		{"three turns are enough", one, taking, 192, "warning:leftover", ""},
		{"one more isn't", one, taking, 208, "warning:leftover deadlock", "a message of 208 bytes never ends"},
		{"given from outside", one, given, 192, "warning:leftover warning:undecided", "not all sizes were tried"},
		{"given from outside, but not always", one, given, 0, "warning:leftover deadlock", "a message of 208 bytes never ends"},
		{"waits of more turns", demand(t, 2, 1, 1, false, "1 o0 = 1.0"), told, 0, "deadlock", "never ends"},
		{"signals of more turns", demand(t, 2, 1, 1, false, "1 o0 = 1.0"), sub(sub(sub(told, "80", "tmp"), "64", "80"), "tmp", "64"), 0, "warning:undecided", "not all sizes were tried"},
	} {
		p := oneSided(t, c.coll, "", c.text)
		p.MaxBytes = c.max
		rep := check(t, p)
		if got := codes(rep); got != c.want {
			t.Errorf("%s: got %q, want %q: %v", c.name, got, c.want, rep.Messages)
		}
		said := c.says == ""
		for _, m := range rep.Messages {
			said = said || strings.Contains(m.Text, c.says)
		}
		if !said {
			t.Errorf("%s: got %v, want that %s", c.name, rep.Messages, c.says)
		}
	}
}

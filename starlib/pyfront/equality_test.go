package pyfront

import (
	"testing"

	"go.starlark.net/syntax"
)

// Starlark compares where both sides are integers whatever the script does, and
// nowhere else.
func TestComparisonsOfIntegers(t *testing.T) {
	for _, c := range []struct {
		name, source   string
		starlark, call int // comparisons of each kind
	}{
		{"variables of ranges", "for i in range(3):\n  for j in range(3):\n    if i != j: print(i == j)", 2, 0},
		{"what is computed of them", "for i in range(3):\n  k = (i + 1) % 3 if i < 2 else -i\n  k //= 2\n  print(k == i, k * 2 != ~i)", 2, 0},
		{"of a function", "def f(n):\n  for i in range(n):\n    print(i == 1, i == n)", 1, 1},
		{"of a comprehension", "print([i == 1 for i in range(3) if i != 2])", 2, 0},
		{"in a keyword's value and an index", "def f(a):\n  pass\nfor i in range(3):\n  f(a = [0, 1][i == 2])", 1, 0},
		{"assigned together", "a = b = 1\nprint(a == b)", 1, 0},
		{"a parameter", "def f(i):\n  for i in range(2): pass\n  print(i == 1)", 0, 1},
		{"a lambda's", "for i in range(2):\n  print((lambda i: i == 1)(True))", 0, 1},
		{"a variable of the scope around", "def f():\n  for i in range(2):\n    def g(): return i == 1\n    print(g())", 0, 1},
		{"a default", "for i in range(2):\n  def f(x = i == 1): return x", 0, 1},
		{"bound to something else, too", "for i in range(2):\n  print(i == 1)\ni = True", 0, 1},
		{"made of something else at second hand", "i = 1\nj = i\nprint(j == 1)\ni = j == 1", 0, 2},
		{"unpacked", "for i, j in [(True, 1)]:\n  print(i == 1)", 0, 1},
		{"a function's name", "i = 1\nprint(i == 1)\ndef i(): pass", 0, 1},
		{"divided", "i = 1\ni /= 1\nprint(i == 1)", 0, 1},
		{"powers", "i = 2\ni **= 2\nprint(i == 4)", 0, 1},
		{"no name of the scope", "print(n == 1)", 0, 1},
		{"and, or, not", "i = 1\nprint((i and 1) == 1, (not i) == 1)", 0, 2},
		{"a range of the script's own", "def range(n): return [True]\nfor i in range(1): print(i == 1)", 0, 1},
		{"or of a module", "from math import pow as range\nfor i in range(1, 1): print(i == 1)", 0, 1},
		{"yielded by something else", "for i in reversed(range(2)): print(i == 1)", 0, 1},
	} {
		f, err := parse("script.py", []byte(c.source+"\n"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		starlark, call := 0, 0
		syntax.Walk(f, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.BinaryExpr:
				if n.Op == syntax.EQL || n.Op == syntax.NEQ {
					starlark++
				}
			case *syntax.CallExpr:
				if equality(n) != 0 {
					call++
				}
			}
			return true
		})
		if starlark != c.starlark || call != c.call {
			t.Errorf("%s: got %d comparisons by Starlark and %d by calls, want %d and %d", c.name, starlark, call, c.starlark, c.call)
		}
	}
}

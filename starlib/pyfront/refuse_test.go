package pyfront_test

import (
	"strings"
	"testing"
)

// Every construct that is beyond the front end is refused by its name, where it
// stands; every error is at the script's own line and column.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"try:\n    pass\nexcept E:\n    pass", "1:1: try: beyond the Python that scripts may use here\n    a script can't catch errors; test first what could fail"},
		{"def f():\n    global x", "2:5: global: beyond the Python that scripts may use here\n    return the value from the function, or keep it in a list or a dict"},
		{"def f():\n    x = 1; nonlocal x", "2:12: nonlocal: beyond the Python that scripts may use here\n    return the value from the function, or keep it in a list or a dict"},
		{"def f():\n    yield 1", "2:5: yield: beyond the Python that scripts may use here\n    return a list"},
		{"async def f(): pass", "1:1: async: beyond the Python that scripts may use here"},
		{"class C:\n    @property\n    def x(self): pass\n    @x.setter\n    def x(self, v): pass", "4:8: property.setter: beyond the Python that scripts may use here\n    write a method that sets the field"},
		{"from dataclasses import *\n@dataclass(kw_only=True)\nclass C: pass", "2:2: dataclass: kw_only: beyond the Python that scripts may use here"},
		{"from enum import Enum\nclass C(Enum): a = 1\nfor x in C: pass", "3:1: type value is not iterable"},
		{"from mscclpp.language.collectives import *\nclass C(Collective): pass", "2:7: class C: a class can't be based on Collective here\n    MSCCL++'s executor runs no collectives of scripts"},
		{"class C:\n    for i in []: pass", "2:5: for in the body of a class: beyond the Python that scripts may use here\n    put it into __init__"},
		{"class C(A, metaclass=B): pass", "1:21: metaclasses and other class arguments: beyond the Python that scripts may use here"},
		{"class C(int): pass", "1:7: class C: a class can't be based on <built-in function int> here\n    base it on Collective, and write out what differs"},
		{"class A: pass\nclass B: pass\nclass C(A, B): pass", "3:7: class C: several bases are beyond the Python that scripts may use here"},
		{"class C:\n    def __eq__(self, o): pass", "1:7: class C: __eq__: beyond the Python that scripts may use here\n    give the method an ordinary name and call it"},
		{"if (n := 1): pass", "1:7: assignment expressions (:=): beyond the Python that scripts may use here\n    assign on a line of its own"},
		{"a, *b = [1, 2]", "1:4: starred targets: beyond the Python that scripts may use here\n    take the rest with a slice"},
		{"x = *[1]", "1:5: starred expressions: beyond the Python that scripts may use here\n    add the lists with +"},
		{"x = (1, *[1] in [2])", "1:14: syntax error: got 'in', want ')'"},
		{"*a = 1", "1:1: starred targets: beyond the Python that scripts may use here\n    take the rest with a slice"},
		{"x = (*[1])", "1:6: starred expressions: beyond the Python that scripts may use here\n    add the lists with +"},
		{"x = [*i for i in []]", "1:6: starred expressions: beyond the Python that scripts may use here\n    add the lists with +"},
		{"x = [1]\nx[0:1] = [2]", "2:2: assignment to a slice: beyond the Python that scripts may use here\n    assign element by element"},
		{"x = b'bytes'", "1:5: bytes literals: beyond the Python that scripts may use here\n    a str does what scripts need"},
		{"x = 2j", "1:5: complex numbers: beyond the Python that scripts may use here"},
		{"x = a @ b", "1:7: matrix multiplication (@): beyond the Python that scripts may use here"},
		{"x = ...", "1:5: ... as a value: beyond the Python that scripts may use here\n    pass does nothing"},
		{"x = 1\ndel x", "2:1: del of anything but an element: beyond the Python that scripts may use here\n    del x[i] removes an element; a variable needs no del"},
		{"raise", "1:1: raise without an exception: beyond the Python that scripts may use here"},
		{"raise E('x') from None", "1:14: raise ... from: beyond the Python that scripts may use here\n    leave the from out"},
		{"def f(a, /): pass", "1:10: positional-only parameters: beyond the Python that scripts may use here\n    leave the / out"},
		{"x = f'{1=}'", "1:9: = in an f-string: beyond the Python that scripts may use here\n    write the name as text"},
		{"from . import x", "1:6: relative imports: beyond the Python that scripts may use here"},
		{"import numpy as np", "1:8: module numpy: beyond the Python that scripts may use here\n    scripts can import argparse, collections, dataclasses, enum, functools, itertools, math, msccl, mscclpp, os, sys, typing"},
		{"import msccl.langauge", "1:8: module msccl.langauge: beyond the Python that scripts may use here\n    did you mean msccl.language?"},
		{"from msccl.language import fully_connected", "1:28: module msccl.language has no fully_connected here\n    from msccl.topologies import fully_connected"},
		{"from msccl.topologies import fuly_connected", "1:30: module msccl.topologies has no fuly_connected here\n    did you mean fully_connected?"},
		{"import os\nos.environ['HOME']", "2:4: module os has no environ here\n    a script reads no files and no environment; give it an argument"},
		{"from mscclpp.language.program import JSON", "1:38: module mscclpp.language.program has no JSON here\n    from mscclpp.language.general import JSON"},
		{"from mscclpp.langauge.program import *", "1:6: module mscclpp.langauge.program: beyond the Python that scripts may use here\n    did you mean mscclpp.language.program?"},
		{"import mscclpp.comm", "1:8: module mscclpp.comm: beyond the Python that scripts may use here\n    scripts can import mscclpp.language and its modules channel, collectives, general, loop, program, rank, thread_block_group, utils"},
		{"import math\nmath.lgo(3)", "2:6: module math has no lgo here\n    did you mean log?"},
	} {
		if got := load(t, c.source).err; got != "script.py:"+c.want {
			t.Errorf("%q:\n got %s\nwant script.py:%s", c.source, got, c.want)
		}
	}
}

func TestErrorsStandWhereTheyAre(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"x = (1,\n     2", "2:7: syntax error: got the end of the text, want ')'"},
		{"x = 'abc", "1:5: syntax error: the string that begins here doesn't end"},
		{"x = '''abc\n\n", "1:5: syntax error: the string that begins here doesn't end"},
		{"if x\n    pass", "1:5: syntax error: got the end of the line, want ':'"},
		{"if True:\npass", "2:1: syntax error: got 'pass', want an indented block"},
		{"  x = 1", "1:3: syntax error: this line is indented, but no block begins before it"},
		{"if True:\n        x = 1\n    y = 2", "3:5: syntax error: the indentation fits no block that is open"},
		{"x = = 1", "1:5: syntax error: got '=', want an expression"},
		{"1 = x", "1:1: syntax error: can't assign to a literal"},
		{"f() = x", "1:1: syntax error: can't assign to a call"},
		{"None = 1", "1:1: syntax error: can't assign to None"},
		{"x = 012", "1:5: syntax error: 012 is no number"},
		{"x = 1 $ 2", "1:7: syntax error: got '$', which begins no token"},
		{"break", "1:1: syntax error: break stands outside a loop"},
		{"x = f'é{y}'", "1:10: undefined: y"},
		{"x = f'{1 +}'", "1:11: syntax error: got '}', want an expression"},
		{"x = f'a}'", "1:8: syntax error: a single '}' in an f-string; write '}}'"},
		{"x = f'{1'", "1:9: syntax error: got the end of the text, want '}'"},
		{"é = 1; x = 1 // 0", "1:15: floored division by zero"},
		{"x = f'{1}{1 // 0}'", "1:13: floored division by zero"},
		{"x = [1][\n   2]", "1:8: list index 2 out of range [-1:0]"},
		{"assert 1 == 2, f'{1} is not {2}'", "1:1: the assertion failed: 1 is not 2"},
		{"assert False", "1:1: the assertion failed"},
		{"def f():\n    raise ValueError('no good')\nf()", "2:5: ValueError: no good\n    script.py:3:1: f called from here"},
		{"class C:\n    def m(self):\n        return self.nothing\nC().m()", "3:21: C has no .nothing field or method\n    script.py:4:5: C.m called from here"},
		{"class C:\n    def m(self):\n        return 1\nC().m(1)", "4:5: function C.m accepts 1 positional argument (2 given)\n    script.py:2:5: C.m is defined here"},
		{"class C:\n    @property\n    def m(self, x): pass\nC().m", "4:5: function C.m missing 1 argument (x)\n    script.py:3:5: C.m is defined here"},
		{"chnk(1)", "1:1: undefined: chnk"},
		{"import sys\nsys.exit('wrong')", "2:5: the script ended itself: exit('wrong')"},
		{"while True: pass", "1:1: the script ran for more than 10000000 steps\n    raise the step limit (--max-steps) if it is meant to run that long"},
		{"x = 1\n\xff", "2:1: syntax error: this is no UTF-8 text"},
		{"x = " + strings.Repeat("(", 101), "1:105: syntax error: more than 100 brackets are open"},
	} {
		if got := load(t, c.source).err; got != "script.py:"+c.want {
			t.Errorf("%q:\n got %s\nwant script.py:%s", c.source, got, c.want)
		}
	}
}

// sys.exit without a failure ends the script where it stands, and well.
func TestExit(t *testing.T) {
	got := load(t, "import sys\nprint(1)\nsys.exit(0)\nprint(2)")
	if got.err != "" || got.out != "1\n" {
		t.Errorf("got %q and error %q, want 1", got.out, got.err)
	}
}

"""Constructs of Python that scripts of msccl-tools are written with.

The file beside this one, python.out, is what CPython prints for it.
"""
from __future__ import annotations
import functools, itertools, math, os, sys
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Optional, Tuple
import math as m
from math import (log2, ceil as up,)

# --- strings
who = "world"
print(f'hello {who}!', f"{who!r:>10}|", f'{3.14159:.2f}', f'{{literal}} {1 + 2}', rf'\n{who}')
print('a' 'b' f"{who}" "c", 'tab\there', '\x41\u00e9\101', r'\d', 'line\
 joined')
print(f'{7:3d}|{7:<3}|{7:^5}|{7:03}|{255:x}|{255:#X}|{1234567:,}|{-5:+d}|{0.5:%}|{1e10:g}|{2.0:5.1f}')
print(f'{"nested"[1:3]} {[x * 2 for x in range(3)]} { {"k": 1}["k"] } {(lambda v: v + 1)(4)}')
width = 6
print(f'{who:>{width}}|{who:{width}.{2}}|')
print(f'rank {0:2}' 'and' f'{1}')
print('%d of %s, %05.2f%%, %x, %-4s|%4s|%r' % (3, 'five', 2.5, 255, 'ab', 'cd', 'q'))
print('%s' % 'one', '%(a)s-%(b)03d' % {'a': 1, 'b': 2}, '%s %s' % ([1, 'x'], None))
print('{} {}'.format(1, 'x'), '{1}{0}'.format('a', 'b'), '{name:>5}|{:.1f}'.format(2.25, name='n'))
print('7'.zfill(3), '-7'.zfill(4), 'x'.rjust(3) + '|', 'x'.ljust(3, '.') + '|', 'abca'.count('a'))
print("it's", repr("it's"), repr('both \' and "'), repr('a\nb'), str(None), str([1.0, 'x', (1,), {'k': None}]))
print("""three
lines""", '''it's "fine"''')

# --- numbers
print(7 / 2, 7 // 2, -7 // 2, -7 % 3, 2 ** 10, 2 ** -1, 2 ** 0.5, -2 ** 2, 2 ** 3 ** 2)
print(0x1F, 0o17, 0b101, 1_000, 1e3, .5, 10 ** 20, 1e16, 1e-5, 123456789.0)
print(round(2.5), round(3.5), round(2.675, 2), round(7), divmod(-7, 2), pow(3, 4, 5), abs(-3))
print(math.log2(8), m.ceil(2.1), up(2.1), math.floor(-2.5), log2(1), math.gcd(12, 18), math.sqrt(16), int(math.log(9, 3)))
print(int('12'), int(3.9), float('1.5'), bool(''), hex(255), bin(5), oct(8), sum([1, 2, 3]), min(3, 1), max([2, 5]))
print(1 ^ 3, 6 & 3, 6 | 1, ~5, 1 << 4, 256 >> 2)

# --- comparisons
a, b, c = 1, 2, 3
print(a < b < c, a < b > c, 1 == 1.0 == True, a is None, None is None, a is not None, not a in [1], 4 not in [1])
calls = []


def traced(x):
    calls.append(x)
    return x


print(traced(1) < traced(2) < traced(3), calls)
calls.clear()
print(traced(5) < traced(2) < traced(3), calls)
print(True == 1, False != 0, True is True, 'a' == 'a', [1, 2] == [1, 2], (1,) != (2,))
print(0 or 'x', 1 and 'y', not 0, 'yes' if a else 'no')

# --- statements
x = y = [0] * 3
x[1] = 5
print(y, x is y)
i = 10
i += 5; i -= 1; i *= 2; i //= 3; i %= 7; i **= 2; i <<= 2; i |= 1
print(i)
(p, q), [r, s] = (1, 2), [3, 4]
print(p, q, r, s)
p, q = q, p
print(p, q)
d = {'one': 1, 'two': 2}
del d['one']
l = [3, 1, 2]
del l[0]
l.append(9); l.sort(); l.reverse()
print(d, l, l.copy(), l.count(9), {1: 2}.copy())
l.sort(key=lambda v: -v)
print(l, sorted([3, 1, 2], reverse=True), sorted({2, 1}))
n: int = 4
typed: 'list[int]'
while True:
    n -= 1
    if n == 2:
        continue
    elif n < 1:
        break
    else:
        pass
    print('n', n, end=' ')
print()
for k, (u, v) in enumerate([(1, 2), (3, 4)]):
    print(k, u + v, sep=':', end=';\n')
for key, value in d.items(): print(key, value)
assert a == 1, f'a is {a}'
assert True
if a: print('one line')


def defaults(x, y=2, *rest, z=3, **more) -> int:
    """Has a docstring."""
    def inner(w):
        return w + x
    return inner(y), rest, z, more


print(defaults(1), defaults(1, 5, 6, 7, z=8, k=9), defaults(*[1, 2], **{'z': 4}))
print([i * j for i in range(3) for j in range(i) if j != 1], {i: i * i for i in range(3)}, {v % 2 for v in [2, 4]})
print(sum(v for v in range(5)), list(map(lambda v: v * 2, [1, 2])), list(filter(None, [0, 1, 2])), any(v > 1 for v in [1, 2]))
print([1, 2, 3, 4][1:], [1, 2, 3, 4][::-1], 'abcd'[-2:], (1, 2, 3)[:2], [[1, 2], [3]][0][1])
print(list(zip([1, 2], 'ab'.split('b'))), list(reversed([1, 2])), len({1, 2}), list(range(5, 0, -2)))
print((), (1,), [], {}, ((1, 2)))


# --- classes
class Base:
    """Counts."""
    kind = 'base'
    twice = kind * 2

    def __init__(self, start, step=1):
        self.n = start
        self.step = step

    def next(self):
        self.n += self.step
        return self.n

    def describe(self):
        return f'{self.kind} {self.next()}'


def describe():
    return 'the function'


class Derived(Base):
    kind = 'derived'

    def __init__(self, start):
        super().__init__(start, step=10)
        self.items = []

    def describe(self):
        self.items.append(describe())
        return Base.describe(self) + ' ' + super().describe()


class Empty(object): pass


o = Derived(0)
print(o.describe(), o.n, o.items, Base(1).describe(), Base.kind, o.twice)
print(isinstance(o, Base), isinstance(o, Empty), isinstance(1, int), isinstance(True, int), isinstance('s', (int, str)))
print(type(o) is Derived, type(1) is int, type('') is str, type(o) is Base)
e = Empty()
e.field = 1
e.field += 1
print(e.field, hasattr(e, 'field'), hasattr(e, 'other'), getattr(e, 'other', 'none'))
f = o.next
print(f(), o is o, o == o, e is o)


def classes():
    class Local(Base):
        def next(self):
            return -1
    return Local(0).describe()


print(classes())

# --- displays with stars
few, more = [1, 2], {'k': 1, 'l': 2}
print([*few, 3, *few], (*few, 'end'), {*few, 2}, {**more, 'k': 0, **{'m': 3}}, {'a': 0, **more}, [*range(3)], [*'ab'.split()])
joined = *few, *few
print(joined, 1 in few, 3 not in few, 'k' in more)

# --- else of loops
def search(wanted, items):
    for item in items:
        if item == wanted:
            for _ in [1, 2]:
                break
            break
        elif item < 0:
            continue
    else:
        return f'no {wanted}'
    return f'found {wanted}'


print(search(2, [1, 2]), search(3, [-1, 2]), search(1, []))
tries = 0
while tries < 3:
    tries += 1
    if tries == 5: break
else:
    for t in []: pass
    else: print('tried', tries)
for t in [1]:
    with_else = 0
    while True:
        if t: break
    else:
        print('never')
else:
    print('outer')

# --- sets of small numbers, by their places
numbers = {5, 3, 1}
for number in numbers: print(number, end=' ')
print([x for x in {7, 0, 2}], list({4, 2}), tuple({9, 8, 1, 0, 3, 11}), list(enumerate({2, 1})), list(zip({3, 1}, {2, 0})), {6, 4, 2})
numbers.add(2)
print(numbers.pop(), numbers, sorted(numbers, reverse=True), max(numbers), {31, 30, 5, 4, 3}, [*{3, 2}], type(list(numbers)) is list)
spare = numbers.copy()
spare.discard(2)
print(spare, numbers, {x * 4 for x in range(5, 0, -1)}, set(range(20, 0, -1)))


# --- decorators
def twice(fn):
    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        return fn(*args, **kwargs), fn(*args, **kwargs)
    return wrapped


def named(name):
    def decorate(fn):
        print('decorating', name)
        return lambda *args: (name, fn(*args))
    return decorate


@named('outer')
@named('inner')
@twice
def plus(x, y=1):
    return x + y


print(plus(1, 2), plus(5))


class Plan:
    count = 0

    def __init__(self, ranks):
        self.ranks = ranks

    @property
    def peers(self):
        return self.ranks - 1

    @staticmethod
    def slot(rank, peer):
        return peer if peer < rank else peer - 1

    @classmethod
    def of(cls, ranks):
        return cls(ranks)

    @named('method')
    def double(self):
        return self.ranks * 2


p = Plan.of(4)
print(p.peers, Plan.slot(1, 3), p.slot(3, 1), p.of(8).peers, p.double()[0])


# --- dataclasses and enums
@dataclass
class Shape:
    ranks: int
    chunks: int = 1
    names: list = field(default_factory=list)


@dataclass(frozen=True)
class Key:
    rank: int
    peer: int = 0


@dataclass(order=True)
class Longer(Shape):
    extra: str = 'x'

    def __post_init__(self):
        self.total = self.ranks * self.chunks


print(Shape(2), Shape(2) == Shape(2, 1), Shape(2) != Shape(3), {Key(1): 'a', Key(1, 2): 'b'}[Key(1, 0)], Key(3).rank)
s = Shape(4, chunks=2)
s.names.append('n')
print(s, Shape(1).names, Longer(3, 2).total, Longer(3, 2), Longer(1) < Longer(2), isinstance(Longer(1), Shape))


class Policy(Enum):
    auto = 'a'
    manual = 'm'
    alias = 'a'

    def describe(self):
        return f'{self.name} is {self.value}'


class Number(Enum):
    one = auto()
    two = auto()
    nine = 9
    ten = auto()


print(Policy.auto, repr(Policy.manual), Policy('m') is Policy.manual, Policy['auto'] == Policy.alias, Policy.auto.describe())
print(Policy.auto == 'a', Policy.auto != Policy.manual, {Policy.auto: 1}[Policy.alias], isinstance(Policy.auto, Policy), Number.ten.value, Number.two.value)

# --- Python's modules
d = defaultdict(list)
d['a'].append(1)
d['b'].append(2); d['a'].append(3)
print(dict(d), 'c' in d, len(d), d.get('c'), sorted(d.items()), d == {'a': [1, 3], 'b': [2]})
counts = defaultdict(int)
for letter in ['x', 'y', 'x']:
    counts[letter] += 1
print(counts['x'], counts['z'], sorted(counts))
print(list(itertools.product(range(2), 'ab'.split('b'))), list(itertools.product([0, 1], repeat=2)))
print(list(itertools.permutations([1, 2, 3], 2)), list(itertools.combinations([1, 2, 3], 2)), list(itertools.combinations([1], 2)))
print(list(itertools.chain([1], [2, 3])), list(itertools.accumulate([1, 2, 3])), list(itertools.repeat(0, 3)))
print(list(itertools.zip_longest([1, 2], [3], fillvalue=0)), list(itertools.accumulate([2, 3], lambda a, b: a * b, initial=1)))
print(functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]), functools.reduce(lambda a, b: a + b, [], 7), functools.partial(plus, 1)(2))
print(os.path.basename('/a/b.py'), os.path.dirname('/a/b.py'), os.path.splitext('/a.d/b.tar.gz'), os.path.join('a', 'b/', 'c'), os.path.split('x'))
print(os.path.splitext('.bashrc'), os.path.join('a', '/b'), os.path.dirname('/b'), os.path.dirname('a//b'))
Pair = Tuple[int, int]
channels: dict[tuple[int, int], Optional[Pair]] = {}
channels[1, 2] = (3, 4)
print(channels)
print('done', file=sys.stdout)
if __name__ == '__main__':
    print('main')

# True equals 1 and False equals 0, whatever stands around the comparison.


def given(x):
    for i in range(2):
        print("given", i, x, i == x, x != i)


for x in [True, False, 1, 0, 1.0, "1", None]:
    given(x)


def counted(n):
    for i in range(n):
        for j in range(n):
            k = j if j < i else j - 1
            k *= 2
            print("counted", i == j, i != j, k == i, k != -i % 3, (i) == (j + 1))


counted(3)


def rebound():
    for i in range(2):
        print("rebound", i == 1)
        i = i == 1
        print("rebound", i, i == 1, i != 0)
    for i in [True, False]:
        print("rebound", i == 1, 1 == i)


rebound()


def within():
    for i in range(2):
        print("within", [i == 1 for i in [True, False]], i == 1)
        print("within", (lambda i: i == 1)(True), (lambda i=True: i != 1)())

        def inner(j, i=True):
            return i == 1, j == 1

        print("within", inner(True), inner(i))


within()


def unpacked():
    i, j = 1, True
    print("unpacked", i == j, i != j)
    for i, j in [(True, 1), (False, 1)]:
        print("unpacked", i == j)
    a = b = 1
    print("unpacked", a == b, a == True)
    for n, flag in enumerate([False, True, True]):
        print("unpacked", n == flag)


unpacked()


def logical():
    i = 1 and True
    j = 1 if i else True
    print("logical", i == 1, j == i, (not i) == 0, (i is True) == 1)


logical()


class Counter:
    n = 1

    def __init__(self, n):
        self.n = n

    def same(self, other):
        for i in range(2):
            yes = self.n == i
            print("fields", yes, yes == 1, self.n == other)


Counter(True).same(1)
Counter(0).same(False)


def chained():
    for i in range(3):
        for j in range(3):
            print("chained", i == j == 1, i == True != j, 0 < i == j < 2)


chained()

for top in range(2):
    print("top", top == 1, top == True, {top == 1: "x"})

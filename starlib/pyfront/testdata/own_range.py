# A range of the script's own yields what it likes.


def range(n):
    return [True, False]


def own():
    for i in range(2):
        print("own", i == 1, i != 0, i == i)


own()

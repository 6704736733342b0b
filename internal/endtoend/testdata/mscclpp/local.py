"""Operations on one rank: what conflicts in a thread block meets in between."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def local():
    with CollectiveProgram("local", TestCollective(1, 4, 4), 1, instr_fusion=True, buffer_alignment=32):
        rank = Rank(0)
        a, b = rank.get_input_buffer(), rank.get_output_buffer()
        spare = Buffer(0, 2)
        rank.copy(b[0:2], a[0:2], tb=0)
        rank.copy(b[2:4], a[2:4], tb=0)
        rank.copy(spare[0:1], b[1:2], tb=0)
        rank.reduce(a[3:4], [a[2:3], spare[0:1]], tb=0, reduce_op=ReduceOperationType.min)
        rank.reduce(b[3:4], [spare[1:2]], tb=0)
        rank.reduce(b[3:4], [a[0:1]], tb=0)
        rank.barrier([0])
        rank.copy(a[0:1], b[3:4], tb=0)
        print(JSON())


local()

"""Every rank sends all that it has as packets, and adds up what it got."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def one_shot(ranks, *, chunks=1):
    with CollectiveProgram("one_shot", AllReduce(ranks, chunks, False), ranks, protocol="LL", use_double_scratch_buffer=True):
        size = ranks * chunks
        scratch = [Buffer(r, size * ranks) for r in range(ranks)]
        slot = lambda r, of: scratch[r][of * size : (of + 1) * size]
        for r in range(ranks):
            rank = Rank(r)
            mine = rank.get_input_buffer()[:]
            for p in range(ranks):
                if p != r:
                    MemoryChannel(p, r).put_packets(slot(p, r), mine, tb=0)
            rank.reduce(mine, [slot(r, p) for p in range(ranks) if p != r], tb=0, dst_chunk=rank.get_output_buffer()[:], packet=True)
        print(JSON())


one_shot(3)

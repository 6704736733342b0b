"""Groups of thread blocks share an operation; barriers join them."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def grouped(ranks, size):
    with CollectiveProgram("groups", AllReduce(ranks, 1, True), ranks):
        blocks = ThreadBlockGroup(tb_list=[i for i in range(size)])
        scratch = {r: Buffer(r, ranks * (ranks - 1)) for r in range(ranks)}
        channels = {(to, at): MemoryChannel(to, at) for at in range(ranks) for to in range(ranks) if to != at}
        for at in range(ranks):
            rank = Rank(at)
            mine = rank.get_input_buffer()
            slots = []
            for p in range(ranks):
                if p == at:
                    continue
                slot = at if at < p else at - 1
                channels[p, at].put(scratch[p][slot * ranks : (slot + 1) * ranks], mine[0:ranks], tb_group=blocks)
                slots.append(p if p < at else p - 1)
            rank.barrier(blocks.tb_list)
            for p in range(ranks):
                if p != at:
                    channels[p, at].signal(tb=0, data_sync=SyncType.none)
            for p in range(ranks):
                if p != at:
                    channels[p, at].wait(tb=0, data_sync=SyncType.none)
            rank.barrier(tb_list=blocks.tb_list)
            rank.reduce(mine[0:ranks], [scratch[at][s * ranks : (s + 1) * ranks] for s in slots], tb_group=blocks,
                        reduce_op=ReduceOperationType.max)
        print(JSON())


grouped(2, 2)

"""A broadcast of packets through the switch, and one of plain data beside it."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def broadcast(ranks):
    with CollectiveProgram("switch_packets", TestCollective(ranks, 1, ranks), ranks, protocol="LL"):
        packed = [Buffer(r, 1) for r in range(ranks)]
        got = [Buffer(r, ranks) for r in range(ranks)]
        group = SwitchChannel(list(range(ranks)), BufferType.scratch)
        for r in range(ranks):
            rank = Rank(r)
            rank.copy_packets(packed[r][0:1], rank.get_input_buffer()[0:1], tb=0)
            group.at_rank(r).broadcast_packets(packed[r][0:1], 1 + r, 1, tb=0)
            for p in range(ranks):
                rank.unpack_packets(rank.get_output_buffer()[p : p + 1], got[r][p : p + 1], tb=1)
        print(JSON())


broadcast(2)

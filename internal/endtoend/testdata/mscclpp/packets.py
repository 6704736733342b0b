"""Packets in all ways: put, reduced and sent, kept as packets, passed on, unpacked."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def chain():
    with CollectiveProgram("packets", TestCollective(2, 2, 2), 2, protocol="LL"):
        scratch = [Buffer(r, 4) for r in range(2)]
        channels = [MemoryChannel(1, 0), MemoryChannel(0, 1)]
        for r in range(2):
            rank, other = Rank(r), 1 - r
            mine, result = rank.get_input_buffer(), rank.get_output_buffer()
            # its first chunk goes over, is added there and comes back
            channels[r].put_packets(scratch[other][0:1], mine[0:1], tb=0)
            rank.reduce(mine[1:2], [scratch[r][0:1]], tb=0, dst_chunk=result[1:2], packet=True)
            rank.copy_packets(scratch[r][3:4], result[1:2], tb=0)
            channels[r].put_packets(scratch[other][1:2], result[1:2], tb=0)
            # what came is passed on, and unpacked
            channels[r].read_put_packets(scratch[other][2:3], scratch[r][1:2], tb=1)
            rank.unpack_packets(result[0:1], scratch[r][2:3], tb=1)
        print(JSON())


chain()

"""Packets by port: they are made in scratch first, put from there, and read there by the next."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def around(ranks):
    with CollectiveProgram("port_packets", TestCollective(ranks, 1, 2), ranks, protocol="LL"):
        scratch = [Buffer(rank=r, size=3) for r in range(ranks)]
        for r in range(ranks):
            rank, to = Rank(r), (r + 1) % ranks
            channel = PortChannel(to, r)
            PortChannel((r - 1) % ranks, r)
            rank.copy_packets(scratch[r][0:1], rank.get_input_buffer()[0:1], tb=0)
            rank.barrier(tb_list=[0])
            channel.put_packets(scratch[to][1:2], scratch[r][0:1], tb=0)
            channel.read_put_packets(scratch[to][2:3], scratch[r][1:2], tb=1)
            rank.unpack_packets(rank.get_output_buffer()[0:1], scratch[r][1:2], tb=2)
            rank.unpack_packets(rank.get_output_buffer()[1:2], scratch[r][2:3], tb=2)
        print(JSON())


around(3)

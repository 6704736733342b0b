"""Every rank has the switch add up its part, and store the sum on all ranks."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def nvls(ranks):
    with CollectiveProgram("switch", AllReduce(ranks, 1, True), ranks):
        group = SwitchChannel(rank_list=[r for r in range(ranks)], buffer_type=BufferType.input)
        channels = {(to, at): MemoryChannel(to, at) for at in range(ranks) for to in range(ranks) if to != at}
        for at in range(ranks):
            peers = [p for p in range(ranks) if p != at]
            for p in peers:
                channels[p, at].signal(tb=0, relaxed=True)
            for p in peers:
                channels[p, at].wait(tb=0, relaxed=True, data_sync=SyncType.after)
            part = Rank(at).get_input_buffer()[at : at + 1]
            view = group.at_rank(at)
            view.reduce(buffer_offset=at, size=1, dst_chunk=part, tb=0)
            view.broadcast(src_chunk=part, buffer_offset=at, size=1, tb=0)
            for p in peers:
                channels[p, at].signal(tb=0, data_sync=SyncType.before)
            for p in peers:
                channels[p, at].wait(tb=0, data_sync=SyncType.after)
        print(JSON())


nvls(3)

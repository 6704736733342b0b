"""Every rank gets what the others have, in place, with one thread block a peer."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def allgather(ranks):
    with CollectiveProgram("get", AllGather(ranks, 1, True), ranks, num_threads_per_block=512, max_message_size=2**20):
        channels = {}
        for at in range(ranks):
            for peer in range(ranks):
                if peer != at:
                    channels[(peer, at)] = MemoryChannel(dst_rank=peer, src_rank=at)
        for at in range(ranks):
            output = Rank(at).get_output_buffer()
            for peer in range(ranks):
                if peer == at:
                    continue
                tb = peer if peer < at else peer - 1
                channel = channels[(peer, at)]
                channel.signal(tb, SyncType.none)
                channel.wait(tb, SyncType.after)
                channel.get(output[peer : peer + 1], Rank(peer).get_output_buffer()[peer : peer + 1], tb=tb)
                channel.signal(tb, SyncType.before, True)
                channel.wait(tb, relaxed=True)
        print(JSON())


allgather(3)

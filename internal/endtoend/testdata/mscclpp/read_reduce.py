"""Every rank adds up its part of all inputs where they are, and hands the sum out."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def two_shot(name, ranks, instances):
    with CollectiveProgram(name, AllReduce(ranks, 1, True), ranks, instances=instances, min_message_size=1 << 10):
        channels = {(to, at): MemoryChannel(to, at) for at in range(ranks) for to in range(ranks) if to != at}
        for at in range(ranks):
            peers = [p for p in range(ranks) if p != at]
            part = Rank(at).get_input_buffer()[at : at + 1]
            for p in peers:
                channels[p, at].signal(tb=0, relaxed=True)
            for p in peers:
                channels[p, at].wait(tb=0, relaxed=True)
            for p in peers:
                theirs = Rank(p).get_input_buffer()[at : at + 1]
                channels[p, at].reduce(part, [theirs], tb=0)
            for p in peers:
                channels[p, at].put(Rank(p).get_input_buffer()[at : at + 1], part, tb=0)
            for p in peers:
                channels[p, at].signal(tb=0, data_sync=SyncType.before)
            for p in peers:
                channels[p, at].wait(tb=0, data_sync=SyncType.after)
        print(JSON())


parser = argparse.ArgumentParser()
parser.add_argument("--name", default="read_reduce")
parser.add_argument("--num_gpus", type=int, default=3)
parser.add_argument("--instances", type=int, default=2)
args = parser.parse_args()
two_shot(args.name, args.num_gpus, args.instances)

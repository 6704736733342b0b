"""Every rank puts its input into the outputs of all others."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def allgather(name, ranks):
    with CollectiveProgram(name, AllGather(ranks, 1, False), ranks):
        channels = {(to, at): MemoryChannel(to, at) for at in range(ranks) for to in range(ranks) if to != at}
        for at in range(ranks):
            rank = Rank(at)
            mine = rank.get_input_buffer()[0:1]
            others = [to for to in range(ranks) if to != at]
            rank.copy(rank.get_output_buffer()[at : at + 1], mine, tb=0)
            for to in others:
                channels[to, at].signal(tb=0, data_sync=SyncType.none, relaxed=True)
            for to in others:
                channels[to, at].wait(tb=0, data_sync=SyncType.after, relaxed=True)
            for to in others:
                channels[to, at].put(Rank(to).get_output_buffer()[at : at + 1], mine, tb=0)
            for to in others:
                channels[to, at].signal(tb=0, data_sync=SyncType.before)
            for to in others:
                channels[to, at].wait(tb=0)
        print(JSON())


parser = argparse.ArgumentParser()
parser.add_argument("--name", type=str, help="name of the program")
parser.add_argument("--num_gpus", type=int, default=3, help="number of gpus")
args = parser.parse_args()
allgather(args.name, args.num_gpus)

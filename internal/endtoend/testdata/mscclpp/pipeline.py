"""Three thread blocks work on one piece after another: pack, put, unpack."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *

from mscclpp.language.loop import LoopIterationContext


def piped(unit):
    with CollectiveProgram("pipeline", AllGather(2, 1, False), 2) as prog:
        sent = [Buffer(r, 1) for r in range(2)]
        got = [Buffer(r, 1) for r in range(2)]
        for r in range(2):
            channel, rank, other = MemoryChannel(1 - r, r), Rank(r), 1 - r
            ready = Semaphore(r, 0)
            free = Semaphore(rank=r, initial_value=1)
            mine, output = rank.get_input_buffer()[0:1], rank.get_output_buffer()
            rank.copy(output[r : r + 1], mine, tb=3)
            with LoopIterationContext(unit=unit, num_chunks=1) as loop:
                free.acquire(tb=0, data_sync=SyncType.after)
                rank.copy(sent[r][0:1], mine, tb=0)
                ready.release(tb=0, data_sync=SyncType.before)
                ready.acquire(tb=1, data_sync=SyncType.after)
                channel.put(got[other][0:1], sent[r][0:1], tb=1)
                channel.signal(tb=1, data_sync=SyncType.before)
                free.release(tb=1, data_sync=SyncType.none)
                channel.wait(tb=2, data_sync=SyncType.after)
                rank.copy(output[other : other + 1], got[r][0:1], tb=2)
    print(prog.to_json())


piped(2**16)

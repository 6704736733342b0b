"""Port channels: a put alone, with a signal, and with a signal and a flush."""
import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *


def send(ranks):
    with CollectiveProgram("ports", TestCollective(ranks, 3, 3), ranks):
        for at in range(ranks):
            to = (at + 1) % ranks
            channel = PortChannel(to, at)
            back = PortChannel((at - 1) % ranks, at)
            source, target = Rank(at).get_input_buffer(), Rank(to).get_output_buffer()
            channel.put(target[0:1], source[0:1], tb=0)
            channel.signal(tb=0)
            channel.put_with_signal(target[1:2], source[1:2], tb=0)
            channel.put_with_signal_and_flush(target[2:3], source[2:3], tb=0)
            channel.flush(tb=0, data_sync=SyncType.none)
            for _ in range(3):
                back.wait(tb=1, data_sync=SyncType.none)
        print(JSON())


send(3)

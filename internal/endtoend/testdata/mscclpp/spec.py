"""A program of a specification, as a function that a command line calls."""
from dataclasses import dataclass

from mscclpp.language.channel import MemoryChannel, PortChannel
from mscclpp.language.collectives import AllGather, AllReduce
from mscclpp.language.program import CollectiveProgram
from mscclpp.language.rank import Buffer, Rank
from mscclpp.language.thread_block_group import ThreadBlockGroup
from mscclpp.language.utils import AlgoSpec


@dataclass(frozen=True)
class Peer:
    rank: int
    slot: int


def peers_of(spec: AlgoSpec, at: int) -> list[Peer]:
    return [Peer(p, p if p < at else p - 1) for p in range(spec.world_size) if p != at]


def gather(spec: AlgoSpec, group_size: int = 1) -> CollectiveProgram:
    if not isinstance(spec.collective, AllGather) or isinstance(spec.collective, AllReduce):
        raise ValueError("gather requires an AllGather")
    if spec.world_size % spec.nranks_per_node != 0 or spec.in_place != spec.collective.inplace:
        raise ValueError("the spec contradicts itself")
    with CollectiveProgram.from_spec(spec) as prog:
        scratch = [Buffer(r, spec.world_size - 1) for r in range(spec.world_size)]
        channels: dict[tuple[int, int], MemoryChannel] = {}
        groups = [ThreadBlockGroup(tb_list=[i * group_size + k for k in range(group_size)]) for i in range(spec.world_size - 1)]
        for at in range(spec.world_size):
            for peer in peers_of(spec, at):
                channels[(peer.rank, at)] = MemoryChannel(peer.rank, at)
        for at in range(spec.world_size):
            rank = Rank(at)
            mine = rank.get_output_buffer()[at : at + 1]
            if not spec.in_place:
                mine = rank.get_input_buffer()[0:1]
                rank.copy(rank.get_output_buffer()[at : at + 1], mine, tb_group=groups[0])
            for peer in peers_of(spec, at):
                slot = at if at < peer.rank else at - 1
                channels[(peer.rank, at)].put_packets(scratch[peer.rank][slot : slot + 1], mine, tb_group=groups[peer.slot])
            for peer in peers_of(spec, at):
                rank.unpack_packets(
                    rank.get_output_buffer()[peer.rank : peer.rank + 1],
                    scratch[at][peer.slot : peer.slot + 1],
                    tb_group=groups[peer.slot],
                )
    return prog


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--num_gpus", type=int, required=True)
    parser.add_argument("--group", type=int, default=2)
    parser.add_argument("--in_place", action=argparse.BooleanOptionalAction, default=False)
    args = parser.parse_args()
    algo_spec = AlgoSpec(
        name=f"gather_{args.num_gpus}",
        collective=AllGather(args.num_gpus, 1, args.in_place),
        nranks_per_node=args.num_gpus,
        world_size=args.num_gpus,
        in_place=args.in_place,
        instances=1,
        protocol="LL",
        auto_sync=False,
        num_threads_per_block=256,
        reuse_resources=True,
        use_double_scratch_buffer=True,
        min_message_size=1 << 10,
        max_message_size=8 << 20,
        tags={"default": 1},
    )
    print(gather(algo_spec, args.group).to_json())

#!/usr/bin/env python3
"""torch_check.py: PyTorch's collectives and a training over the library, a process a GPU.

  torch_check.py --library bin/libmscclsh_nccl.so [--gpus 2] [--steps 20]

Each rank runs the same work in two jobs, over NCCL alone and with the library preloaded, and
the results are compared:

  collectives   all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, of types
                and sizes, against what they mean, computed on the CPU
  graphs        all_reduce in a CUDA graph, replayed with inputs that change
  two groups    two process groups at once, on streams of their own
  training      DistributedDataParallel; losses equal NCCL's bit for bit where sums of all ranks
                are made in the same order (two ranks: one order only), else to a bound

A line PASS or FAIL each; exit code 1 if anything failed, 3 where this can't run. The bound on
losses with n ranks: a sum of n terms in another order differs by at most (n - 1) eps of the
sum of their absolute values; training amplifies that, step by step, by no more than a factor
that is measured: the run over NCCL is repeated with the gradients' terms permuted that much.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--library", dest="lib", default="bin/libmscclsh_nccl.so")
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--port", type=int, default=29517)
    p.add_argument("--limit", type=int, default=150, help="seconds that a job may take")
    p.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    p.add_argument("--result", help=argparse.SUPPRESS)
    p.add_argument("--perturb", type=float, default=0.0, help=argparse.SUPPRESS)
    return p.parse_args()


# What a rank does.

TYPES = ["float32", "float16", "bfloat16", "int32", "int64", "uint8"]
COUNTS = [1, 3, 64, 1000, 4096, 65536, 1 << 20]


def values(torch, rank, count, dtype, seed):
    """Small whole numbers: all sums are exact in all types."""
    g = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(0, 4, (count,), generator=g).to(dtype)


def check_collectives(torch, dist, rank, n, wrong):
    for seed, name in enumerate(TYPES):
        dtype = getattr(torch, name)
        for count in COUNTS:
            what = f"{name} of {count}"
            all_in = [values(torch, r, count * n, dtype, seed) for r in range(n)]
            mine = all_in[rank].cuda()

            def compare(collective, have, want):
                if not torch.equal(have.cpu(), want):
                    wrong.append(f"{collective}, {what}, rank {rank}")

            total = sum(x.to(torch.int64) for x in all_in).to(dtype)
            x = mine.clone()
            dist.all_reduce(x)
            compare("all_reduce", x, total)
            x = mine.clone()
            dist.all_reduce(x, op=dist.ReduceOp.MAX)
            compare("all_reduce of the maximum", x, torch.stack(all_in).amax(0))
            out = torch.empty(count * n * n, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(out, mine)
            compare("all_gather", out, torch.cat(all_in))
            out = torch.empty(count, dtype=dtype, device="cuda")
            dist.reduce_scatter_tensor(out, mine)
            compare("reduce_scatter", out, total[rank * count : (rank + 1) * count])
            out = torch.empty_like(mine)
            dist.all_to_all_single(out, mine)
            compare("all_to_all", out, torch.cat([x[rank * count : (rank + 1) * count] for x in all_in]))
            for root in range(n):
                x = mine.clone()
                dist.broadcast(x, src=root)
                compare("broadcast", x, all_in[root])
                x = mine.clone()
                dist.reduce(x, dst=root)
                if rank == root:
                    compare("reduce", x, total)


def check_graphs(torch, dist, rank, n, wrong):
    for count in [64, 4096, 1 << 18]:
        static = torch.zeros(count, device="cuda")
        result = torch.zeros(count, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                result.copy_(static)
                dist.all_reduce(result)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result.copy_(static)
            dist.all_reduce(result)
            result.mul_(2)
            dist.all_reduce(result)
        for replay in range(50):
            static.fill_(float(rank + 1 + replay))
            graph.replay()
            want = 2.0 * n * sum(r + 1 + replay for r in range(n))
            if not bool((result == want).all()):
                wrong.append(f"graph of {count}, replay {replay}, rank {rank}")
                break


def check_groups(torch, dist, rank, n, wrong):
    groups = [dist.new_group(list(range(n))) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in groups]
    tensors = [torch.zeros(1 << 14, device="cuda") for _ in groups]
    for round_ in range(100):
        for i, (group, stream) in enumerate(zip(groups, streams)):
            with torch.cuda.stream(stream):
                tensors[i].fill_(float(rank + i + round_))
                dist.all_reduce(tensors[i], group=group)
        torch.cuda.synchronize()
        for i, t in enumerate(tensors):
            if not bool((t == float(sum(r + i + round_ for r in range(n)))).all()):
                wrong.append(f"group {i}, round {round_}, rank {rank}")
                return


def train(torch, dist, rank, n, steps, perturb):
    """The losses of a small network, float by float."""
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(7)
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(256, 256), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 16)).cuda()
    ddp = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=0.25)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    for _ in range(steps):
        x = torch.randn(64, 256, generator=data).cuda()
        y = torch.randint(0, 16, (64,), generator=data).cuda()
        loss = torch.nn.functional.cross_entropy(ddp(x), y)
        optimizer.zero_grad()
        loss.backward()
        if perturb:
            for p in model.parameters():
                p.grad.mul_(1 + perturb * torch.sign(torch.sin(torch.arange(p.numel(), device="cuda").reshape(p.shape).float())))
        optimizer.step()
        losses.append(loss.detach().cpu().item().hex())
    return losses


def work(a):
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(a.rank)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("nccl", rank=a.rank, world_size=a.gpus, device_id=torch.device("cuda", a.rank))
    result = {}
    for name, check in [("collectives", check_collectives), ("graphs", check_graphs), ("two groups", check_groups)]:
        wrong = []
        if not a.perturb:
            check(torch, dist, a.rank, a.gpus, wrong)
        result[name] = wrong
    result["losses"] = train(torch, dist, a.rank, a.gpus, a.steps, a.perturb)
    dist.barrier()
    dist.destroy_process_group()
    with open(f"{a.result}.{a.rank}", "w") as f:
        json.dump(result, f)


# What starts them.


def job(a, preload, perturb=0.0):
    """Runs all ranks; returns their results, or the output of one that failed."""
    with tempfile.TemporaryDirectory() as tmp:
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), NCCL_NVLS_ENABLE="0",
                   CUBLAS_WORKSPACE_CONFIG=":4096:8")
        if preload:
            env.update(LD_PRELOAD=os.path.abspath(a.lib), MSCCLSH_NCCL_STATS="1")
        a.port += 1
        logs, ranks = [], []
        for r in range(a.gpus):
            logs.append(open(os.path.join(tmp, f"log.{r}"), "w+"))
            ranks.append(subprocess.Popen(
                [sys.executable, __file__, "--gpus", str(a.gpus), "--steps", str(a.steps), "--rank", str(r),
                 "--result", os.path.join(tmp, "result"), "--perturb", repr(perturb)],
                env=env, stdout=logs[r], stderr=subprocess.STDOUT))
        failed = None
        for r, p in enumerate(ranks):
            try:
                if p.wait(timeout=a.limit) != 0:
                    failed = failed if failed is not None else r
            except subprocess.TimeoutExpired:
                failed = failed if failed is not None else r
                for q in ranks:
                    q.kill()
        texts = []
        for log in logs:
            log.seek(0)
            texts.append(log.read())
            log.close()
        if failed is not None:
            return None, texts[failed][-4000:]
        results = []
        for r in range(a.gpus):
            with open(os.path.join(tmp, f"result.{r}")) as f:
                results.append(json.load(f))
        return results, "\n".join(line for t in texts for line in t.splitlines() if "stats:" in line)


def compare_losses(a, plain, ours, shaken):
    """None if the losses are as they must be, else why not."""
    for r in range(a.gpus):
        p = [float.fromhex(x) for x in plain[r]["losses"]]
        o = [float.fromhex(x) for x in ours[r]["losses"]]
        if a.gpus == 2:
            if p != o:
                i = next(i for i in range(len(p)) if p[i] != o[i])
                return f"rank {r}, step {i}: {o[i]!r}, not {p[i]!r}"
            continue
        s = [float.fromhex(x) for x in shaken[r]["losses"]]
        for i in range(len(p)):
            # Twice what the same shift did to NCCL's own run, and the last bits of a float.
            bound = 2 * max(abs(s[k] - p[k]) for k in range(i + 1)) + 4 * 2.0**-23 * abs(p[i])
            if abs(o[i] - p[i]) > bound:
                return f"rank {r}, step {i}: {o[i]!r} is further than {bound!r} from {p[i]!r}"
    return None


def main():
    a = arguments()
    if a.rank is not None:
        return work(a)
    if not os.path.exists(a.lib):
        print(f"torch_check: {a.lib} is not there: make nccl", file=sys.stderr)
        return 3
    plain, text = job(a, preload=False)
    if plain is None:
        print(f"torch_check: over NCCL alone it fails:\n{text}", file=sys.stderr)
        return 3
    ours, text = job(a, preload=True)
    if ours is None:
        print(f"FAIL torch: a rank ended with an error:\n{text}")
        return 1
    bad = False
    for name in ["collectives", "graphs", "two groups"]:
        wrong = [w for r in ours for w in r[name]]
        bad |= bool(wrong)
        print(f"{'FAIL' if wrong else 'PASS'} torch, {name}" + (f": {len(wrong)} wrong: {wrong[:5]}" if wrong else ""))
    shaken = None
    if a.gpus > 2:
        shaken, text = job(a, preload=False, perturb=(a.gpus - 1) * 2.0**-24)
        if shaken is None:
            print(f"torch_check: over NCCL alone it fails:\n{text}", file=sys.stderr)
            return 3
    why = compare_losses(a, plain, ours, shaken)
    bad |= why is not None
    print(f"{'FAIL' if why else 'PASS'} torch, training, {a.steps} steps, losses "
          + ("equal bit for bit" if a.gpus == 2 else "within the bound") + (f": {why}" if why else ""))
    print(text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

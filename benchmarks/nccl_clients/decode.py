#!/usr/bin/env python3
"""decode.py: tokens a second of a tensor-parallel decoder, over NCCL and over the library.

  decode.py --library bin/libmscclsh_nccl.so [--gpus 2] [--batch 1] [--tokens 256]

A small transformer with random weights, its matrices cut over the ranks as Megatron does, two
allreduces a layer, one process a GPU. A step makes one token for each sequence of the batch,
the likeliest; it is captured in a CUDA graph once and replayed. The same in two jobs, over NCCL
alone and with the library preloaded, twice each in turns; the faster of two counts.

With two ranks a sum has one order only, so the tokens must be the same: PASS or FAIL. With
more, sums may be made in another order, and the first token that differs is told.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--library", dest="lib", default="bin/libmscclsh_nccl.so")
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--layers", type=int, default=16)
    p.add_argument("--width", type=int, default=2048)
    p.add_argument("--heads", type=int, default=16)
    p.add_argument("--words", type=int, default=8192)
    p.add_argument("--port", type=int, default=29617)
    p.add_argument("--limit", type=int, default=90, help="seconds that a job may take")
    p.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    p.add_argument("--result", help=argparse.SUPPRESS)
    return p.parse_args()


class Decoder:
    """One rank's part of the transformer, with the keys and values of what came before."""

    def __init__(self, torch, dist, a):
        self.torch, self.dist, self.a = torch, dist, a
        n, r, width = a.gpus, a.rank, a.width
        self.heads, self.size = a.heads // n, width // a.heads
        self.scale = self.size**-0.5
        # All ranks make the whole of each matrix, which takes a processor too long.
        g = torch.Generator(device="cuda").manual_seed(3)

        def weight(rows, columns):
            return torch.randn(rows, columns, generator=g, device="cuda") * columns**-0.5

        def part(w, dim):
            return w.chunk(n, dim)[r].to(torch.bfloat16).contiguous()

        self.words = weight(a.words, width).to(torch.bfloat16)
        self.layers = []
        for _ in range(a.layers):
            q, k, v, o = (weight(width, width) for _ in range(4))
            up, down = weight(4 * width, width), weight(width, 4 * width)
            shape = (a.batch, self.heads, a.tokens, self.size)
            self.layers.append({
                "qkv": torch.cat([part(q, 0), part(k, 0), part(v, 0)]), "o": part(o, 1),
                "up": part(up, 0), "down": part(down, 1),
                "keys": torch.zeros(shape, dtype=torch.bfloat16, device="cuda"),
                "values": torch.zeros(shape, dtype=torch.bfloat16, device="cuda"),
            })
        self.token = torch.zeros(a.batch, dtype=torch.long, device="cuda")
        self.position = torch.zeros(1, dtype=torch.long, device="cuda")
        self.places = torch.arange(a.tokens, device="cuda")

    def norm(self, x):
        return self.torch.nn.functional.rms_norm(x, (x.shape[-1],))

    def attend(self, x, layer):
        torch, batch = self.torch, self.a.batch
        q, k, v = (x @ layer["qkv"].t()).reshape(batch, 3, self.heads, 1, self.size).unbind(1)
        layer["keys"].index_copy_(2, self.position, k)
        layer["values"].index_copy_(2, self.position, v)
        scores = (q @ layer["keys"].transpose(2, 3)).float() * self.scale
        scores = scores.masked_fill(self.places > self.position, float("-inf"))
        y = torch.softmax(scores, -1).to(torch.bfloat16) @ layer["values"]
        return y.reshape(batch, self.heads * self.size) @ layer["o"].t()

    def step(self):
        """Makes the next token of each sequence, and moves on by one."""
        torch = self.torch
        x = self.words[self.token]
        for layer in self.layers:
            y = self.attend(self.norm(x), layer)
            self.dist.all_reduce(y)
            x = x + y
            y = torch.nn.functional.gelu(self.norm(x) @ layer["up"].t()) @ layer["down"].t()
            self.dist.all_reduce(y)
            x = x + y
        logits = self.norm(x) @ self.words.t()
        self.token.copy_(logits.argmax(-1))
        self.position.add_(1)

    def reset(self):
        self.token.copy_(self.torch.arange(1, self.a.batch + 1))
        self.position.zero_()
        for layer in self.layers:
            layer["keys"].zero_()
            layer["values"].zero_()


def work(a):
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(a.rank)
    dist.init_process_group("nccl", rank=a.rank, world_size=a.gpus, device_id=torch.device("cuda", a.rank))
    with torch.no_grad():
        decoder = Decoder(torch, dist, a)
        decoder.reset()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                decoder.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            decoder.step()

        def run(keep):
            decoder.reset()
            dist.barrier()
            torch.cuda.synchronize()
            tokens = []
            begun = time.perf_counter()
            for _ in range(a.tokens):
                graph.replay()
                if keep:
                    tokens.append(decoder.token.clone())
            torch.cuda.synchronize()
            return time.perf_counter() - begun, tokens

        run(False)
        seconds = min(run(False)[0] for _ in range(5))
        _, tokens = run(True)
        graph.reset()  # NCCL waits for graphs that hold its calls before it destroys a communicator
    result = {"rate": a.tokens * a.batch / seconds, "tokens": [t.tolist() for t in tokens]}
    dist.destroy_process_group()
    with open(f"{a.result}.{a.rank}", "w") as f:
        json.dump(result, f)


def job(a, preload):
    """Runs all ranks; returns rank 0's result, or None and the output of one that failed."""
    with tempfile.TemporaryDirectory() as tmp:
        a.port += 1
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), NCCL_NVLS_ENABLE="0")
        if preload:
            env.update(LD_PRELOAD=os.path.abspath(a.lib), MSCCLSH_NCCL_STATS="1")
        flags = []
        for name in ["gpus", "batch", "tokens", "layers", "width", "heads", "words"]:
            flags += [f"--{name}", str(getattr(a, name))]
        ranks, logs = [], []
        for r in range(a.gpus):
            logs.append(open(os.path.join(tmp, f"log.{r}"), "w+"))
            ranks.append(subprocess.Popen(
                [sys.executable, __file__, *flags, "--rank", str(r), "--result", os.path.join(tmp, "result")],
                env=env, stdout=logs[r], stderr=subprocess.STDOUT))
        failed = None
        for r, p in enumerate(ranks):
            try:
                code = p.wait(timeout=a.limit)
            except subprocess.TimeoutExpired:
                code = -1
                for q in ranks:
                    q.kill()
            if code != 0 and failed is None:
                failed = r
        texts = []
        for log in logs:
            log.seek(0)
            texts.append(log.read())
            log.close()
        if failed is not None:
            return None, texts[failed][-4000:]
        with open(os.path.join(tmp, "result.0")) as f:
            return json.load(f), "\n".join(line for line in texts[0].splitlines() if "stats:" in line)


def main():
    a = arguments()
    if a.rank is not None:
        return work(a)
    if not os.path.exists(a.lib):
        print(f"decode: {a.lib} is not there: make nccl", file=sys.stderr)
        return 3
    rates, tokens, stats = {False: [], True: []}, {}, ""
    for preload in [False, True, False, True]:
        result, text = job(a, preload)
        if result is None:
            if preload:
                print(f"FAIL decode: a rank ended with an error:\n{text}")
                return 1
            print(f"decode: over NCCL alone it fails:\n{text}", file=sys.stderr)
            return 3
        rates[preload].append(result["rate"])
        tokens[preload] = result["tokens"]
        stats = text or stats
    plain, ours = max(rates[False]), max(rates[True])
    print(f"decode, {a.gpus} GPUs, batch {a.batch}, {a.layers} layers of {a.width}: "
          f"{plain:.0f} tokens/s over NCCL, {ours:.0f} through the library, {ours / plain:.2f} times as many")
    print(stats)
    differ = next((i for i, (p, o) in enumerate(zip(tokens[False], tokens[True])) if p != o), None)
    if differ is None:
        print(f"PASS decode, batch {a.batch}: the same {a.tokens} tokens")
        return 0
    if a.gpus > 2:
        print(f"decode, batch {a.batch}: tokens differ from step {differ} on, as sums in another order may")
        return 0
    print(f"FAIL decode, batch {a.batch}: tokens differ from step {differ} on")
    return 1


if __name__ == "__main__":
    sys.exit(main())

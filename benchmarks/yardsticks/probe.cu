// Measures what a launch, a wait and a word to the other GPU cost by themselves, on
// two GPUs; see usage below.
#include <cstring>
#include <string>

#include "gpus.h"
#include "words.h"

namespace {

const char usage[] =
    "usage: probe [--launches N] [--devices A,B]\n"
    "prints probe,blocks,threads,us,min,max: us a launch, the median of 20 replays of a graph of\n"
    "N launches (200) on each GPU. Ends with 3 if this machine can't.\n";

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads) empty() {}

// heavy does nothing, but for all that the compiler knows needs some hundred registers.
__global__ void __launch_bounds__(kThreads) heavy(const uint64_t *p, uint64_t *to) {
  extern __shared__ uint64_t room[];
  if (p == nullptr) return;
  constexpr int kValues = 46;
  uint64_t v[kValues];
#pragma unroll
  for (int i = 0; i < kValues; i++) v[i] = load8(p + i * kThreads + threadIdx.x);
  room[threadIdx.x] = v[0];
  __syncthreads();
  const uint64_t turn = room[threadIdx.x ^ 1];
#pragma unroll
  for (int i = 0; i < kValues; i++) store8(to + i * kThreads + threadIdx.x, v[i] ^ turn);
}

// chain follows a chain of addresses; every word of it holds the address of the next.
__global__ void __launch_bounds__(kThreads) chain(const uint64_t *p, int loads, uint64_t *to) {
  uint64_t at = reinterpret_cast<uint64_t>(p);
  for (int i = 0; i < loads; i++) at = load8(reinterpret_cast<const void *>(at));
  if (at == 1) *to = at;
}

// early waits, in the kernel, for the end of the launch before, where it was allowed to
// start before that.
__global__ void __launch_bounds__(kThreads) early() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// work passes cycles of the clock.
__device__ void work(int cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
}

// store_around works, with a store of every thread to the other GPU before, after, or
// not at all.
__global__ void __launch_bounds__(kThreads) store_around(uint64_t *to, bool before, bool after) {
  if (before) store_relaxed(to + blockIdx.x * kThreads + threadIdx.x, 1);
  work(4000);
  if (after) store_relaxed(to + blockIdx.x * kThreads + threadIdx.x, 1);
}

// barrier and fence repeat one thing; the fence has a store to the other GPU before it
// where to is given.
__global__ void __launch_bounds__(kThreads) barrier(int times) {
  for (int i = 0; i < times; i++) __syncthreads();
}
__global__ void __launch_bounds__(kThreads) fence(int times, uint64_t *to) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < times; i++) {
    if (to) store_relaxed(to, uint64_t(i));
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  }
}

// Ends of a wire between block b of this GPU and of the other: mine is written by the
// other, and base counts the rounds of earlier launches.
struct Wire {
  uint64_t *mine, *theirs, *base;
};

// ping bounces a word: GPU 0 stores, GPU 1 waits for it and stores back.
template <bool kOrdered>
__global__ void __launch_bounds__(kThreads) ping(Wire w, int rank, int rounds) {
  if (threadIdx.x == 0) {
    const uint64_t base = w.base[blockIdx.x];
    for (int i = 1; i <= rounds; i++) {
      for (int turn = 0; turn < 2; turn++) {
        if (turn == rank) {
          if (kOrdered)
            store_release(w.theirs + 16 * blockIdx.x, base + i);
          else
            store_relaxed(w.theirs + 16 * blockIdx.x, base + i);
        } else {
          for (Patience patience;;) {
            const uint64_t *p = w.mine + 16 * blockIdx.x;
            if ((kOrdered ? load_acquire(p) : load_relaxed(p)) >= base + i) break;
            patience.lose();
          }
        }
      }
    }
    w.base[blockIdx.x] = base + rounds;
  }
}

// exchange does the same at once in both directions: what every collective between
// two GPUs needs at least.
template <bool kWholeBlock>
__global__ void __launch_bounds__(kThreads) exchange(Wire w) {
  const uint64_t base = w.base[blockIdx.x];
  if (threadIdx.x == 0) store_relaxed(w.theirs + 16 * blockIdx.x, base + 1);
  if (kWholeBlock || threadIdx.x == 0)
    for (Patience p; load_relaxed(w.mine + 16 * blockIdx.x) <= base;) p.lose();
  if (kWholeBlock) __syncthreads();
  if (threadIdx.x == 0) w.base[blockIdx.x] = base + 1;
}

constexpr int kMaxBlocks = 64;

class Probe {
 public:
  Probe(int launches, int a, int b) : launches_(launches), gpus_(a, b) {
    for (int r = 0; r < 2; r++) {
      wire_[r] = reinterpret_cast<uint64_t *>(gpus_.alloc(r, kMaxBlocks * 16 * 8));
      base_[r] = reinterpret_cast<uint64_t *>(gpus_.alloc(r, kMaxBlocks * 8));
      room_[r] = reinterpret_cast<uint64_t *>(
          gpus_.alloc(r, (kMaxBlocks * kThreads + kChain * kApart) * 8));
    }
    link_chain();
  }

  void all() {
    launches();
    loads();
    stores();
    inside();
    wires();
  }

 private:
  static constexpr int kChain = 4, kApart = 512;  // words between links: no line is shared

  void link_chain() {
    for (int r = 0; r < 2; r++) {
      gpus_.use(r);
      for (int i = 0; i < kChain; i++) {
        uint64_t *const next = room_[r] + (i + 1) % kChain * kApart;
        check(cudaMemcpy(room_[r] + i * kApart, &next, sizeof next, cudaMemcpyHostToDevice),
              "copying");
      }
    }
  }

  // line measures one kernel; enqueue starts it on GPU r.
  void line(const std::string &name, int blocks, int threads,
            const std::function<void(int r)> &enqueue) {
    for (int r = 0; r < 2; r++) {
      gpus_.clear(r, wire_[r], kMaxBlocks * 16 * 8);
      gpus_.clear(r, base_[r], kMaxBlocks * 8);
    }
    const Spread t = gpus_.time(launches_, 20, [&](int r, int) { enqueue(r); });
    std::printf("%s,%d,%d,%.3f,%.3f,%.3f\n", name.c_str(), blocks, threads, t.median, t.least,
                t.most);
    std::fflush(stdout);
  }

  cudaStream_t stream(int r) const { return gpus_.streams[r]; }

  void launches() {
    for (int threads : {32, kThreads})
      for (int blocks : {1, 32, 64})
        line("empty", blocks, threads,
             [&](int r) { launch(empty, {blocks, threads, 0, false, false}, stream(r)); });
    for (int blocks : {1, 32, 64})
      line("empty cooperative", blocks, kThreads,
           [&](int r) { launch(empty, {blocks, kThreads, 0, true, false}, stream(r)); });
    const uint64_t *const none = nullptr;
    for (bool cooperative : {false, true})
      for (int blocks : {1, 64})
        line(std::string("100 registers and 48 KiB") + (cooperative ? " cooperative" : ""), blocks,
             kThreads, [&](int r) {
               launch(heavy, {blocks, kThreads, 48 << 10, cooperative, false}, stream(r), none,
                      room_[r]);
             });
    for (int blocks : {1, 64})
      line("empty started early", blocks, kThreads,
           [&](int r) { launch(early, {blocks, kThreads, 0, false, true}, stream(r)); });
  }

  void loads() {
    for (int blocks : {1, 64})
      for (int n : {0, 1, 2, 3})
        line("dependent loads: " + std::to_string(n), blocks, kThreads, [&](int r) {
          launch(chain, {blocks, kThreads, 0, false, false}, stream(r),
                 static_cast<const uint64_t *>(room_[r]), n, room_[r]);
        });
  }

  void stores() {
    for (int blocks : {1, 64})
      for (int when : {0, 1, 2})
        line(when == 0   ? "4000 cycles"
             : when == 1 ? "remote store then 4000 cycles"
                         : "4000 cycles then remote store",
             blocks, kThreads, [&](int r) {
               launch(store_around, {blocks, kThreads, 0, false, false}, stream(r), peer_room(r),
                      when == 1, when == 2);
             });
  }

  // The words behind the chain.
  uint64_t *peer_room(int r) const { return room_[1 - r] + kChain * kApart; }

  void inside() {
    const How one = {1, kThreads, 0, false, false};
    uint64_t *const none = nullptr;
    line("100 barriers", 1, kThreads, [&](int r) { launch(barrier, one, stream(r), 100); });
    line("10 fences", 1, kThreads, [&](int r) { launch(fence, one, stream(r), 10, none); });
    line("10 remote stores with fences", 1, kThreads,
         [&](int r) { launch(fence, one, stream(r), 10, peer_room(r)); });
  }

  void wires() {
    for (int rounds : {1, 101}) {
      const std::string n = std::to_string(rounds);
      line("ping relaxed: " + n, 1, kThreads, [&](int r) {
        launch(ping<false>, {1, kThreads, 0, false, false}, stream(r), wire(r), r, rounds);
      });
      line("ping released and acquired: " + n, 1, kThreads, [&](int r) {
        launch(ping<true>, {1, kThreads, 0, false, false}, stream(r), wire(r), r, rounds);
      });
    }
    for (bool cooperative : {false, true})
      for (int blocks : {1, 16, 64}) {
        const How how = {blocks, kThreads, 0, cooperative, false};
        const std::string end = cooperative ? " cooperative" : "";
        line("exchange by one thread" + end, blocks, kThreads,
             [&](int r) { launch(exchange<false>, how, stream(r), wire(r)); });
        line("exchange by all threads" + end, blocks, kThreads,
             [&](int r) { launch(exchange<true>, how, stream(r), wire(r)); });
      }
  }

  Wire wire(int r) const { return {wire_[r], wire_[1 - r], base_[r]}; }

  const int launches_;
  Gpus gpus_;
  uint64_t *wire_[2], *base_[2], *room_[2];
};

}  // namespace

int main(int argc, char **argv) {
  int launches = 200, a = 0, b = 1;
  for (int i = 1; i < argc; i += 2) {
    const bool is_launches = std::strcmp(argv[i], "--launches") == 0;
    const bool is_devices = std::strcmp(argv[i], "--devices") == 0;
    const bool good =
        i + 1 < argc && ((is_launches && std::sscanf(argv[i + 1], "%d", &launches) == 1) ||
                         (is_devices && std::sscanf(argv[i + 1], "%d,%d", &a, &b) == 2));
    if (!good || launches < 1 || launches > 1 << 16) {
      std::fputs(usage, stderr);
      return 2;
    }
  }
  // A kernel loaded while another one spins could wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  std::printf("probe,blocks,threads,us,min,max\n");
  Probe(launches, a, b).all();
  return 0;
}

// Measures the hand-written kernels of kernels.h on two GPUs; see usage below.
#include <cstring>
#include <string>

#include "gpus.h"
#include "kernels.h"

namespace {

const char usage[] =
    "usage: allreduce [--kernels LIST] [--blocks LIST] [--min BYTES] [--max BYTES] [--factor N]\n"
    "                 [--threads N] [--launches N] [--cooperative] [--devices A,B]\n"
    "prints kernel,blocks,bytes,us,min,max,wrong: us a launch, the median of 20 replays of a\n"
    "graph, in a process that drives both GPUs. Kernels: ll ll-argument ll128 ll128-argument\n"
    "simple two-shot. Sizes are powers of --factor (4) from --min (1024) to --max (1 GiB), each\n"
    "a multiple of 32. Ends with 1 if a value was wrong, 3 if this machine can't.\n";

// Kernel is one of kernels.h.
struct Kernel {
  const char *name;
  void (*run)(Place, uint64_t);
  int64_t stage_per_120;  // bytes of staging memory for 120 bytes of data
  int64_t word;           // bytes that a thread moves at once
  std::vector<int> blocks;
};

const std::vector<Kernel> kernels = {
    {"ll", ll<false>, 240, 8, {1, 2, 4, 8, 16, 32}},
    {"ll-argument", ll<true>, 240, 8, {1, 4, 16}},
    {"ll128", ll128<false>, 128, 15, {1, 4, 16, 32, 64}},
    {"ll128-argument", ll128<true>, 128, 15, {1, 4, 16, 64}},
    {"simple", simple, 120, 16, {1, 4, 16, 64}},
    {"two-shot", two_shot, 0, 16, {1, 4, 16, 64, 128}},
};

struct Options {
  std::vector<std::string> kernels;
  std::vector<int> blocks;
  int64_t min = 1024, max = int64_t(1) << 30, factor = 4;
  int threads = 0, launches = 0, devices[2] = {0, 1};
  bool cooperative = false;
};

// value is an input: a whole number, so that sums are exact, and another one in every
// round, so that what an earlier launch left is wrong.
__device__ float value(int rank, int64_t i, uint32_t round) {
  const uint32_t x = (uint32_t(i) + 0x9e3779b9u * round) * 2654435761u + uint32_t(rank) * 40503u;
  return float(x >> 12 & 0xffff);
}

__global__ void fill(float *in, int64_t n, int rank, uint32_t round) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    in[i] = value(rank, i, round);
}

// compare counts sums that are not right, and inputs that were touched.
__global__ void compare(const float *in, const float *out, int64_t n, int rank, uint32_t round,
                        unsigned long long *wrong) {
  unsigned long long bad = 0;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x)
    bad += out[i] != value(0, i, round) + value(1, i, round) || in[i] != value(rank, i, round);
  if (bad) atomicAdd(wrong, bad);
}

// Bench holds the buffers of one kernel.
class Bench {
 public:
  Bench(Gpus *gpus, const Kernel &kernel, const Options &o) : gpus_(gpus), kernel_(kernel), o_(o) {
    stage_bytes_ = 2 * half(o.max) + 256;
    for (int r = 0; r < 2; r++) {
      in_[r] = gpus->alloc(r, o.max);
      out_[r] = gpus->alloc(r, o.max);
      stage_[r] = gpus->alloc(r, stage_bytes_);
      words_[r] = reinterpret_cast<uint64_t *>(gpus->alloc(r, kWords * 8));
    }
  }
  ~Bench() {
    for (int r = 0; r < 2; r++) {
      gpus_->release(r, in_[r]);
      gpus_->release(r, out_[r]);
      gpus_->release(r, stage_[r]);
      gpus_->release(r, words_[r]);
    }
  }

  // measure prints a line, and returns whether all values were right.
  bool measure(int64_t bytes, int blocks) {
    How how = {blocks, threads(bytes, blocks), 0, o_.cooperative, false};
    restart(bytes);
    const unsigned long long wrong = verify(bytes, how);
    restart(bytes);
    const int launches = o_.launches > 0 ? o_.launches : usual(bytes);
    const Spread t =
        gpus_->time(launches, 20, [&](int r, int k) { enqueue(r, bytes, how, uint64_t(k)); });
    std::printf("%s,%d,%lld,%.3f,%.3f,%.3f,%llu\n", kernel_.name, blocks,
                static_cast<long long>(bytes), t.median, t.least, t.most, wrong);
    std::fflush(stdout);
    return wrong == 0;
  }

 private:
  static constexpr int kWords = 2 * kMaxBlocks + 1;

  int64_t half(int64_t bytes) const {
    return ((bytes + 119) / 120 * kernel_.stage_per_120 + 255) / 256 * 256;
  }

  // usual is what "mscclsh bench" makes a graph of, and an even number: kernels that
  // take the number of the launch as an argument count from the graph's start.
  static int usual(int64_t bytes) {
    return bytes <= 1 << 20 ? 200 : bytes <= 16 << 20 ? 50 : bytes <= 128 << 20 ? 10 : 4;
  }

  int threads(int64_t bytes, int blocks) const {
    if (o_.threads > 0) return o_.threads;
    const int64_t words = (bytes + kernel_.word * blocks - 1) / (kernel_.word * blocks);
    return int(std::min<int64_t>(kMaxThreads, (words + 31) / 32 * 32));
  }

  // restart makes all blocks' numbers and flags 0 again: another count of blocks
  // divides the data otherwise.
  void restart(int64_t bytes) {
    for (int r = 0; r < 2; r++) {
      gpus_->clear(r, words_[r], kWords * 8);
      gpus_->clear(r, stage_[r], std::min(stage_bytes_, 2 * half(bytes)));
    }
  }

  void enqueue(int r, int64_t bytes, const How &how, uint64_t number) {
    Place p = {};
    p.in = in_[r];
    p.peer_in = in_[1 - r];
    p.out = out_[r];
    p.peer_out = out_[1 - r];
    p.stage = stage_[r];
    p.peer_stage = stage_[1 - r];
    p.flags = words_[r];
    p.peer_flags = words_[1 - r];
    p.launches = words_[r] + kMaxBlocks;
    p.half = half(bytes);
    p.bytes = bytes;
    p.rank = r;
    launch(kernel_.run, how, gpus_->streams[r], p, number);
  }

  // verify runs some launches on new inputs each, with no wait between them.
  unsigned long long verify(int64_t bytes, const How &how) {
    const int64_t n = bytes / 4;
    unsigned long long *wrong[2], sum = 0;
    for (int r = 0; r < 2; r++) {
      wrong[r] = reinterpret_cast<unsigned long long *>(words_[r] + 2 * kMaxBlocks);
    }
    for (uint32_t round = 0; round < 12; round++) {
      for (int r = 0; r < 2; r++) {
        gpus_->use(r);
        float *in = reinterpret_cast<float *>(in_[r]), *out = reinterpret_cast<float *>(out_[r]);
        fill<<<264, 256, 0, gpus_->streams[r]>>>(in, n, r, round);
        enqueue(r, bytes, how, round);
        compare<<<264, 256, 0, gpus_->streams[r]>>>(in, out, n, r, round, wrong[r]);
        check(cudaGetLastError(), "launching a kernel");
      }
    }
    gpus_->sync();
    for (int r = 0; r < 2; r++) {
      unsigned long long w = 0;
      gpus_->use(r);
      check(cudaMemcpy(&w, wrong[r], sizeof w, cudaMemcpyDeviceToHost), "copying");
      sum += w;
    }
    return sum;
  }

  Gpus *gpus_;
  const Kernel &kernel_;
  const Options &o_;
  int64_t stage_bytes_ = 0;
  unsigned char *in_[2], *out_[2], *stage_[2];
  uint64_t *words_[2];  // flags, numbers of launches, the count of wrong elements
};

std::vector<std::string> split(const char *list) {
  std::vector<std::string> out(1);
  for (; *list; list++) {
    if (*list == ',')
      out.emplace_back();
    else
      out.back() += *list;
  }
  return out;
}

[[noreturn]] void bad_call(const char *what) {
  std::fprintf(stderr, "yardsticks: %s\n%s", what, usage);
  std::exit(2);
}

int64_t number(const char *text, int64_t least, int64_t most) {
  char *end = nullptr;
  const long long n = std::strtoll(text, &end, 10);
  if (end == text || *end || n < least || n > most)
    bad_call((std::string("got ") + text + ", want a number from " + std::to_string(least) +
              " to " + std::to_string(most))
                 .c_str());
  return n;
}

Options parse(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string flag = argv[i];
    if (flag == "--cooperative") {
      o.cooperative = true;
      continue;
    }
    if (i + 1 == argc) bad_call((flag + " is no flag, or wants a value").c_str());
    const char *v = argv[++i];
    if (flag == "--kernels") {
      o.kernels = split(v);
    } else if (flag == "--blocks") {
      for (const std::string &b : split(v))
        o.blocks.push_back(int(number(b.c_str(), 1, kMaxBlocks)));
    } else if (flag == "--min") {
      o.min = number(v, 32, int64_t(1) << 34);
    } else if (flag == "--max") {
      o.max = number(v, 32, int64_t(1) << 34);
    } else if (flag == "--factor") {
      o.factor = number(v, 2, 1 << 20);
    } else if (flag == "--threads") {
      o.threads = int(number(v, 32, kMaxThreads));
    } else if (flag == "--launches") {
      o.launches = 2 * int((number(v, 4, 1 << 16) + 1) / 2);
    } else if (flag == "--devices") {
      const std::vector<std::string> ids = split(v);
      if (ids.size() != 2) bad_call("--devices wants two numbers");
      for (int r = 0; r < 2; r++) o.devices[r] = int(number(ids[size_t(r)].c_str(), 0, 63));
    } else {
      bad_call((flag + " is no flag").c_str());
    }
  }
  if (o.threads % 32 != 0) bad_call("--threads wants a multiple of 32");
  if (o.min % 32 != 0 || o.min > o.max) bad_call("--min wants a multiple of 32, at most --max");
  for (const std::string &k : o.kernels)
    if (std::none_of(kernels.begin(), kernels.end(), [&](const Kernel &x) { return k == x.name; }))
      bad_call((k + " is no kernel").c_str());
  return o;
}

}  // namespace

int main(int argc, char **argv) {
  const Options o = parse(argc, argv);
  // A kernel loaded while another one spins could wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  Gpus gpus(o.devices[0], o.devices[1]);
  bool right = true;
  std::printf("kernel,blocks,bytes,us,min,max,wrong\n");
  for (const Kernel &k : kernels) {
    if (!o.kernels.empty() &&
        std::find(o.kernels.begin(), o.kernels.end(), k.name) == o.kernels.end())
      continue;
    Bench bench(&gpus, k, o);
    for (int64_t bytes = o.min; bytes <= o.max; bytes *= o.factor)
      for (int blocks : o.blocks.empty() ? k.blocks : o.blocks)
        // A block alone with much is slow, and known to be.
        if (!o.blocks.empty() || bytes / blocks <= 16 << 20) right &= bench.measure(bytes, blocks);
  }
  if (!right) std::fprintf(stderr, "yardsticks: wrong values\n");
  return right ? 0 : 1;
}

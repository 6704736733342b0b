// Parts of the library on their own: what the environment says, what ranks conclude from
// each other's words, which messages are an alltoall, the board that processes share, the
// map of communicators, windows, and the sizes of calls.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "../src/board.h"
#include "../src/comms.h"
#include "../src/group.h"
#include "../src/options.h"
#include "../src/setup.h"
#include "../src/windows.h"
#include "bundle.h"
#include "check.h"

using namespace mscclsh::nccl;

namespace {

std::map<std::string, std::string> variables;

const char *variable(const char *name) {
  const auto v = variables.find(name);
  return v == variables.end() ? nullptr : v->second.c_str();
}

Options read(const std::map<std::string, std::string> &from) {
  variables = from;
  return read_options(variable);
}

void test_options() {
  const Options none = read({});
  EXPECT(none.on && none.deny == 0 && none.wrong.empty() && !none.group_alltoall, "nothing set");
  EXPECT(none.scratch == 64 << 20 && none.watchdog_ns == 1800000000000, "defaults");
  EXPECT(none.group_direct == 16 << 20, "defaults");
  EXPECT(read({{"MSCCLSH_GROUP_DIRECT", "0"}}).group_direct == 0, "at any size");
  const Options all = read({{"MSCCLSH_NCCL", "0"},
                            {"MSCCLSH_DENY", "allreduce,reduce_scatter"},
                            {"MSCCLSH_SCRATCH", "4096"},
                            {"MSCCLSH_WATCHDOG", "5"},
                            {"MSCCLSH_LOG", "setup,choice:/dir/a:b"},
                            {"MSCCLSH_TABLE", "t"}});
  EXPECT(!all.on && all.deny == (1 << 0 | 1 << 2) && all.scratch == 4096, "all set");
  EXPECT(all.watchdog_ns == 5000000000 && all.log_choice && all.log_setup, "all set");
  EXPECT(all.log_file == "/dir/a:b" && all.table == "t" && all.wrong.empty(), "all set");
  EXPECT(read({{"MSCCLSH_DENY", "all"}}).deny == ~0u, "all denied");
  EXPECT(none.digest() != read({{"MSCCLSH_DENY", "gather"}}).digest(), "denying counts");
  EXPECT(none.digest() == read({{"MSCCLSH_LOG", "choice"}}).digest(), "logging does not");
  for (const auto &bad : std::map<std::string, std::string>{{"MSCCLSH_NCCL", "yes"},
                                                            {"MSCCLSH_DENY", "allreduc"},
                                                            {"MSCCLSH_SCRATCH", "1MB"},
                                                            {"MSCCLSH_SCRATCH", "-1"},
                                                            {"MSCCLSH_WATCHDOG", "9999999999999"},
                                                            {"MSCCLSH_LOG", "choices"}}) {
    const Options o = read({bad});
    EXPECT(o.wrong.find(bad.first) == 0 && o.wrong.find("want") != std::string::npos, "%s: %s",
           bad.first.c_str(), o.wrong.c_str());
  }
}

// ranks are Hellos of ranks that belong together, in so many processes.
std::vector<Hello> ranks(int32_t n, int32_t processes) {
  std::vector<Hello> all;
  for (int32_t r = 0; r < n; r++) {
    Hello h = {};
    h.magic = kMagic;
    h.process = uint64_t(100 + r % processes);
    h.pid = 1000 + r % processes;
    h.host = 7;
    h.gpu = uint64_t(50 + r);
    h.device = r;
    h.table = 9;
    h.max_ctas = 32 - r;
    h.multiprocessors = 132;
    h.blocking = 1;
    all.push_back(h);
  }
  return all;
}

void test_judge(const Table &t) {
  const Verdict good = judge(ranks(4, 2), 1, &t);
  EXPECT(good.together && good.why.empty(), "%s", good.why.c_str());
  EXPECT(good.max_ctas == 29, "rank 3 allows least: %d", good.max_ctas);
  EXPECT((good.layout.process_of == std::vector<int32_t>{0, 1, 0, 1}), "two processes in turn");
  EXPECT((good.layout.pids == std::vector<int32_t>{1000, 1001}), "their numbers");
  EXPECT((good.layout.local == std::vector<int32_t>{1, 3}) && good.layout.self == 1, "rank 1's");
  struct {
    const char *what, *word;
    void (*change)(std::vector<Hello> &);
    bool plain;
  } const bad[] = {
      {"another table", "rank 2 has another table", [](auto &a) { a[2].table = 8; }, false},
      {"another version", "version", [](auto &a) { a[1].magic = 1; }, false},
      {"another runtime", "version of the runtime", [](auto &a) { a[3].abi = 1; }, false},
      {"another build", "build", [](auto &a) { a[3].build = 1; }, false},
      {"other options", "MSCCLSH_DENY", [](auto &a) { a[3].options = 1; }, false},
      {"a rank that failed", "rank 3 can't", [](auto &a) { a[3].failed = 1; }, false},
      {"two hosts", "two machines", [](auto &a) { a[3].host = 1; }, true},
      {"one GPU", "ranks 1 and 3 share a GPU", [](auto &a) { a[3].gpu = a[1].gpu; }, true},
      {"another kind of GPU", "another kind", [](auto &a) { a[3].major = 1; }, true},
      {"ranks that no entry is for", "no entry of the table is for 3 ranks",
       [](auto &a) { a.pop_back(); }, true},
  };
  for (const auto &b : bad) {
    std::vector<Hello> all = ranks(4, 2);
    b.change(all);
    for (int32_t r = 0; r < int32_t(all.size()); r++) {
      const Verdict v = judge(all, r, &t);
      EXPECT(!v.together && v.plain == b.plain && v.why.find(b.word) != std::string::npos,
             "%s, on rank %d: %s", b.what, r, v.why.c_str());
    }
  }
}

Message message(bool sends, unsigned char *at, int peer) {
  return {sends, sends ? at : nullptr, sends ? nullptr : at, 4, ncclFloat, peer, nullptr, nullptr};
}

// exchange is what a rank of three does in an alltoall of 4 floats to each.
std::vector<Message> exchange(unsigned char *in, unsigned char *out) {
  std::vector<Message> all;
  for (int p = 2; p >= 0; p--) {
    all.push_back(message(true, in + 16 * p, p));
    all.push_back(message(false, out + 16 * p, p));
  }
  return all;
}

void test_alltoall() {
  static unsigned char in[64], out[64];
  Request r;
  EXPECT(as_alltoall(exchange(in, out), 3, &r), "each to each");
  EXPECT(r.collective == MSCCLSH_ALLTOALL && r.send == in && r.recv == out && r.count == 4 &&
             r.dtype == 0,
         "the blocks' begin, size and type");
  const auto refused = [&](const char *what, void (*change)(std::vector<Message> &)) {
    std::vector<Message> all = exchange(in, out);
    change(all);
    EXPECT(!as_alltoall(all, 3, &r), "%s", what);
  };
  refused("one is missing", [](auto &a) { a.pop_back(); });
  refused("one comes twice", [](auto &a) { a[2] = a[0]; });
  refused("one is longer", [](auto &a) { a[3].count = 5; });
  refused("one is of another type", [](auto &a) { a[3].type = ncclInt; });
  refused("one is on another stream",
          [](auto &a) { a[3].stream = reinterpret_cast<cudaStream_t>(in); });
  refused("a block lies elsewhere", [](auto &a) { a[0].send = in; });
  refused("blocks received lie elsewhere", [](auto &a) { a[1].recv = out; });
  refused("a peer is no rank", [](auto &a) { a[0].peer = 3; });
  refused("there is nothing in it", [](auto &a) {
    for (Message &m : a) m.count = 0;
  });
  EXPECT(!as_alltoall(exchange(in, out), 4, &r), "of four ranks one is missing");
}

// over_board runs f in so many threads, each as a process of its own would be.
template <class F>
void over_board(int32_t n, F f) {
  std::unique_ptr<BoardFile> first(new BoardFile(42));
  std::vector<std::unique_ptr<Board>> boards;
  for (int32_t p = 0; p < n; p++)
    boards.emplace_back(
        new Board(std::unique_ptr<BoardFile>(new BoardFile(getpid(), first->fd(), 42)),
                  std::vector<int32_t>(size_t(n), getpid()), p));
  std::vector<std::thread> threads;
  for (int32_t p = 0; p < n; p++) threads.emplace_back([&, p] { f(*boards[size_t(p)], p); });
  for (auto &t : threads) t.join();
}

void test_board() {
  over_board(3, [](Board &b, int32_t self) {
    for (int32_t round = 0; round < 200; round++) {
      // Sizes below, at and above what one part of an exchange holds, and nothing.
      const size_t sizes[] = {0, 1, 100, 16384, 16385, 40000};
      const size_t n = sizes[round % 6];
      std::vector<unsigned char> mine(n, (unsigned char)(self + round)), all(3 * n);
      EXPECT(b.exchange(mine.data(), all.data(), int64_t(n)), "round %d", round);
      for (size_t i = 0; i < 3 * n; i++)
        if (all[i] != (unsigned char)(int32_t(i / n) + round)) {
          EXPECT(false, "round %d: byte %zu is %d", round, i, all[i]);
          break;
        }
    }
    EXPECT(b.leave(int64_t(20) * 1000000000), "all come");
    EXPECT(b.all_left(), "all have left");
  });
  bool refused = false;
  try {
    const BoardFile one(1);
    const BoardFile other(getpid(), one.fd(), 2);
  } catch (const std::exception &) {
    refused = true;
  }
  EXPECT(refused, "memory of another communicator");
}

// One that does not come in time, or at all, holds nobody up, and all agree that they did
// not come together.
void test_leaving_apart() {
  over_board(2, [](Board &b, int32_t self) {
    if (self == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT(!b.leave(self == 0 ? 50 * 1000000 : int64_t(20) * 1000000000), "not together");
  });
  BoardFile *const file = new BoardFile(5);
  const pid_t child = fork();
  if (child == 0) {
    usleep(100 * 1000);
    _exit(0);
  }
  Board b(std::unique_ptr<BoardFile>(file), {getpid(), child}, 0);
  int mine = 1, all[2];
  EXPECT(!b.exchange(&mine, all, sizeof mine), "a process that ended answers no more");
  EXPECT(!b.leave(int64_t(20) * 1000000000) && !b.exchange(&mine, all, sizeof mine), "nor later");
  EXPECT(b.all_left(), "it has left");
  waitpid(child, nullptr, 0);
}

void test_map() {
  const auto handle = [](int i) { return reinterpret_cast<ncclComm_t>(uintptr_t(i) * 64 + 64); };
  EXPECT(find(handle(1)) == nullptr && find(nullptr) == nullptr, "nothing is there");
  std::vector<Rank *> all;
  for (int i = 0; i < 1000; i++) {
    all.push_back(new Rank(handle(i), default_config()));
    add(all.back());
  }
  for (int i = 0; i < 1000; i++) EXPECT(find(handle(i)) == all[size_t(i)], "communicator %d", i);
  for (int i = 0; i < 1000; i += 2) EXPECT(take(handle(i)).get() == all[size_t(i)], "taking %d", i);
  for (int i = 0; i < 1000; i++)
    EXPECT(find(handle(i)) == (i % 2 ? all[size_t(i)] : nullptr), "communicator %d", i);
  for (int round = 0; round < 100000; round++) {  // one address again and again
    Rank *const r = new Rank(handle(0), default_config());
    add(r);
    if (find(handle(0)) != r || take(handle(0)).get() != r) EXPECT(false, "round %d", round);
  }
  for (int i = 1; i < 1000; i += 2) take(handle(i));
}

// Windows of two ranks, where they lie on each, and what follows.
void test_alike() {
  const struct {
    const char *what;
    std::vector<Span> a, b;
    bool want;
  } cases[] = {
      {"apart", {{100, 10}, {500, 10}}, {{110, 10}, {490, 10}}, true},
      {"the same", {{100, 10}, {500, 10}}, {{100, 10}, {500, 10}}, true},
      {"a part", {{100, 10}, {500, 10}}, {{104, 10}, {504, 10}}, true},
      {"from before", {{100, 10}, {500, 10}}, {{95, 10}, {495, 10}}, true},
      {"other parts", {{100, 10}, {500, 10}}, {{104, 10}, {505, 10}}, false},
      {"on the first alone", {{100, 10}, {500, 10}}, {{109, 10}, {510, 10}}, false},
      {"on the second alone", {{100, 10}, {500, 10}}, {{110, 10}, {509, 10}}, false},
      // Of the first one's 90 bytes only 10 are in the window.
      {"beyond what all have", {{100, 90}, {500, 10}}, {{110, 10}, {900, 10}}, true},
  };
  for (const auto &c : cases) {
    EXPECT(alike(c.a, 10, c.b, 10) == c.want, "windows: %s", c.what);
    EXPECT(alike(c.b, 10, c.a, 10) == c.want, "windows the other way round: %s", c.what);
  }
}

void test_windows() {
  static unsigned char memory[4 * kPage];
  Windows w;
  const auto window = [&](int64_t from, int64_t bytes, int32_t number) {
    return Window{reinterpret_cast<uintptr_t>(memory) + uintptr_t(from),
                  bytes,
                  reinterpret_cast<ncclWindow_t>(uintptr_t(number) + 1),
                  number,
                  nullptr,
                  0};
  };
  const auto at = [&](int64_t from, int64_t bytes) {
    const Window *found = w.at(memory + from, bytes);
    return found == nullptr ? -1 : found->number;
  };
  EXPECT(at(0, 1) == -1, "no window");
  w.add(window(0, 4096, 0));
  w.add(window(8192, 4096, 1));
  EXPECT(at(0, 4096) == 0 && at(4095, 1) == 0 && at(8192, 1) == 1, "inside");
  EXPECT(at(0, 4097) == -1 && at(4096, 1) == -1 && at(8191, 2) == -1, "beyond");
  std::vector<int32_t> gone;
  const auto note = [&](const Window &x) { gone.push_back(x.number); };
  // The same memory twice, a part of it, and more than it: whichever is removed, what the
  // others hold is held.
  w.add(window(0, 4096, 2));
  w.add(window(1024, 1024, 3));
  w.add(window(2048, 8192, 4));
  EXPECT(at(0, 4096) >= 0 && at(1024, 1025) >= 0 && at(1024, 1024) >= 0, "whole and part");
  EXPECT(at(2048, 8192) == 4 && at(2047, 2049) >= 0 && at(2047, 2050) == -1, "the longest");
  for (const int32_t n : {2, 4, 3}) {
    w.remove_one(n, note);
    EXPECT(at(0, 4096) == 0 && at(8192, 1) == 1, "without %d", n);
  }
  EXPECT(gone == std::vector<int32_t>({2, 4, 3}) && at(4096, 1) == -1, "they are gone");
  gone.clear();
  w.remove(reinterpret_cast<ncclWindow_t>(uintptr_t(1)), note);
  EXPECT(gone == std::vector<int32_t>{0} && at(0, 1) == -1 && at(8192, 1) == 1, "one is removed");
  note_allocated(memory + 8192, 100);
  note_freed(memory + 8192);
  w.remove_freed(note);
  EXPECT((gone == std::vector<int32_t>{0, 1}) && w.empty(), "the memory of the other is freed");
  note_allocated(memory + 8192, 100);
  w.add(window(8192, 4096, 2));
  w.remove_freed(note);
  EXPECT(at(8192, 1) == 2, "what was freed before is of no concern");
}

void test_sizes() {
  EXPECT(call_bytes(MSCCLSH_ALLREDUCE, 10, 1, 8) == 80, "10 fp64");
  EXPECT(call_bytes(MSCCLSH_ALLGATHER, 10, 2, 8) == 160, "8 blocks of 10 fp16");
  EXPECT(call_bytes(MSCCLSH_GATHER, 10, 0, 4) == 160, "4 blocks of 10 fp32");
  EXPECT(call_bytes(MSCCLSH_ALLTOALL, UINT64_MAX / 4, 1, 8) == INT64_MAX, "no memory holds that");
  mscclsh_table_program p = {};
  p.count_chunks = 4;
  p.slots = 8;
  p.slot_bytes = 1024;
  p.max_regime = 71;
  EXPECT(chunk_bytes(p, 400, 0) == 400, "a quarter of 400 fp32");
  EXPECT(regime(p, 400) == 2 && regime(p, 1024) == 1 && regime(p, 5000) == 1,
         "whole chunks in a slot");
  EXPECT(regime(p, 1) == 71, "at most 71");
  p.max_regime = 3;
  EXPECT(regime(p, 1) == 3, "or what the program says");
  p.slots = 0;
  EXPECT(regime(p, 1) == INT32_MAX, "Direct has no slots");
}

// NCCL's numbers, by the names of its manual.
void test_numbers() {
  const ncclDataType_t types[kDtypes] = {ncclFloat32,    ncclFloat64,    ncclFloat16, ncclBfloat16,
                                         ncclFloat8e4m3, ncclFloat8e5m2, ncclInt8,    ncclUint8,
                                         ncclInt32,      ncclUint32,     ncclInt64,   ncclUint64};
  for (int32_t d = 0; d < kDtypes; d++) EXPECT(dtype_of(types[d]) == d, "%s", dtype_name(d));
  EXPECT(dtype_of(ncclDataType_t(12)) == -1, "a type to come");
  const ncclRedOp_t ops[kOps] = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};
  for (int32_t o = 0; o < kOps; o++) EXPECT(op_of(ops[o]) == o, "%s", op_name(o));
  EXPECT(op_of(ncclRedOp_t(5)) == -1, "an operation of the application's own");
}

// fp16 goes to 65504: two halves of 40000 average to 40000, but their sum is none.
void test_averages() {
  for (int32_t d = 0; d < kDtypes; d++) {
    const std::string name = dtype_name(d);
    const bool narrow = name == "fp16" || name == "fp8e4m3" || name == "fp8e5m2";
    EXPECT(average_overflows(MSCCLSH_ALLREDUCE, d, 4) == narrow, "average of %s", name.c_str());
    EXPECT(!average_overflows(MSCCLSH_ALLREDUCE, d, 0), "sum of %s", name.c_str());
    EXPECT(!average_overflows(MSCCLSH_ALLGATHER, d, 4), "nothing is reduced");
  }
}

// Configurations of older versions end earlier.
void test_config() {
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  const Config none = config_of(&c, Config());
  EXPECT(none.blocking && none.max_ctas == INT32_MAX, "nothing set");
  c.blocking = 0;
  c.maxCTAs = 4;
  const Config set = config_of(&c, Config());
  EXPECT(!set.blocking && set.max_ctas == 4, "both set");
  c.size = offsetof(ncclConfig_t, maxCTAs);
  EXPECT(config_of(&c, Config()).max_ctas == INT32_MAX, "a version that has no such field");
  EXPECT(config_of(nullptr, set).max_ctas == 4, "inherited");
}

}  // namespace

int main() {
  std::string why;
  const std::vector<unsigned char> bytes = standard({2, 4}).bytes();
  const std::unique_ptr<Table> t = Table::over(bytes.data(), bytes.size(), "test", &why);
  EXPECT(t != nullptr, "%s", why.c_str());
  if (t != nullptr) test_judge(*t);
  test_options();
  test_alltoall();
  test_board();
  test_leaving_apart();
  test_map();
  test_alike();
  test_windows();
  test_sizes();
  test_numbers();
  test_averages();
  test_config();
  return report("core");
}

// Ranks that are processes, what differs between them, and forks.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "world.h"

namespace {

// Board is where rank 0 tells the others the identifier of a communicator.
struct Board {
  std::atomic<int> told;
  ncclUniqueId id;
};

Board *new_board() {
  void *at =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (at) Board{};
}

ncclComm_t join(Board *board, int rank, int ranks) {
  if (rank == 0) {
    GOOD(ncclGetUniqueId(&board->id));
    board->told = 1;
  }
  while (board->told == 0) usleep(100);
  ncclComm_t comm = nullptr;
  GOOD(ncclCommInitRank(&comm, ranks, board->id, rank));
  return comm;
}

// run is one call of this rank's on a stream; it returns NCCL's calls.
uint64_t run(ncclComm_t comm, int rank, int ranks, const Call &call, int seed,
             const std::string &what) {
  stub().forget();
  Part part(call, rank, ranks);
  part.fill(seed);
  mscclsh::HostStream stream;
  GOOD(part.start(comm, stream_of(stream)));
  stream.wait();
  part.check(what);
  return stub().collectives();
}

void all_calls(ncclComm_t comm, int rank, int ranks, uint64_t want, const std::string &what) {
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    for (int root = 0; root < (is_rooted(c) ? ranks : 1); root++)
      for (const size_t count : {1, 100, 3000})
        for (const bool in_place : {false, true}) {
          Call call;
          call.collective = c;
          call.count = count;
          call.root = root;
          call.in_place = in_place;
          const uint64_t n = run(comm, rank, ranks, call, int(count) + c, what);
          EXPECT(n == want, "%s: %s: NCCL got %d calls", what.c_str(), call.text().c_str(), int(n));
        }
}

void values() {
  use_table(standard({2, 4}));
  for (const int ranks : {2, 4}) {
    Board *board = new_board();
    processes(ranks, [&](int r) {
      const ncclComm_t comm = join(board, r, ranks);
      all_calls(comm, r, ranks, 0, "processes");
      GOOD(ncclCommDestroy(comm));
    });
  }
}

void nccl() {
  Board *board = new_board();
  processes(2, [&](int r) {
    const ncclComm_t comm = join(board, r, 2);
    all_calls(comm, r, 2, 1, "processes without a program");
    GOOD(ncclCommDestroy(comm));
  });
}

// Some ranks call in place and others not, which NCCL allows: the program is the same.
void different_places() {
  use_table(standard({2}));
  Board *board = new_board();
  processes(2, [&](int r) {
    const ncclComm_t comm = join(board, r, 2);
    for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
      if (c == MSCCLSH_ALLTOALL) continue;
      for (const int odd : {0, 1}) {
        Call call;
        call.collective = c;
        call.count = 50;
        call.in_place = r == odd;
        call.misaligned = r == odd ? 0 : 3;
        const uint64_t n = run(comm, r, 2, call, c, "one in place, one not");
        EXPECT(n == 0, "%s: NCCL got %d calls", call.text().c_str(), int(n));
      }
    }
    GOOD(ncclCommDestroy(comm));
  });
}

// differing runs two ranks whose environments are not alike: all calls must go to NCCL on
// both, and one sentence in all says so.
void differing(const std::function<void(int)> &prepare, const std::string &what) {
  Board *board = new_board();
  const std::string text = told([&] {
    processes(2, [&](int r) {
      prepare(r);
      const ncclComm_t comm = join(board, r, 2);
      all_calls(comm, r, 2, 1, what);
      GOOD(ncclCommDestroy(comm));
    });
  });
  EXPECT(count_of(text, "mscclsh") == 1 && count_of(text, "\n") == 1, "%s: they say: %s",
         what.c_str(), text.c_str());
}

void other_table() {
  differing(
      [](int r) {
        Bundle b = standard({2});
        if (r == 1) b.entries[0].entry.max_bytes--;
        use_table(b);
      },
      "another table");
}

void no_table() {
  differing(
      [](int r) {
        if (r == 0) use_table(standard({2}));
      },
      "no table");
}

void other_wishes() {
  use_table(standard({2}));
  differing(
      [](int r) {
        if (r == 1) setenv("MSCCLSH_DENY", "allgather", 1);
      },
      "MSCCLSH_DENY");
}

// without_library has ranks of which some are switched off, or stop before they would answer,
// so that the others, which wait for them, give up: with a sentence first, and an error then.
void without_library(int ranks, int off) {
  use_table(standard({2, 4}));
  Board *board = new_board();
  std::atomic<int> *const gave_up = new (new_board()) std::atomic<int>(0);
  const std::string text = told([&] {
    processes(ranks, [&](int r) {
      if (r == off) setenv("MSCCLSH_NCCL", "0", 1);
      if (r == 0) {
        GOOD(ncclGetUniqueId(&board->id));
        board->told = 1;
      }
      while (board->told == 0) usleep(100);
      ncclComm_t comm = nullptr;
      const ncclResult_t made = ncclCommInitRank(&comm, ranks, board->id, r);
      if (r != off) {
        EXPECT(made == ncclRemoteError && comm == nullptr, "got %d", int(made));
        EXPECT(count_of(ncclGetLastError(nullptr), "all processes must have this library") == 1,
               "got %s", ncclGetLastError(nullptr));
        ++*gave_up;
        return;
      }
      EXPECT(made == ncclSuccess, "got %d", int(made));
      while (*gave_up < ranks - 1) usleep(1000);
      GOOD(ncclCommAbort(comm));
    });
  });
  for (int r = 0; r < ranks; r++) {
    const std::string rank = "rank " + std::to_string(r) + " of a communicator of " +
                             std::to_string(ranks) + " ranks has waited ";
    EXPECT(count_of(text, rank) == (r == off ? 0 : 2), "they say: %s", text.c_str());
  }
  EXPECT(count_of(text, "it is given up after 10 s") == ranks - 1 &&
             count_of(text, "\n") == 2 * (ranks - 1),
         "they say: %s", text.c_str());
}

void one_without() { without_library(2, 1); }
void first_without() { without_library(4, 0); }

// The same with communicators that don't block, which the application ends.
void one_without_nonblocking() {
  use_table(standard({2}));
  Board *board = new_board();
  std::atomic<int> *const gave_up = new (new_board()) std::atomic<int>(0);
  const std::string text = told([&] {
    processes(2, [&](int r) {
      if (r == 1) setenv("MSCCLSH_NCCL", "0", 1);
      if (r == 0) {
        GOOD(ncclGetUniqueId(&board->id));
        board->told = 1;
      }
      while (board->told == 0) usleep(100);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      const ncclResult_t made = ncclCommInitRankConfig(&comm, 2, board->id, r, &config);
      EXPECT(made == ncclSuccess || made == ncclInProgress, "got %d", int(made));
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) {
        GOOD(ncclCommGetAsyncError(comm, &state));
        usleep(1000);
      }
      EXPECT(state == (r == 0 ? ncclRemoteError : ncclSuccess), "got %d", int(state));
      if (r == 0) {
        Part part(Call(), 0, 2);
        mscclsh::HostStream stream;
        EXPECT(part.start(comm, stream_of(stream)) == ncclRemoteError, "it is of no use");
        ++*gave_up;
      }
      while (*gave_up == 0) usleep(1000);
      GOOD(ncclCommAbort(comm));
    });
  });
  EXPECT(count_of(text, "rank 0 of a communicator of 2 ranks has waited ") == 2, "they say: %s",
         text.c_str());
}

// A process ends in the middle: the others hear of it, and are not held up for ever.
void one_dies() {
  use_table(standard({2}));
  Board *board = new_board();
  const pid_t pids[2] = {fork(), 0};
  if (pids[0] == 0) {
    const ncclComm_t comm = join(board, 1, 2);
    Call call;
    call.count = 64;
    run(comm, 1, 2, call, 1, "before its end");
    _exit(0);
  }
  const ncclComm_t comm = join(board, 0, 2);
  Call call;
  call.count = 64;
  run(comm, 0, 2, call, 1, "before the other's end");
  int status = 0;
  waitpid(pids[0], &status, 0);
  std::vector<float> x(64, 1);
  mscclsh::HostStream stream;
  ncclResult_t state = ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm,
                                     static_cast<cudaStream_t>(stream_of(stream)));
  for (int i = 0; i < 1000 && state == ncclSuccess; i++) {
    GOOD(ncclCommGetAsyncError(comm, &state));
    usleep(10000);
  }
  EXPECT(state != ncclSuccess, "an error is told");
  GOOD(ncclCommAbort(comm));
}

// Children that use nothing: of a process that has not used the library, and of one that has.
void forks() {
  use_table(standard({2}));
  const auto child_ends = [](const char *what) {
    const pid_t pid = fork();
    if (pid == 0) std::exit(7);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s: status %x", what, unsigned(status));
  };
  child_ends("before any use");
  Comms comms(2);
  Call call;
  call.count = 64;
  ran_here(comms, call, "before the fork");
  child_ends("after use");
  ran_here(comms, call, "after the fork");
}

// A child that uses the library where its parent has not: ranks are such children.
void fork_then_use() {
  use_table(standard({2}));
  Board *board = new_board();
  processes(2, [&](int r) {
    const pid_t pid = fork();
    if (pid == 0) {
      const ncclComm_t comm = join(board, r, 2);
      all_calls(comm, r, 2, 0, "a grandchild");
      GOOD(ncclCommDestroy(comm));
      std::exit(failures == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", unsigned(status));
  });
}

// A process that ends without destroying anything.
void left_open() {
  use_table(standard({2}));
  Board *board = new_board();
  processes(2, [&](int r) {
    const ncclComm_t comm = join(board, r, 2);
    all_calls(comm, r, 2, 0, "left open");
  });
}

// Two processes with two ranks each, as threads.
void both() {
  use_table(standard({4}));
  Board *board = new_board();
  processes(2, [&](int p) {
    if (p == 0) {
      GOOD(ncclGetUniqueId(&board->id));
      board->told = 1;
    }
    while (board->told == 0) usleep(100);
    ncclComm_t comm[2];
    threads(2, [&](int i) { GOOD(ncclCommInitRank(&comm[i], 4, board->id, 2 * p + i)); });
    stub().forget();
    for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
      Call call;
      call.collective = c;
      call.count = 70;
      Part a(call, 2 * p, 4), b(call, 2 * p + 1, 4);
      Part *parts[2] = {&a, &b};
      for (Part *part : parts) part->fill(c);
      threads(2, [&](int i) {
        mscclsh::HostStream stream;
        GOOD(parts[i]->start(comm[i], stream_of(stream)));
        stream.wait();
      });
      for (Part *part : parts) part->check("threads in processes");
    }
    EXPECT(stub().collectives() == 0, "NCCL got %d calls", int(stub().collectives()));
    threads(2, [&](int i) { GOOD(ncclCommDestroy(comm[i])); });
  });
}

}  // namespace

std::vector<Case> cases_of_processes() {
  return {{"processes", {}, values},
          {"processes, NCCL", {{"MSCCLSH_NCCL", "0"}}, nccl},
          {"different places", {}, different_places},
          {"another table", {}, other_table},
          {"no table on one rank", {}, no_table},
          {"other wishes", {}, other_wishes},
          {"a process dies", {{"MSCCLSH_WATCHDOG", "2"}, {"STUB_TIMEOUT_MS", "3000"}}, one_dies},
          {"one without the library", {{"MSCCLSH_WATCHDOG", "2"}}, one_without},
          {"one without, within a call",
           {{"MSCCLSH_WATCHDOG", "2"}, {"STUB_CONNECT", "1"}},
           first_without},
          {"one without, not blocking", {{"MSCCLSH_WATCHDOG", "2"}}, one_without_nonblocking},
          {"forks", {}, forks},
          {"fork, then use", {}, fork_then_use},
          {"left open", {}, left_open},
          {"threads in processes", {}, both}};
}

// A process a rank, and a parent that never touches a GPU: it hands out what one rank
// has to tell the others, watches the clock, and outlives what goes wrong in them.
#ifndef YARDSTICKS_TEAM_H
#define YARDSTICKS_TEAM_H

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

// Row is what came of a size.
struct Row {
  double median, least, most;
  long long wrong;
};

class Team {
 public:
  static constexpr int kMaxRanks = 16, kMaxRepetitions = 1000, kMaxSizes = 64;

  // Shared is memory of all processes.
  struct Shared {
    std::atomic<int> arrived{0}, turn{0};  // of meet
    std::atomic<int> ready{0};             // a communicator is there
    std::atomic<int> finished{0};          // sizes
    std::atomic<int> spoken{0};            // 1: being said, 2: said
    std::atomic<long long> wrong{0};
    char message[512] = "";
    char id[128] = "";
    double times[kMaxRanks][kMaxRepetitions] = {};
    Row rows[kMaxSizes] = {};
  };

  explicit Team(int ranks) : ranks_(ranks) {
    void *p =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    shared = new (p) Shared;
  }
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;
  ~Team() { munmap(shared, sizeof(Shared)); }

  // meet returns once all ranks called it.
  void meet() {
    const int turn = shared->turn.load();
    if (shared->arrived.fetch_add(1) + 1 == ranks_) {
      shared->arrived.store(0);
      shared->turn.fetch_add(1);
      return;
    }
    for (int tries = 0; shared->turn.load() == turn; tries++)
      if (tries > 1 << 14) sched_yield();
  }

  // run calls work(rank) in a process a rank, and passed() in this one every few
  // milliseconds. It returns "" when all ended well, else why one did not, which ends the
  // others: what it said, the signal that ended it, or that all stood for longer than limit
  // seconds.
  std::string run(double limit, const std::function<void(int)> &work,
                  const std::function<void()> &passed) {
    shared->arrived = shared->turn = shared->ready = shared->spoken = 0;
    std::fflush(stdout);
    std::vector<pid_t> alive;
    const pid_t parent = getpid();
    for (int r = 0; r < ranks_; r++) {
      const pid_t pid = fork();
      if (pid == 0) child(r, parent, work);
      if (pid < 0) {
        end(alive);
        return std::string("starting a process: ") + std::strerror(errno);
      }
      alive.push_back(pid);
    }
    const std::string why = watch(limit, alive, passed);
    end(alive);
    passed();
    return why;
  }

  Shared *shared;

 private:
  // say keeps the first rank's word.
  void say(const char *what) {
    int none = 0;
    if (!shared->spoken.compare_exchange_strong(none, 1)) return;
    std::snprintf(shared->message, sizeof shared->message, "%s", what);
    shared->spoken = 2;
  }

  [[noreturn]] void child(int rank, pid_t parent, const std::function<void(int)> &work) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    // What a library prints is not part of the table.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    try {
      work(rank);
    } catch (const std::exception &e) {
      say(e.what());
      _exit(3);
    }
    // What the process holds ends with it: libraries differ in what they survive when a
    // communicator is taken apart.
    _exit(0);
  }

  std::string watch(double limit, std::vector<pid_t> &alive, const std::function<void()> &passed) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point since = Clock::now();
    int turn = 0;
    while (!alive.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      passed();
      for (size_t i = 0; i < alive.size();) {
        int status = 0;
        if (waitpid(alive[i], &status, WNOHANG) != alive[i]) {
          i++;
          continue;
        }
        alive.erase(alive.begin() + long(i));
        if (WIFSIGNALED(status))
          return std::string("a process was ended by signal ") + strsignal(WTERMSIG(status));
        if (WEXITSTATUS(status) != 0) return word();
      }
      if (shared->turn != turn) {
        turn = shared->turn;
        since = Clock::now();
      }
      const std::chrono::duration<double> stood = Clock::now() - since;
      if (stood.count() > limit) {
        char text[80];
        std::snprintf(text, sizeof text, "nothing went on for %g s", limit);
        return text;
      }
    }
    return "";
  }

  std::string word() const {
    if (shared->spoken == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return shared->spoken == 2 ? shared->message : "a process ended without a word";
  }

  static void end(std::vector<pid_t> &alive) {
    for (const pid_t pid : alive) kill(pid, SIGKILL);
    for (const pid_t pid : alive) waitpid(pid, nullptr, 0);
    alive.clear();
  }

  const int ranks_;
};

#endif

// Several processes, one communicator: starts copies of itself, joins them by sockets,
// over which the library's exchange runs, and looks at how they end.
//
//   processes [--rounds N] [--kill RANK] [--only SCENARIO] [--processes N] [DEVICE...]
//
// DEVICEs are those that ranks take turns on, 0 and 1 if none is named. --kill runs
// only the scenario in which the process of that rank is killed in the midst of launches,
// --processes only what has that many.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <chrono>

#include "process.h"

namespace {

int failures = 0;

void fail(const Setting &s, const std::string &text) {
  failures++;
  std::printf("%s, %d ranks in %d processes: %s\n", s.scenario.c_str(), s.ranks, s.processes,
              text.c_str());
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Child is one process and what it has sent that was not used yet.
struct Child {
  pid_t pid = -1;
  int fd = -1;
  std::vector<unsigned char> inbox;
  bool running = false;

  // waiting is whether a whole block for an exchange is there, of so many bytes.
  bool waiting(int64_t *bytes) const {
    if (inbox.size() < sizeof *bytes) return false;
    std::memcpy(bytes, inbox.data(), sizeof *bytes);
    return int64_t(inbox.size() - sizeof *bytes) >= *bytes;
  }

  void hang_up() {
    if (fd >= 0) close(fd);
    fd = -1;
    inbox.clear();
  }
};

pid_t start(const Setting &s, const std::vector<Child> &others) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const Child &c : others)
    if (c.fd >= 0) close(c.fd);
  std::vector<std::string> args = {"processes",
                                   "--child",
                                   s.scenario,
                                   std::to_string(s.process),
                                   std::to_string(s.processes),
                                   std::to_string(s.ranks),
                                   std::to_string(s.rounds),
                                   std::to_string(s.victim),
                                   std::to_string(s.fd)};
  for (int32_t d : s.devices) args.push_back(std::to_string(d));
  std::vector<char *> argv;
  for (std::string &a : args) argv.push_back(&a[0]);
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  std::perror("exec");
  _exit(127);
}

bool write_all(int fd, const unsigned char *p, size_t n) {
  while (n > 0) {
    const ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
    if (k <= 0) return false;
    p += k;
    n -= size_t(k);
  }
  return true;
}

// Hub serves the exchanges of a scenario's processes.
class Hub {
 public:
  explicit Hub(const Setting &s) : s_(s), children_(size_t(s.processes)) {
    for (int32_t p = 0; p < s.processes; p++) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        std::perror("socketpair");
        std::exit(2);
      }
      Setting own = s;
      own.process = p;
      own.fd = ends[1];
      Child &c = children_[size_t(p)];
      c.fd = ends[0];
      c.pid = start(own, children_);
      close(ends[1]);
    }
  }

  // run serves until all have hung up.
  void run() {
    const double limit = now() + 540;
    for (;;) {
      std::vector<pollfd> fds;
      for (Child &c : children_)
        if (c.fd >= 0) fds.push_back({c.fd, POLLIN, 0});
      if (fds.empty()) break;
      if (now() > limit || poll(fds.data(), fds.size(), 120000) <= 0) {
        fail(s_, "nothing happens any more");
        for (Child &c : children_) kill(c.pid, SIGKILL);
        break;
      }
      for (const pollfd &f : fds)
        if (f.revents != 0) take(f.fd);
      join();
      if (s_.scenario == "kill") kill_one();
    }
    reap();
  }

 private:
  void take(int fd) {
    for (Child &c : children_) {
      if (c.fd != fd) continue;
      unsigned char block[1 << 16];
      const ssize_t n = read(fd, block, sizeof block);
      if (n <= 0) {
        c.hang_up();
        return;
      }
      c.inbox.insert(c.inbox.end(), block, block + n);
      int64_t note = 0;
      if (c.inbox.size() >= sizeof note) std::memcpy(&note, c.inbox.data(), sizeof note);
      if (note == kRunning) {
        c.running = true;
        c.inbox.erase(c.inbox.begin(), c.inbox.begin() + sizeof note);
      }
    }
  }

  // join hands out what all have sent. Those who wait for a process that is gone are
  // told so by hanging up.
  void join() {
    size_t waiting = 0;
    int64_t bytes = 0, first = -1;
    bool gone = false;
    for (Child &c : children_) {
      gone |= c.fd < 0;
      if (!c.waiting(&bytes)) continue;
      waiting++;
      if (first >= 0 && bytes != first) fail(s_, "exchanges of different sizes");
      first = bytes;
    }
    if (gone) {
      for (Child &c : children_)
        if (c.waiting(&bytes)) c.hang_up();
      return;
    }
    if (waiting < children_.size()) return;
    std::vector<unsigned char> all;
    for (Child &c : children_) {
      const auto from = c.inbox.begin() + sizeof bytes;
      all.insert(all.end(), from, from + bytes);
      c.inbox.erase(c.inbox.begin(), from + bytes);
    }
    for (Child &c : children_)
      if (!write_all(c.fd, all.data(), all.size())) c.hang_up();
  }

  void kill_one() {
    for (const Child &c : children_)
      if (!c.running) return;
    if (killed_ > 0) return;
    usleep(300000);
    kill(children_[size_t(s_.victim % s_.processes)].pid, SIGKILL);
    killed_ = now();
  }

  void reap() {
    for (int32_t p = 0; p < s_.processes; p++) {
      const bool victim = killed_ > 0 && p == s_.victim % s_.processes;
      int status = 0;
      waitpid(children_[size_t(p)].pid, &status, 0);
      if (victim && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        fail(s_, "the process ended before it was killed");
      if (!victim && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        fail(s_, "process " + std::to_string(p) + " ended with status " + std::to_string(status));
    }
    if (s_.scenario != "kill") return;
    if (killed_ == 0) return fail(s_, "no process was killed");
    const double took = now() - killed_, watchdog = double(kWatchdog) * 1e-9;
    std::printf("kill: the others ended after %.1f s, the watchdog's time is %.1f s\n", took,
                watchdog);
    if (took < watchdog / 2 || took > watchdog + 10) fail(s_, "that is not the watchdog's time");
  }

  const Setting s_;
  std::vector<Child> children_;
  double killed_ = 0;
};

void scenario(Setting s, const char *name, int32_t processes, int32_t ranks) {
  if (s.processes != 0 && s.processes != processes) return;
  s.scenario = name;
  s.processes = processes;
  s.ranks = ranks;
  const int before = failures;
  const double begin = now();
  std::fflush(stdout);
  Hub hub(s);
  hub.run();
  std::printf("%-9s %d processes, %d ranks: %s (%.1f s)\n", name, processes, ranks,
              failures == before ? "ok" : "FAILED", now() - begin);
}

int number(const char *text) {
  char *end = nullptr;
  const long v = std::strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || v < 0 || v > 1 << 20) {
    std::fprintf(stderr, "processes: %s is no number that fits\n", text);
    std::exit(2);
  }
  return int(v);
}

}  // namespace

int main(int argc, char **argv) {
  Setting s;
  if (argc > 9 && std::strcmp(argv[1], "--child") == 0) {
    s.scenario = argv[2];
    s.process = number(argv[3]);
    s.processes = number(argv[4]);
    s.ranks = number(argv[5]);
    s.rounds = number(argv[6]);
    s.victim = number(argv[7]);
    s.fd = number(argv[8]);
    for (int i = 9; i < argc; i++) s.devices.push_back(number(argv[i]));
    return run_process(s);
  }
  s.rounds = 100;
  int victim = -1;
  std::string only;
  for (int i = 1; i < argc; i++) {
    const bool value = i + 1 < argc;
    if (std::strcmp(argv[i], "--rounds") == 0 && value)
      s.rounds = number(argv[++i]);
    else if (std::strcmp(argv[i], "--kill") == 0 && value)
      victim = number(argv[++i]);
    else if (std::strcmp(argv[i], "--only") == 0 && value)
      only = argv[++i];
    else if (std::strcmp(argv[i], "--processes") == 0 && value)
      s.processes = number(argv[++i]);
    else
      s.devices.push_back(number(argv[i]));
  }
  if (s.devices.empty()) s.devices = {0, 1};
  if (victim >= 0) only = "kill";
  auto wanted = [&](const char *name) { return only.empty() || only == name; };
  if (wanted("mixed")) {
    scenario(s, "mixed", 2, 2);
    scenario(s, "mixed", 2, 4);
    scenario(s, "mixed", 3, 3);
  }
  if (wanted("bound")) {
    scenario(s, "bound", 1, 2);
    scenario(s, "bound", 2, 2);
    scenario(s, "bound", 2, 4);
    scenario(s, "bound", 3, 3);
  }
  if (wanted("onesided")) {
    scenario(s, "onesided", 2, 2);
    scenario(s, "onesided", 2, 4);
    scenario(s, "onesided", 3, 3);
  }
  if (wanted("onecalls")) {
    scenario(s, "onecalls", 2, 2);
    scenario(s, "onecalls", 2, 4);
    scenario(s, "onecalls", 3, 3);
  }
  for (const char *name : {"buffers", "streams", "agree", "missing", "fds", "abort", "order"})
    if (wanted(name)) scenario(s, name, 2, 2);
  if (wanted("fds")) scenario(s, "fds", 3, 3);
  if (wanted("leave")) scenario(s, "leave", 3, 3);
  s.victim = victim < 0 ? 1 : victim;
  if (wanted("kill")) {
    if (s.victim < 2) scenario(s, "kill", 2, 2);
    scenario(s, "kill", 3, s.victim < 3 ? 3 : s.victim + 1);
  }
  std::printf("%d failures\n", failures);
  return failures != 0;
}

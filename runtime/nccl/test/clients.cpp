// clients [PART]: runs the cases whose names contain PART, or all, each in a process of
// its own, so that it can have an environment of its own and nothing of the library was
// used before it. A case that stands still is ended after two minutes.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "world.h"

namespace {

constexpr unsigned kLimit = 120;  // seconds

bool run(const Case &c) {
  std::fflush(stdout);
  const auto begun = std::chrono::steady_clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kLimit);
    for (const auto &[name, value] : c.environment) setenv(name.c_str(), value.c_str(), 1);
    c.run();
    std::printf("%-28s %5d expectations", c.name, int(expectations));
    std::fflush(stdout);
    std::exit(failures == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (WIFSIGNALED(status))
    std::printf("%-28s %s", c.name,
                WTERMSIG(status) == SIGALRM ? "stood still" : strsignal(WTERMSIG(status)));
  std::printf("  %5.1f s%s\n", took.count(), good ? "" : "  FAILED");
  return good;
}

}  // namespace

int main(int argc, char **argv) {
  if (std::getenv("MSCCLSH_NCCL_LIB") == nullptr) {
    std::fprintf(stderr, "clients: MSCCLSH_NCCL_LIB has to name the stub\n");
    return 2;
  }
  int passed = 0, failed = 0;
  for (const auto &cases :
       {cases_of_values(), cases_of_fallback(), cases_of_life(), cases_of_groups(),
        cases_of_processes(), cases_of_memory(), cases_of_table(), cases_of_races(),
        cases_of_onesided(), cases_of_together()})
    for (const Case &c : cases)
      if (argc < 2 || std::strstr(c.name, argv[1]) != nullptr) (run(c) ? passed : failed)++;
  std::printf("clients: %d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}

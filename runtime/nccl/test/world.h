// Ranks as threads or as processes, the stub underneath, and cases, each in a process of
// its own that has not used the library before.
#ifndef MSCCLSH_TEST_WORLD_H
#define MSCCLSH_TEST_WORLD_H

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bundle.h"
#include "calls.h"
#include "check.h"
#include "mscclsh_host_stream.h"
#include "stub/stub.h"

// Stub is the functions that steer the NCCL underneath (stub.h).
struct Stub {
  decltype(&stub_calls) calls;
  decltype(&stub_forget) forget;
  decltype(&stub_fail) fail;
  decltype(&stub_slow) slow;
  decltype(&stub_device) device;
  decltype(&stub_idle) idle;
  decltype(&stub_async) async;
  decltype(&stub_misuses) misuses;
  decltype(&stub_alive) alive;

  // collectives is the calls of all functions that move data.
  uint64_t collectives() const;
};
const Stub &stub();

// threads runs f for each rank on a thread of its own, processes in a process of its own,
// which it forks; f's expectations count there too.
void threads(int ranks, const std::function<void(int rank)> &f);
void processes(int ranks, const std::function<void(int rank)> &f);

// Gate lets n threads wait for each other, any number of times.
class Gate {
 public:
  explicit Gate(int n) : n_(n) {}
  void wait();

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  const int n_;
  int here_ = 0;
  uint64_t round_ = 0;
};

// Comms is one communicator of n ranks, all in this process, each made on its own thread.
class Comms {
 public:
  explicit Comms(int ranks);
  ~Comms();
  Comms(const Comms &) = delete;
  Comms &operator=(const Comms &) = delete;

  // all runs one call on every rank, each on its thread and stream, waits and checks.
  // Returns how many calls of it NCCL got.
  uint64_t all(const Call &call, const std::string &what);

  int ranks() const { return int(comm.size()); }
  std::vector<ncclComm_t> comm;
  std::vector<std::unique_ptr<mscclsh::HostStream>> stream;

 private:
  int seed_ = 0;
};

// ran_here runs a call on all ranks, which must be carried out by a program; left_to_nccl
// runs one that must go to NCCL, once a rank.
void ran_here(Comms &comms, const Call &call, const std::string &what);
void left_to_nccl(Comms &comms, const Call &call, const std::string &what);

// stream_of is a stream as a call takes it.
inline void *stream_of(mscclsh::HostStream &s) { return static_cast<mscclsh_host_stream *>(&s); }

// told returns what f writes to standard error.
std::string told(const std::function<void()> &f);
int count_of(const std::string &text, const std::string &part);

// use_table makes a table this process's, which must not have used the library yet.
void use_table(const Bundle &bundle);
void use_table(const std::vector<unsigned char> &file);

// good expects a call to succeed.
#define GOOD(call)                                                        \
  do {                                                                    \
    const ncclResult_t result_ = (call);                                  \
    EXPECT(result_ == ncclSuccess, "%s: %s", ncclGetErrorString(result_), \
           ncclGetLastError(nullptr));                                    \
  } while (0)

// Case is a test with what it wants of the environment.
struct Case {
  const char *name;
  std::vector<std::pair<std::string, std::string>> environment;
  std::function<void()> run;
};
// cases_of_* are the cases of each file.
std::vector<Case> cases_of_values();
std::vector<Case> cases_of_fallback();
std::vector<Case> cases_of_life();
std::vector<Case> cases_of_groups();
std::vector<Case> cases_of_processes();
std::vector<Case> cases_of_memory();
std::vector<Case> cases_of_table();
std::vector<Case> cases_of_races();
std::vector<Case> cases_of_together();
std::vector<Case> cases_of_onesided();

#endif

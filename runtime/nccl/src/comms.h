// What is kept beside NCCL's communicators: one Rank for each, found by NCCL's own handle.
#ifndef MSCCLSH_NCCL_COMMS_H
#define MSCCLSH_NCCL_COMMS_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "call.h"
#include "engine.h"
#include "real.h"

namespace mscclsh::nccl {

// Phase is where a rank's setup is.
enum class Phase {
  kSettingUp,
  kReady,
  kOff  // everything is left to NCCL
};

// What a configuration says that counts here. NCCL's structure grows from version to
// version: fields are read as far as its size goes.
struct Config {
  bool blocking = true;
  int32_t max_ctas = INT32_MAX;
};
Config config_of(const ncclConfig_t *config, const Config &inherited);
Config default_config();

// Created is a communicator that NCCL makes, or has made, at an address of the caller's.
// parent is the one that it was split off, or null: if that one doesn't block, the address
// holds null until NCCL is done.
struct Created {
  ncclComm_t *at;
  Config config;
  ncclComm_t parent;
};

// Rank is one rank of one communicator.
class Rank {
 public:
  Rank(ncclComm_t comm, const Config &config) : comm(comm), config(config) {}
  ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  const ncclComm_t comm;
  const Config config;
  int32_t rank = -1, ranks = 0, device = -1;

  bool ready() const { return phase.load(std::memory_order_acquire) == Phase::kReady; }
  std::atomic<Phase> phase{Phase::kSettingUp};
  std::atomic<bool> abandoned{false};  // it is being aborted: nothing waits any longer
  std::thread setting_up;              // of a communicator that doesn't block

  // Once ready:
  std::shared_ptr<Engine> engine;
  std::unique_ptr<Calls> calls;

  bool opens_windows = false;  // ncclCommWindowRegister opens them for programs, too

  bool launched = false;
  uint64_t calls_made = 0;  // collectives that NCCL or a program was given

  // broken is what a launch has failed with. The ranks have lost step then: the next
  // launch here would meet the one of the others that failed here, so there is none. Or it
  // is what setting up ended with, when others did not take part: the phase is kOff then.
  std::atomic<ncclResult_t> broken{ncclSuccess};
  std::atomic<bool> ended{false};  // NCCL's communicator was aborted when setting up broke
  bool unanswered() const { return phase == Phase::kOff && broken != ncclSuccess && !abandoned; }
  std::atomic<bool> finalized{false};  // calls are NCCL's to refuse

  // Of a communicator that doesn't block: what waits until NCCL has carried out what came
  // before, which ncclCommGetAsyncError finds out (catch_up, in group.h). Calls with their
  // entries, communicators that are split off, and those of them that are being set up.
  std::mutex later_mu;
  std::vector<std::pair<Request, int32_t>> later;
  std::vector<Created> awaited;
  std::vector<ncclComm_t> children;

  // What went wrong, for ncclGetLastError; "" nothing.
  void fail(const std::string &sentence);
  const char *error();

  // wait waits for the device, if calls of this rank may run there.
  void wait();

  // finish frees what is beside the communicator. aborted: its launches were ended.
  void finish(bool aborted);

 private:
  std::mutex mu_;
  std::string error_;
};

// find is the rank of a communicator, or null where there is none, any thread. It takes no
// lock: every call of the application comes through it.
Rank *find(ncclComm_t comm);

// add and take put a rank in and out; take returns what was there, or null.
void add(Rank *rank);
std::unique_ptr<Rank> take(ncclComm_t comm);

// bury keeps a rank of a communicator that was aborted for a while, because another thread
// may be inside a call on it; clear_graves ends those that were kept long enough.
void bury(std::unique_ptr<Rank> rank);
void clear_graves();

// result_of is NCCL's word for a code of the engine's.
ncclResult_t result_of(int32_t code);

// last_error is the sentence of this thread's latest failure, for ncclGetLastError.
std::string &last_error();

}  // namespace mscclsh::nccl

#endif

#include "group.h"

#include <cstdlib>
#include <stdexcept>

#include "mscclsh_host_stream.h"

namespace stub {

std::atomic<uint64_t> misuses{0};

ncclResult_t misuse(ncclResult_t result, const std::string &why) {
  misuses++;
  return fail(result, why);
}

namespace {

// Batch is the operations of one communicator in a group.
struct Batch {
  ncclComm *comm;
  std::vector<Operation> operations;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  bool blocking = true;
  std::vector<Batch> batches;
  std::vector<std::function<ncclResult_t()>> creations;
};

thread_local Group group;

// Gathering lets several streams wait for each other and for what one of them does.
class Gathering {
 public:
  void arrive() {
    std::lock_guard<std::mutex> lock(mu_);
    here_++;
    changed_.notify_all();
  }
  void await(int n) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return here_ >= n; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int here_ = 0;
};

// connect has all ranks meet in the first operation of a communicator, within the call, where
// STUB_CONNECT asks for it: as NCCL does when it makes connections. False: it was aborted.
bool connect(ncclComm *comm) {
  static const bool wanted = std::getenv("STUB_CONNECT") != nullptr;
  if (!wanted || comm->connected) return true;
  bool met = false;
  comm->in_turn(comm->take_turn(), [&] {
    try {
      all_tell(comm, 0);
      comm->connected = met = true;
    } catch (const std::runtime_error &) {  // nobody touches it any more
    }
  });
  return met;
}

// launch puts a batch on the first of its streams, and makes the others wait for it. On
// the null stream it is returned, to be run by the caller.
std::function<void()> launch(Batch &&b) {
  ncclComm *comm = b.comm;
  const uint64_t turn = comm->take_turn();
  std::vector<void *> others;
  void *stream = b.operations[0].stream;
  for (const Operation &o : b.operations) {
    bool known = o.stream == stream || o.stream == nullptr;
    for (void *s : others) known |= s == o.stream;
    if (!known) others.push_back(o.stream);
  }
  const auto before = std::make_shared<Gathering>(), after = std::make_shared<Gathering>();
  for (void *s : others)
    mscclsh::run_on(s, [=] {
      before->arrive();
      after->await(1);
    });
  const auto batch = std::make_shared<Batch>(std::move(b));
  std::function<void()> work = [=] {
    before->await(int(others.size()));
    comm->in_turn(turn, [&] { run(comm, batch->operations); });
    after->arrive();
  };
  if (stream == nullptr) return work;
  mscclsh::run_on(stream, work);
  return nullptr;
}

ncclResult_t launch_behind(Batch &&b) {
  const auto batch = std::make_shared<Batch>(std::move(b));
  return behind(batch->comm, true, [batch] {
    if (const std::function<void()> f = launch(std::move(*batch))) f();
  });
}

// together runs all on a thread each and waits for them.
void together(std::vector<std::function<void()>> all) {
  if (all.size() == 1) return all[0]();
  std::vector<std::thread> threads;
  for (std::function<void()> &f : all) threads.emplace_back(std::move(f));
  for (std::thread &t : threads) t.join();
}

ncclResult_t create_all(std::vector<std::function<ncclResult_t()>> creations) {
  std::vector<ncclResult_t> results(creations.size());
  std::vector<std::function<void()>> all;
  for (size_t i = 0; i < creations.size(); i++)
    all.push_back([&results, &creations, i] { results[i] = creations[i](); });
  together(std::move(all));
  for (ncclResult_t r : results)
    if (r != ncclSuccess) return r;
  return ncclSuccess;
}

}  // namespace

ncclResult_t start() {
  if (group.depth++ == 0) {
    const int depth = group.depth;
    group = Group();
    group.depth = depth;
  }
  return ncclSuccess;
}

ncclResult_t end(bool runs) {
  if (group.depth == 0) return misuse(ncclInvalidUsage, "a group ends that never began");
  if (--group.depth > 0) return ncclSuccess;
  Group g = std::move(group);
  group = Group();
  if (g.error != ncclSuccess) return g.error;
  if (!g.creations.empty() && !g.batches.empty())
    return misuse(ncclInvalidUsage, "communicators are made and used in one group");
  if (!runs) return ncclSuccess;
  if (!g.creations.empty()) {
    if (g.blocking) return create_all(std::move(g.creations));
    for (const std::function<ncclResult_t()> &f : g.creations)
      if (const ncclResult_t r = f(); r != ncclInProgress) return r;
    return ncclInProgress;
  }
  std::vector<std::function<void()>> now;
  ncclResult_t result = ncclSuccess;
  for (Batch &b : g.batches)
    if (!b.comm->blocking)
      result = launch_behind(std::move(b));
    else if (std::function<void()> f = launch(std::move(b)))
      now.push_back(std::move(f));
  if (!now.empty()) together(std::move(now));
  return result;
}

ncclResult_t noted(ncclResult_t result) {
  if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
  return result;
}

ncclResult_t enqueue(ncclComm *comm, const Operation &operation) {
  if (group.depth == 0) {
    if (!comm->blocking) return launch_behind({comm, {operation}});
    if (!connect(comm)) return fail(ncclRemoteError, "the communicator was aborted");
    if (const std::function<void()> f = launch({comm, {operation}})) f();
    return ncclSuccess;
  }
  for (Batch &b : group.batches) {
    if (b.comm != comm) continue;
    b.operations.push_back(operation);
    return ncclSuccess;
  }
  group.batches.push_back({comm, {operation}});
  return ncclSuccess;
}

ncclResult_t create(bool blocking, std::function<ncclResult_t()> f) {
  if (group.depth == 0) return f();
  group.blocking = blocking;
  group.creations.push_back(std::move(f));
  return blocking ? ncclSuccess : ncclInProgress;
}

}  // namespace stub

// preload_client [LIBRARY]: an application that knows nothing of this project: two ranks
// as threads, an allreduce, the result checked. It is linked with NCCL,
// or opens LIBRARY by its name as some do.
#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>
#include <thread>

namespace {

struct Functions {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclCommDestroy) destroy;
};

template <class F>
bool get(void *library, F &f, const char *name) {
  f = reinterpret_cast<F>(dlsym(library, name));
  return f != nullptr;
}

// work is one rank's; on the null stream its call goes on after it has returned, until the
// communicator is gone.
bool work(const Functions &nccl, ncclUniqueId id, int rank, float *x) {
  ncclComm_t comm = nullptr;
  return nccl.init(&comm, 2, id, rank) == ncclSuccess &&
         nccl.all_reduce(x, x, 4, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess &&
         nccl.destroy(comm) == ncclSuccess;
}

}  // namespace

int main(int argc, char **argv) {
  Functions nccl = {ncclGetUniqueId, ncclCommInitRank, ncclAllReduce, ncclCommDestroy};
  if (argc > 1) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !get(library, nccl.get_unique_id, "ncclGetUniqueId") ||
        !get(library, nccl.init, "ncclCommInitRank") ||
        !get(library, nccl.all_reduce, "ncclAllReduce") ||
        !get(library, nccl.destroy, "ncclCommDestroy")) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  ncclUniqueId id;
  if (const ncclResult_t r = nccl.get_unique_id(&id); r != ncclSuccess) {
    std::printf("%s, %s\n", ncclGetErrorString(r), ncclGetLastError(nullptr));
    return 1;
  }
  bool good[2] = {};
  float x[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  std::thread ranks[2];
  for (int r = 0; r < 2; r++) ranks[r] = std::thread([&, r] { good[r] = work(nccl, id, r, x[r]); });
  for (std::thread &t : ranks) t.join();
  bool right = good[0] && good[1];
  for (const auto &of : x)
    for (int i = 0; i < 4; i++) right = right && of[i] == float(11 * (i + 1));
  std::printf("%s\n", right ? "right" : "WRONG");
  return !right;
}

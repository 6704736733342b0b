// What is called of a library with NCCL's interface, which is loaded by its name: NCCL
// itself, or another one that takes its place. No header of theirs is needed.
#ifndef YARDSTICKS_NCCL_CALLS_H
#define YARDSTICKS_NCCL_CALLS_H

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

// Trouble is why something can't be measured, in a sentence.
using Trouble = std::runtime_error;

inline void check(cudaError_t e, const char *doing) {
  if (e != cudaSuccess) throw Trouble(std::string(doing) + ": " + cudaGetErrorString(e));
}

class Library {
 public:
  struct Id {
    char bytes[128];
  };
  using Comm = void *;
  using Window = void *;
  enum : int { kFloat = 7, kSum = 0, kSymmetric = 1 };

  explicit Library(const std::string &path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)), path_(path) {
    if (!handle_) throw Trouble("loading " + path + ": " + dlerror());
    get(error_string_, "ncclGetErrorString");
    get(get_version, "ncclGetVersion");
    get(get_id, "ncclGetUniqueId");
    get(init_rank, "ncclCommInitRank");
  }

  // get looks a function up, and ends with Trouble where there is none.
  template <class F>
  void get(F *&f, const char *name) const {
    f = reinterpret_cast<F *>(dlsym(handle_, name));
    if (!f) throw Trouble(path_ + " has no " + name);
  }

  void check(int result, const std::string &doing) const {
    if (result != 0) throw Trouble(doing + ": " + error_string_(result));
  }

  int (*get_version)(int *) = nullptr;
  int (*get_id)(Id *) = nullptr;
  int (*init_rank)(Comm *, int ranks, Id, int rank) = nullptr;

  using MemAlloc = int(void **, size_t);
  using Register = int(Comm, void *, size_t, void **handle);
  using WindowRegister = int(Comm, void *, size_t, Window *, int flags);
  // Of allreduce and reduce_scatter, and of allgather.
  using Reduce = int(const void *, void *, size_t, int type, int op, Comm, cudaStream_t);
  using Gather = int(const void *, void *, size_t, int type, Comm, cudaStream_t);

 private:
  void *handle_;
  std::string path_;
  const char *(*error_string_)(int) = nullptr;
};

#endif

#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace mscclsh {

__thread int real_depth = 0;

namespace {

// Found is an open library with NCCL's functions.
struct Found {
  void *handle = nullptr;
  std::string path;
};

const char kProbe[] = "ncclGetVersion";  // every NCCL has it

// base_of is where the object that an address lies in was loaded.
const void *base_of(const void *address, const char **path) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return nullptr;
  if (path != nullptr) *path = info.dli_fname;
  return info.dli_fbase;
}

// ours says whether an address is of this library, which under NCCL's file name may be
// found in its stead.
bool ours(const void *address) {
  static const char here = 0;
  return base_of(address, nullptr) == base_of(&here, nullptr);
}

// open loads a library, unless flags say that it has to be loaded already. Refused is
// what is no NCCL, or this library again.
bool open(const char *path, int flags, Found &to) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) return false;
  void *probe = dlsym(handle, kProbe);
  if (probe == nullptr || ours(probe)) {
    dlclose(handle);
    return false;
  }
  const char *at = nullptr;
  base_of(probe, &at);
  to.handle = handle;
  to.path = at != nullptr ? at : path;
  return true;
}

// A file that names NCCL: libnccl.so, libnccl.so.2, libnccl.so.2.28.9, no libnccl-net.so.
bool named_nccl(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : path, "libnccl.so", 10) == 0;
}

bool loaded_already(Found &to) {
  std::string path;
  // Opening inside the iteration would wait for the loader's own lock.
  struct Search {
    static int look(dl_phdr_info *info, size_t, void *p) {
      std::string *names = static_cast<std::string *>(p);
      if (info->dlpi_name != nullptr && named_nccl(info->dlpi_name))
        names->append(info->dlpi_name).push_back('\0');
      return 0;
    }
  };
  dl_iterate_phdr(Search::look, &path);
  for (size_t at = 0; at < path.size(); at += std::strlen(path.c_str() + at) + 1)
    if (open(path.c_str() + at, RTLD_NOLOAD, to)) return true;
  return false;
}

// next_in_line is for NCCL inside a library of another name.
bool next_in_line(Found &to) {
  void *probe = dlsym(RTLD_NEXT, kProbe);
  const char *path = nullptr;
  return probe != nullptr && !ours(probe) && base_of(probe, &path) != nullptr && path != nullptr &&
         open(path, RTLD_NOLOAD, to);
}

// by_folders is for where this library has NCCL's name, so that the loader finds no other.
bool by_folders(Found &to) {
  std::string folders;
  if (const char *set = std::getenv("LD_LIBRARY_PATH")) folders = set;
  folders +=
      ":/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:/usr/local/lib";
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string file = folders.substr(at, end - at) + "/libnccl.so.2";
    struct stat s;
    if (end > at && stat(file.c_str(), &s) == 0 && open(file.c_str(), 0, to)) return true;
    at = end + 1;
  }
  return false;
}

Found find() {
  Found to;
  const char *set = std::getenv("MSCCLSH_NCCL_LIB");
  if (set != nullptr && *set != 0) {
    if (!open(set, 0, to)) {
      const char *why = dlerror();
      std::fprintf(stderr,
                   "mscclsh: MSCCLSH_NCCL_LIB=%s can't be used, and no function of NCCL will "
                   "work: %s\n",
                   set, why != nullptr ? why : "it is not NCCL, but this library");
    }
    return to;
  }
  if (loaded_already(to) || next_in_line(to) || open("libnccl.so.2", 0, to) || by_folders(to))
    return to;
  std::fprintf(stderr,
               "mscclsh: no NCCL library was found, and none of its functions will work: set "
               "MSCCLSH_NCCL_LIB to the path of libnccl.so.2\n");
  return to;
}

const Found &found() {
  // Never destroyed: NCCL may be called while the process ends.
  static const Found *const f = new Found(find());
  return *f;
}

// Lacking is what stands for a function that NCCL hasn't got.
template <class F>
struct Lacking;
template <class... A>
struct Lacking<ncclResult_t (*)(A...)> {
  template <const char *name>
  static ncclResult_t call(A...) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) say_lacking(name);
    return ncclInvalidUsage;
  }
};
template <class... A>
struct Lacking<const char *(*)(A...)> {
  template <const char *name>
  static const char *call(A...) {
    return "NCCL has no text for this";
  }
};

#define MSCCLSH_NAME(name) constexpr char k##name[] = "nccl" #name;
MSCCLSH_REAL_FUNCTIONS(MSCCLSH_NAME)
MSCCLSH_REAL_TEXTS(MSCCLSH_NAME)
#undef MSCCLSH_NAME

template <class F, const char *name>
void fill(RealFunction<F> &f) {
  void *at = real_symbol(name);
  f.there = at != nullptr;
  f.at = f.there ? reinterpret_cast<F>(at) : Lacking<F>::template call<name>;
}

Real *make() {
  Real *r = new Real{};
#define MSCCLSH_FILL(name) fill<decltype(&nccl##name), k##name>(r->name);
  MSCCLSH_REAL_FUNCTIONS(MSCCLSH_FILL)
  MSCCLSH_REAL_TEXTS(MSCCLSH_FILL)
#undef MSCCLSH_FILL
  r->path = found().path.c_str();
  return r;
}

}  // namespace

void say_lacking(const char *name) {
  int version = 0;
  const auto get_version = reinterpret_cast<decltype(&ncclGetVersion)>(real_symbol(kProbe));
  if (get_version == nullptr || get_version(&version) != ncclSuccess) {
    std::fprintf(stderr, "mscclsh: %s was called, and there is no NCCL library\n", name);
    return;
  }
  std::fprintf(stderr, "mscclsh: NCCL %d.%d.%d (%s) has no %s: it takes a newer one\n",
               version / 10000, version / 100 % 100, version % 100, found().path.c_str(), name);
}

void *real_symbol(const char *name) {
  return found().handle != nullptr ? dlsym(found().handle, name) : nullptr;
}

const Real &real() {
  static const Real *const r = make();
  return *r;
}

}  // namespace mscclsh

// trampolines LIBRARY ECHO: calls functions of a library of trampolines alone, over one
// that notes what it gets: every argument and result must come through as it is, the
// first time, when the function is looked up, and later; a function that is not there
// returns ncclInvalidUsage, and one sentence names it and NCCL's version.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "echo.h"

namespace {

void *library = nullptr;

template <class F>
F *function(const char *name) {
  F *f = reinterpret_cast<F *>(dlsym(library, name));
  if (f == nullptr) {
    std::fprintf(stderr, "the library has no %s\n", name);
    std::exit(1);
  }
  return f;
}

template <class T>
T *pointer(uint64_t v) {
  return reinterpret_cast<T *>(v);
}

void test_integers(EchoCall (*last)(), const char *name) {
  const auto put =
      function<int(void *, size_t, int, int, void *, size_t, int, int, unsigned, void *, void *)>(
          name);
  for (int again = 0; again < 2; again++) {
    const int before = last().calls;
    const int result = put(pointer<void>(11), size_t(1) << 40, 12, 13, pointer<void>(14),
                           size_t(1) << 41, 15, 16, 17, pointer<void>(18), pointer<void>(19));
    const uint64_t want[11] = {11, uint64_t(1) << 40, 12, 13, 14, uint64_t(1) << 41, 15, 16, 17, 18,
                               19};
    EXPECT(result == 4, "%s returned %d", name, result);
    EXPECT(last().calls == before + 1, "%s came through", name);
    for (int i = 0; i < 11; i++)
      EXPECT(last().integers[i] == want[i], "%s: argument %d is %llu", name, i,
             static_cast<unsigned long long>(last().integers[i]));
  }
}

void test_values(EchoCall (*last)()) {
  const auto get =
      function<double(double, double, double, double, double, double, double, double, int)>(
          "ncclParamGet");
  const auto init = function<int(EchoId, int)>("ncclCommInitRankScalable");
  const auto world = function<EchoId(void *)>("ncclTeamWorld");
  EchoId id;
  for (size_t i = 0; i < sizeof id.bytes; i++) id.bytes[i] = static_cast<unsigned char>(3 * i + 1);
  for (int again = 0; again < 2; again++) {
    EXPECT(get(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9) == -7, "the result");
    for (int i = 0; i < 8; i++)
      EXPECT(last().doubles[i] == i + 1.5, "argument %d is %g", i, last().doubles[i]);
    EXPECT(last().integers[0] == 9, "the integer beside them");
    EXPECT(init(id, 7) == 6 && last().integers[0] == 7, "an identifier's call");
    const EchoId came = last().id;
    EXPECT(std::memcmp(&id, &came, sizeof id) == 0, "the identifier");
    const EchoId made = world(pointer<void>(0x5a));
    for (const unsigned char b : made.bytes) EXPECT(b == 0x5a, "a large result");
  }
}

void test_threads() {
  const auto destroy = function<int(int)>("ncclRedOpDestroy");
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; i++)
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      for (int n = 0; n < 100; n++) EXPECT(destroy(i + n) == i + n + 1, "thread %d", i);
    });
  go = true;
  for (std::thread &t : threads) t.join();
}

// told returns what f wrote to standard error.
template <class F>
std::string told(F f) {
  char name[] = "/tmp/mscclsh-told-XXXXXX";
  const int file = mkstemp(name), before = dup(2);
  dup2(file, 2);
  f();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::string text(4096, 0);
  const ssize_t n = pread(file, &text[0], text.size(), 0);
  text.resize(n > 0 ? size_t(n) : 0);
  close(file);
  unlink(name);
  return text;
}

void test_lacking(const char *echo) {
  const auto wait = function<int(int, void *)>("ncclWaitSignal");
  int results[3] = {};
  const std::string text = told([&] {
    for (int &r : results) r = wait(1, nullptr);
  });
  for (const int r : results) EXPECT(r == 5, "ncclInvalidUsage, not %d", r);
  const std::string want = std::string("mscclsh: NCCL 2.28.9 (") + echo +
                           ") has no ncclWaitSignal: it takes a newer one\n";
  EXPECT(text == want, "it says: %s", text.c_str());
  for (const char *name : {"ncclGetErrorString", "pncclGetLastError"}) {
    const auto describe = function<const char *(int)>(name);
    std::string described;
    told([&] { described = describe(3); });
    EXPECT(described.find("no text") != std::string::npos, "%s: %s", name, described.c_str());
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  setenv("MSCCLSH_NCCL_LIB", argv[2], 1);
  library = dlopen(argv[1], RTLD_NOW);
  void *echo = dlopen(argv[2], RTLD_NOW);
  if (library == nullptr || echo == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto last = reinterpret_cast<EchoCall (*)()>(dlsym(echo, "echo_last"));
  test_threads();
  test_integers(last, "ncclPutSignal");
  test_values(last);
  test_lacking(argv[2]);
  return report("trampolines");
}

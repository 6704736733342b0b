// What all tests share: an expectation that is counted and told of when it fails.
#ifndef MSCCLSH_TEST_CHECK_H
#define MSCCLSH_TEST_CHECK_H

#include <atomic>
#include <cstdio>

inline std::atomic<int> failures{0};
inline std::atomic<int> expectations{0};

#define EXPECT(cond, ...)                                             \
  do {                                                                \
    expectations++;                                                   \
    if (!(cond) && ++failures <= 20) {                                \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      std::fprintf(stderr, __VA_ARGS__);                              \
      std::fprintf(stderr, "\n");                                     \
    }                                                                 \
  } while (0)

// report prints a test's line, and is its exit code.
inline int report(const char *name) {
  std::printf("%s: %d expectations, %d failed\n", name, int(expectations), int(failures));
  return failures != 0;
}

#endif

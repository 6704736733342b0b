// A table that the compiler made, TEST_TABLE: the one that the library comes with, say. Its
// programs run, for all sizes that the host bears, and what they do is right.
#include <cstdlib>

#include "world.h"

namespace {

// served runs all collectives of so many ranks, each at sizes around the ends of ranges,
// and counts those that a program took.
int served(int ranks) {
  Comms comms(ranks);
  int by_programs = 0;
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
    int of_this = 0;
    for (const size_t count : {1, 64, 255, 256, 1000, 1024, 4096, 16384, 32768, 65536})
      for (const bool in_place : {false, true}) {
        Call call;
        call.collective = c;
        call.count = count;
        call.in_place = in_place;
        call.root = int(count) % ranks;
        of_this += comms.all(call, "a table that was compiled") == 0;
      }
    std::printf("%s: %d of 20 calls of %d ranks by programs\n", function_of(c), of_this, ranks);
    by_programs += of_this;
  }
  return by_programs;
}

void compiled() {
  for (const int ranks : {2, 4})
    EXPECT(served(ranks) >= 20, "few calls of %d ranks were taken by programs", ranks);
}

}  // namespace

std::vector<Case> cases_of_table() {
  const char *table = std::getenv("TEST_TABLE");
  if (table == nullptr || *table == 0) return {};
  return {{"a compiled table", {{"MSCCLSH_TABLE", table}}, compiled}};
}

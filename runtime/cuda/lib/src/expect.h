// What a program is to do with data, bound to the size it is prepared for: tables for
// the kernels of verify.h on each device, and what they found.
#ifndef MSCCLSH_EXPECT_H
#define MSCCLSH_EXPECT_H

#include <vector>

#include "prog.h"
#include "verify.h"

namespace mscclsh {

class Expectation {
 public:
  Expectation(Prog *prog, const mscclsh_expectation &e);
  ~Expectation();
  Expectation(const Expectation &) = delete;
  Expectation &operator=(const Expectation &) = delete;

  void generate(uint64_t seed);
  void verify(uint64_t seed);
  mscclsh_verdict_data verdict();

 private:
  // Table is a device's list of runs.
  struct Table {
    std::vector<DataRun> runs;
    std::vector<DataPart> parts;
    std::vector<mscclsh_result> origins;  // of each run, if it is a result
    DataRun *at = nullptr;                // in the device's memory
    DataPart *parts_at = nullptr;
    int64_t elems() const;
  };
  struct Side {
    Table junk, inputs, results;
    DataRecord *record = nullptr;
  };

  bool local(int32_t rank) const;
  void shape(const mscclsh_expectation &e);
  void add(Table Side::*which, const mscclsh_result &result, const mscclsh_part *parts);
  void add_junk();
  void upload(Device *d, Table *t);
  void clear();
  void free();
  void launch(int32_t device, DataKernel kernel, const Table &t, DataArgs args);

  Prog *const prog_;
  DataKernels kernels_ = {};
  int64_t elem_ = 0;  // bytes
  DataArgs args_ = {};
  std::vector<Side> sides_;  // one a device
  int64_t compared_ = 0, elems_ = 0;
  uint64_t calls_ = 0;
};

}  // namespace mscclsh

#endif

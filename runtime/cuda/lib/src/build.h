// Making what a device has in its memory for a launch of a program.
#ifndef MSCCLSH_BUILD_H
#define MSCCLSH_BUILD_H

#include "prog.h"

namespace mscclsh {

// Builder makes the tables of one device, for a size and for buffers at known places.
class Prog::Builder {
 public:
  Builder(const Prog &prog, const Sizing &sizing, int32_t device, const Places &at)
      : p_(prog),
        s_(sizing),
        device_(device),
        at_(at),
        chunk_bytes_(sizing.size.chunk_bytes),
        regime_(sizing.size.regime) {}

  Image image();

 private:
  // build.cpp
  void set_args(Args *a) const;
  void fill_table(const ThreadBlock &tb, unsigned char *table, const Args &a, int32_t block) const;
  void set_ends(const ThreadBlock &tb, End *ends) const;
  void set_steps(const ThreadBlock &tb, Step *steps, Dep *deps) const;
  void count_messages(const ThreadBlock &tb, int32_t each, Step *steps, End *ends) const;
  Shape shape(const ThreadBlock &tb, const Step *steps, const End *ends) const;
  void add_divides(Image *to) const;
  unsigned char *place(int32_t rank, int32_t buf, int32_t chunk) const;

  // join.cpp
  void set_ways(const ThreadBlock &tb, Step *steps) const;
  bool joins(const ThreadBlock &tb, const Step *steps, const End *ends, int32_t i, int32_t k) const;
  bool joins_direct(const ThreadBlock &tb, const Step &first, const Step &s, int32_t i,
                    int32_t k) const;
  void join_steps(const ThreadBlock &tb, int32_t each, int32_t window, const End *ends,
                  Step *steps) const;
  void set_meetings(const ThreadBlock &tb, int32_t each, Step *steps) const;

  const Prog &p_;
  const Sizing &s_;
  const int32_t device_;  // an index
  const Places &at_;
  const int64_t chunk_bytes_;
  const int32_t regime_;
};

}  // namespace mscclsh

#endif

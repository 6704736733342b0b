// How ranks find out whether they can run programs together, after NCCL has made their
// communicator.
//
// All ranks tell each other what they are (Hello), over the new communicator itself, which
// works wherever NCCL does; from what all have told each works out the same verdict. Then
// all tell whether they could open the memory that rank 0's process offers. After that
// NCCL is not needed any more. Communicators of 2 to 63 ranks take part in this, whatever
// the table says and even if it can't be read: otherwise ranks with different tables would
// wait for each other.
#ifndef MSCCLSH_NCCL_SETUP_H
#define MSCCLSH_NCCL_SETUP_H

#include <memory>
#include <string>
#include <vector>

#include "comms.h"
#include "table.h"

namespace mscclsh::nccl {

// Hello is what a rank tells. Plain numbers, the same in all builds of one version.
struct Hello {
  uint64_t magic;    // of this structure, its version included
  uint64_t nonce;    // another for each rank of each communicator
  uint64_t process;  // another for each process
  uint64_t host;     // the machine, as far as processes see each other
  uint64_t gpu;      // DeviceFacts::identity
  uint64_t table;    // its digest; 0: none
  uint64_t options;  // their digest
  uint64_t build;    // of the engine
  int32_t abi, pid;
  int32_t board;   // rank 0: the descriptor of its BoardFile
  int32_t device;  // as the process numbers it
  int32_t max_ctas;
  int32_t multiprocessors, major, minor;
  int32_t failed;    // 1: this rank can't take part
  int32_t blocking;  // 1: calls return when they are done
};

// Verdict is what follows from all ranks' words, the same on each rank.
struct Verdict {
  bool together = false;  // they can
  bool plain = false;     // they can't, and nothing is wrong with that: nobody is told
  std::string why;        // they can't
  Layout layout;
  int32_t max_ctas = INT32_MAX;  // the least of all
  bool blocking = true;          // of all: windows are opened by those only
};
Verdict judge(const std::vector<Hello> &all, int32_t rank, const Table *table);

// kMagic is Hello::magic: the letters, and a number that grows with its layout.
constexpr uint64_t kMagic = 0x4843434c53434d02u;

// set_up sets ranks up whose communicators are there: all those that this thread has made
// together. It never fails; a rank that can't take part is off. One that others have not
// answered for too long is broken, too: a process without this library takes no part.
void set_up(const std::vector<Rank *> &ranks);

// process_table is the table of this process, or null, with a sentence where something is
// wrong with it or with the environment: why lives as long as the process.
const Table *process_table(const std::string **why);

}  // namespace mscclsh::nccl

#endif

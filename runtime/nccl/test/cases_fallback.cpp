// Fallback: everything that must send calls to NCCL, and what is said about it.
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "world.h"

namespace {

Call small() {
  Call c;
  c.count = 64;
  return c;
}

// log is a file for MSCCLSH_LOG, to be read afterwards.
std::string log_path() { return "/tmp/mscclsh-log-" + std::to_string(getpid()); }

std::string read_and_drop(const std::string &path) {
  std::string text;
  if (FILE *f = std::fopen(path.c_str(), "r")) {
    char piece[4096];
    for (size_t n; (n = std::fread(piece, 1, sizeof piece, f)) > 0;) text.append(piece, n);
    std::fclose(f);
    std::remove(path.c_str());
  }
  return text;
}

void switched_off() {
  use_table(standard({2}));
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "switched off");
  });
  EXPECT(text.empty(), "it says: %s", text.c_str());
}

// What is wrong with the wish is said once, and NCCL does everything.
void no_such_table() {
  setenv("MSCCLSH_TABLE", "/nowhere/table", 1);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "no table");
    Comms others(2);
    left_to_nccl(others, small(), "no table");
  });
  EXPECT(count_of(text, "/nowhere/table") == 1, "it says: %s", text.c_str());
}

// What is at the table's path is no file: a folder, or a pipe that nobody writes to.
void no_file() {
  setenv("MSCCLSH_TABLE", "/tmp", 1);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "a folder");
  });
  EXPECT(count_of(text, "no file") == 1 && count_of(text, "\n") == 1, "it says: %s", text.c_str());
}

void silent_pipe() {
  const std::string pipe = log_path();
  EXPECT(mkfifo(pipe.c_str(), 0600) == 0, "a pipe");
  setenv("MSCCLSH_TABLE", pipe.c_str(), 1);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "a pipe");
  });
  EXPECT(count_of(text, "no file") == 1 && count_of(text, "\n") == 1, "it says: %s", text.c_str());
  std::remove(pipe.c_str());
}

// The table's file is written anew, and cut short, while the library is at work: what was
// read at the start goes on being used.
void written_anew() {
  use_table(standard({2}));
  Comms comms(2);
  ran_here(comms, small(), "the table as it was");
  FILE *f = std::fopen(std::getenv("MSCCLSH_TABLE"), "w");
  std::fclose(f);
  Call c = small();
  for (int32_t k = 0; k < MSCCLSH_SENDRECV; k++) {
    c.collective = k;
    c.count = 65;
    ran_here(comms, c, "the table was emptied");
  }
  Comms others(2);
  ran_here(others, c, "another communicator");
}

void denied() {
  use_table(standard({2}));
  Comms comms(2);
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
    Call call = small();
    call.collective = c;
    const bool no = c == MSCCLSH_ALLREDUCE || c == MSCCLSH_REDUCESCATTER;
    (no ? left_to_nccl : ran_here)(comms, call, "MSCCLSH_DENY");
  }
}

// Every demand of an entry: the program is used exactly where all are met.
void demands() {
  Bundle b;
  mscclsh_table_entry &e = b.add({MSCCLSH_ALLREDUCE, 2}, 64, 256);
  e.dtypes = 1u << 0;  // fp32
  e.ops = 1u << 0;     // sum
  b.add({MSCCLSH_BROADCAST, 2, 1}, 1, 1 << 20);
  mscclsh_table_entry &nodes = b.add({MSCCLSH_ALLGATHER, 2}, 1, 1 << 20);
  nodes.nodes = 2;
  b.add({MSCCLSH_ALLTOALL, 4}, 1, 1 << 20);
  use_table(b);
  setenv("MSCCLSH_LOG", ("choice:" + log_path()).c_str(), 1);
  {
    Comms comms(2);
    Call c = small();  // 256 bytes
    ran_here(comms, c, "all is met");
    c.count = 16;
    ran_here(comms, c, "the least bytes");
    c.count = 15;
    left_to_nccl(comms, c, "too few bytes");
    c.count = 65;
    left_to_nccl(comms, c, "too many bytes");
    c = small();
    c.op = ncclMax;
    left_to_nccl(comms, c, "another operation");
    c = small();
    c.type = ncclInt32;
    left_to_nccl(comms, c, "another type");
    c = small();
    c.collective = MSCCLSH_BROADCAST;
    left_to_nccl(comms, c, "another root");
    c.root = 1;
    ran_here(comms, c, "the root");
    c.collective = MSCCLSH_ALLGATHER;
    left_to_nccl(comms, c, "other nodes");
    c.collective = MSCCLSH_ALLTOALL;
    left_to_nccl(comms, c, "other ranks");
    c.collective = MSCCLSH_SCATTER;
    left_to_nccl(comms, c, "no such collective");
    left_to_nccl(comms, c, "the same again, which is one line in the log");
  }
  const std::string log = read_and_drop(log_path());
  for (const char *word : {"bytes", "op", "dtype", "root", "nodes"})
    EXPECT(log.find(word) != std::string::npos, "the log says nothing of %s:\n%s", word,
           log.c_str());
  EXPECT(count_of(log, "scatter") >= 1, "the log has the scatter:\n%s", log.c_str());
}

// damaged tries tables with one byte changed, all over the file: each is refused with one
// sentence, and nothing is run by it. The case's own process tries one of them.
void damaged_at(size_t part) {
  std::vector<unsigned char> file = standard({2}).bytes();
  const size_t at = part * (file.size() - 1) / 15;
  file[at] ^= 0x40;
  use_table(file);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "a damaged table");
  });
  EXPECT(count_of(text, "table") >= 1 && count_of(text, "\n") == 1, "byte %zu: it says: %s", at,
         text.c_str());
}

// Damage that was signed again: what is read is checked, whatever the digest says.
void nonsense() {
  Bundle b = standard({2});
  std::vector<unsigned char> file = b.bytes();
  mscclsh_table_header h;
  std::memcpy(&h, file.data(), sizeof h);
  const uint64_t far = uint64_t(1) << 60;
  std::memcpy(file.data() + h.programs + offsetof(mscclsh_table_program, steps), &far, sizeof far);
  sign(file);
  use_table(file);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "a table of nonsense");
  });
  EXPECT(count_of(text, "\n") == 1, "it says: %s", text.c_str());
}

void cut_short() {
  std::vector<unsigned char> file = standard({2}).bytes();
  file.resize(file.size() / 2);
  use_table(file);
  const std::string text = told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "half a table");
  });
  EXPECT(count_of(text, "\n") == 1, "it says: %s", text.c_str());
}

// A program that the engine refuses: its entry is not used, and the others are.
void refused() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  b.add({MSCCLSH_ALLGATHER, 2}, 1, 1 << 20);
  // A send to oneself, which no connection is for.
  for (const int i : {b.entries[0].entry.in_place, b.entries[0].entry.out_of_place})
    b.programs[size_t(i)].steps[0][0][0].send_peer = 0;
  use_table(b);
  told([] {
    Comms comms(2);
    left_to_nccl(comms, small(), "a program that is wrong");
    Call c = small();
    c.collective = MSCCLSH_ALLGATHER;
    ran_here(comms, c, "another program");
  });
}

// Two ranks on one device are NCCL's business.
void one_device() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) {
    stub().device(3);
    GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r));
  });
  stub().forget();
  std::vector<std::vector<float>> data = {{1, 2}, {3, 4}};
  threads(2, [&](int r) {
    float *at = data[size_t(r)].data();
    GOOD(ncclAllReduce(at, at, 2, ncclFloat32, ncclSum, comm[size_t(r)], nullptr));
  });
  EXPECT(stub().calls("ncclAllReduce") == 2, "NCCL got %d", int(stub().calls("ncclAllReduce")));
  EXPECT(data[0][0] == 4 && data[1][1] == 6, "%g %g", double(data[0][0]), double(data[1][1]));
  threads(2, [&](int r) { GOOD(ncclCommDestroy(comm[size_t(r)])); });
}

// Scratch beyond what a rank may have.
void scratch() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  b.programs[0].chunks[2] = b.programs[0].chunks[5] = 4;
  b.programs[1].chunks[2] = b.programs[1].chunks[5] = 4;
  std::vector<unsigned char> file = b.bytes();
  mscclsh_table_header h;
  std::memcpy(&h, file.data(), sizeof h);
  for (int i = 0; i < 2; i++) {
    const int64_t chunks = 4;
    std::memcpy(file.data() + h.programs + size_t(i) * sizeof(mscclsh_table_program) +
                    offsetof(mscclsh_table_program, scratch_chunks),
                &chunks, sizeof chunks);
  }
  sign(file);
  use_table(file);
  Comms comms(2);
  Call c = small();
  c.count = 512;  // 8 KiB of scratch
  ran_here(comms, c, "scratch that fits");
  c.count = 100000;
  left_to_nccl(comms, c, "scratch that does not fit");
}

// Priority, then least bytes, then name: the first that matches.
void priority() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20, "always").priority = 0;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 128, "first").priority = 2;
  b.add({MSCCLSH_ALLREDUCE, 2}, 64, 256, "second").priority = 1;
  use_table(b);
  setenv("MSCCLSH_LOG", ("choice:" + log_path()).c_str(), 1);
  {
    Comms comms(2);
    Call c = small();
    for (const size_t count : {32, 33, 65}) {  // 128, 132 and 260 bytes
      c.count = count;
      ran_here(comms, c, "priority");
    }
  }
  const std::string log = read_and_drop(log_path());
  for (const char *name : {"first", "second", "always"})
    EXPECT(log.find(name) != std::string::npos, "the log has no %s:\n%s", name, log.c_str());
}

}  // namespace

std::vector<Case> cases_of_fallback() {
  std::vector<Case> all = {{"switched off", {{"MSCCLSH_NCCL", "0"}}, switched_off},
                           {"no such table", {}, no_such_table},
                           {"no file", {}, no_file},
                           {"silent pipe", {}, silent_pipe},
                           {"a table written anew", {}, written_anew},
                           {"denied", {{"MSCCLSH_DENY", "allreduce,reduce_scatter"}}, denied},
                           {"demands", {}, demands},
                           {"nonsense", {}, nonsense},
                           {"cut short", {}, cut_short},
                           {"refused by the engine", {}, refused},
                           {"one device", {}, one_device},
                           {"scratch", {{"MSCCLSH_SCRATCH", "65536"}}, scratch},
                           {"priority", {}, priority}};
  static const char *const names[16] = {"damaged 0",  "damaged 1",  "damaged 2",  "damaged 3",
                                        "damaged 4",  "damaged 5",  "damaged 6",  "damaged 7",
                                        "damaged 8",  "damaged 9",  "damaged 10", "damaged 11",
                                        "damaged 12", "damaged 13", "damaged 14", "damaged 15"};
  for (size_t i = 0; i < 16; i++) all.push_back({names[i], {}, [i] { damaged_at(i); }});
  return all;
}

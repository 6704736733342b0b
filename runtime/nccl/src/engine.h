// The engine's communicator beside one of NCCL's: one a process, for all of its ranks
// there, with the programs of the table that can run.
#ifndef MSCCLSH_NCCL_ENGINE_H
#define MSCCLSH_NCCL_ENGINE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "board.h"
#include "gpu.h"
#include "mscclsh_cuda.h"
#include "table.h"
#include "windows.h"

namespace mscclsh::nccl {

// Layout is where the ranks of a communicator live, as they all know it.
struct Layout {
  std::vector<int32_t> process_of;  // of each rank
  std::vector<int32_t> pids;        // of each process
  std::vector<int32_t> devices;     // of each rank, as its process numbers it
  std::vector<int32_t> local;       // the ranks of this process
  int32_t self = 0;                 // this process
  int32_t multiprocessors = 0;      // of each device
};

// Engine owns what the processes made together. Calls for one device must not overlap:
// whoever makes one holds mu of its rank, and of all ranks for what all processes do together.
// A launch waits while its device's queue is full, which may be for other ranks to launch:
// so no rank ever waits for another's mu, but where all have come already.
class Engine {
 public:
  // Engine is a collective call of all processes; it fails in all of them.
  Engine(const Table &table, const Layout &layout, std::unique_ptr<BoardFile> file);
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  const Table &table;
  const Layout layout;
  std::mutex &mu(int32_t rank) { return mus_[size_t(rank)]; }

  mscclsh_comm *comm() const { return comm_; }
  mscclsh_prog *program(int32_t i) const { return programs_[size_t(i)]; }
  // one_memory is whether a program is for calls in place and for others, itself.
  bool one_memory(int32_t program) const { return one_memory_[size_t(program)]; }

  // ready says of each entry of the table whether it can run here.
  const std::vector<char> &ready() const { return ready_; }
  bool serves(int32_t collective) const { return serves_ >> collective & 1; }
  bool serves_windows() const { return serves_windows_; }
  const std::vector<std::string> &refusals() const { return refusals_; }

  // exchange is an allgather over the processes, within a collective call.
  bool exchange(const void *mine, void *all, int64_t bytes);

  // poll is what came between: MSCCLSH_OK, or a code with its sentence.
  int32_t poll(std::string *why);

  // abort ends all launches before long, and this process's part in everything.
  void abort();

  // A window is opened for all ranks once the last one of this process has told of its
  // memory: tell is called by each rank in the order of its registrations, and returns the
  // number of the window; opened waits for it. drop says that a rank needs one no more.
  // Memory may be in several windows, each of which is open until it is dropped itself.
  int32_t tell(int32_t rank, void *memory, int64_t bytes);
  struct Window {
    mscclsh_window *window;  // null: it is of no use
    int64_t bytes;           // that every rank has in it
    std::string why;         // it is of no use
  };
  Window opened(int32_t number, const std::atomic<bool> &abandoned);
  void drop(int32_t number);

  // one_process is whether all ranks are this process's. apart says that a call has failed on
  // some rank alone, so that nobody knows which calls of the ranks belong together.
  bool one_process() const { return layout.pids.size() == 1; }
  std::atomic<bool> apart{false};

  // inherit is memory of a device to be freed with the engine.
  void inherit(std::unique_ptr<Mapped> memory);

  // detach says that one of this process's ranks is no more. With the last one the engine
  // takes its part of everything down, together with the other processes if they come
  // before long; if they don't it is true, and everything stays until all have left.
  bool detach(bool aborted);
  bool all_left();

 private:
  struct Registration {
    std::vector<Span> spans;  // [ranks]: once it is open, those of all processes
    int32_t told = 0, dropped = 0;
    bool open = false, closed = false;
    Window window = {};
  };

  void create(const Layout &l);
  void load();
  int32_t load_program(int32_t i, char *err);
  void check_fit();
  bool fits(const mscclsh_table_entry &e, std::string *why);
  void allot();
  void reserve();
  bool wanted(const mscclsh_table_entry &e) const;
  void open(int32_t number);
  bool tell_all(Registration *r);
  std::string useless(size_t number) const;
  void close_dropped(size_t n);
  void take_down();

  std::vector<std::mutex> mus_;   // of each rank
  std::unique_ptr<Board> board_;  // null: one process
  mscclsh_comm *comm_ = nullptr;
  std::vector<mscclsh_prog *> programs_;
  std::vector<char> one_memory_;
  std::vector<int64_t> chunks_;  // of one-sided programs, the largest that there is scratch for
  std::vector<char> ready_;
  std::vector<std::string> refusals_;
  uint32_t serves_ = 0;
  bool serves_windows_ = false;
  std::mutex attached_mu_;
  size_t attached_;
  bool aborted_ = false;
  std::vector<std::unique_ptr<Mapped>> inherited_;

  std::mutex windows_mu_;
  std::vector<std::unique_ptr<Registration>> registrations_;
  std::vector<int32_t> told_;  // of each rank, how many registrations
};

// release gives a rank's share of an engine back. The last one frees it, or leaves it to
// sweep, which frees what other processes are done with by now.
void release(std::shared_ptr<Engine> engine, bool aborted);
void sweep();

}  // namespace mscclsh::nccl

#endif

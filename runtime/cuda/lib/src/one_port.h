// Port channels: a thread of the host takes the wishes of blocks from queues in its memory,
// one a rank, and has copy engines fulfill them. one_port_gpu.cu and one_port_host.cpp each
// define what copies.
#ifndef MSCCLSH_ONE_PORT_H
#define MSCCLSH_ONE_PORT_H

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "one_tables.h"

namespace mscclsh {

// PortMemory is memory of the host that devices reach, all zero.
class PortMemory {
 public:
  explicit PortMemory(size_t bytes);
  ~PortMemory();
  PortMemory(const PortMemory &) = delete;
  PortMemory &operator=(const PortMemory &) = delete;
  unsigned char *here() const { return here_; }
  unsigned char *there() const { return there_; }  // for kernels

 private:
  unsigned char *here_ = nullptr, *there_ = nullptr;
};

// PortLines copy on behalf of one device. What is given to one line is done in order, and
// has arrived before what comes after it on the line begins to be seen.
class PortLines {
 public:
  static constexpr uint32_t kLines = 4;

  explicit PortLines(int32_t device);
  ~PortLines();
  PortLines(const PortLines &) = delete;
  PortLines &operator=(const PortLines &) = delete;

  void copy(uint32_t line, void *to, const void *from, size_t bytes);
  void write(uint32_t line, uint64_t *to, uint64_t v);
  void settle();  // waits for all lines

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// PortEnd is a port channel of a rank: the counter of signals at its peer, and the word at
// the rank that says how far it has been flushed.
struct PortEnd {
  uint64_t *signals = nullptr;
  uint64_t *flushed = nullptr;
  uint64_t given = 0;  // signals since it was reset
};

// PortQueue is a rank's queue.
class PortQueue {
 public:
  PortQueue(int32_t device, std::vector<PortEnd> ends);

  // view is the queue for the rank's blocks; made is a word of the device's memory, zero.
  PortView view(uint64_t *made) const;

  // serve does what is asked for, some of it if it is much, and reports whether it was
  // anything.
  bool serve();
  void reset(uint32_t first);  // signals of the first ends are counted from 0 again
  void settle();               // waits until all that was served is done

 private:
  PortRequest *requests() const { return reinterpret_cast<PortRequest *>(memory_.here()); }

  PortMemory memory_;  // requests, then the number of those taken
  PortLines lines_;
  std::vector<PortEnd> ends_;
  uint64_t next_ = 0;
};

// Ports serves the queues of a communicator's programs with one thread.
class Ports {
 public:
  // failed is called, by that thread, when a copy can't be made.
  explicit Ports(std::function<void()> failed);
  ~Ports();
  Ports(const Ports &) = delete;
  Ports &operator=(const Ports &) = delete;

  // open begins to serve a queue, close ends it once what was served is done. Nothing that
  // uses it may run then.
  PortQueue *open(int32_t device, std::vector<PortEnd> ends);
  void close(PortQueue *queue);
  void reset(PortQueue *queue, uint32_t first);

  std::string error() const;  // of the copy that failed, "" if none has

 private:
  void run();
  bool serve();

  const std::function<void()> failed_;
  mutable std::mutex mu_;
  std::list<std::unique_ptr<PortQueue>> queues_;
  std::string error_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace mscclsh

#endif

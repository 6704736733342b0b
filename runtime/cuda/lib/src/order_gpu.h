// Putting what is enqueued on streams of the caller's into one order.
#ifndef MSCCLSH_ORDER_GPU_H
#define MSCCLSH_ORDER_GPU_H

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "device.h"

namespace mscclsh {

// Relaxed lets this thread allocate, record and query while it captures a stream.
class Relaxed {
 public:
  Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed &) = delete;
  Relaxed &operator=(const Relaxed &) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Order keeps the turns of one device (see Device::begin_turn).
//
// One event stands for all that was enqueued. As long as there is but one stream and no
// graph, turns follow each other on it by themselves, and nothing is recorded, which would
// keep launches from overlapping. When another stream comes, the event is recorded where the
// latest turn was, and from then on after every turn. Since a stream may be gone by then,
// the first turns on it are recorded too: only one that has had many is ever looked at again.
//
// A graph waits for the event when it begins and records it when its turns have ended, in
// every one of its launches: one node each, beside the path of the caller's work. So once
// there is a graph every turn waits for the event and records it.
class Order {
 public:
  Order() = default;
  ~Order();
  Order(const Order &) = delete;
  Order &operator=(const Order &) = delete;

  void open();  // on the device that is chosen
  Device::Turn begin(cudaStream_t stream);
  void end(cudaStream_t stream);
  uint64_t turn() const { return turn_; }
  uint64_t done();

 private:
  // Capture is one that has begun, or a graph that was made of it.
  struct Capture {
    unsigned long long id = 0;
    unsigned long long stream = 0;      // of its latest turn
    std::vector<cudaGraphNode_t> last;  // of its latest turn
    cudaGraphNode_t record = nullptr;   // of the event
  };

  bool begin_captured(cudaStream_t stream, unsigned long long capture, cudaGraph_t graph);
  void end_captured(cudaStream_t stream);
  Capture *find(unsigned long long id);
  bool record_latest();

  cudaEvent_t event_ = nullptr;
  cudaStream_t last_ = nullptr;  // of the latest turn, and its id
  unsigned long long last_id_ = 0;
  uint64_t turn_ = 0, done_ = 0;
  uint32_t in_a_row_ = 0;  // turns on that stream
  bool recorded_ = true;   // the event stands behind the latest turn
  bool many_ = false;      // there was another stream
  bool graphs_ = false;    // there was a capture
  std::vector<Capture> captures_;

  // Of the turn that has begun: its stream's id, and what that is captured into.
  unsigned long long id_ = 0, capture_ = 0;
  cudaGraph_t graph_ = nullptr;
  bool capturing_ = false;
};

}  // namespace mscclsh

#endif

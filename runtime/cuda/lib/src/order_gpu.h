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
// One event stands for all that was enqueued. It is recorded after every turn, at once: later
// the stream may be gone, or be captured, and then nobody can tell any more when what it had
// before is done. A turn on the stream of the one before follows that by itself; one on
// another stream waits for the event.
//
// A graph waits for the event when it begins and records it when its turns have ended, in
// every one of its launches: one node each, beside the path of the caller's work. So once
// there is a graph every turn waits for the event.
//
// A stream that is captured must not be asked for its number, nor for anything but what it is
// captured into: other questions end the capture. So turns of one capture are known by their
// nodes.
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
    std::vector<cudaGraphNode_t> last;  // of its latest turn
    cudaGraphNode_t record = nullptr;   // of the event
  };

  bool begin_captured(cudaStream_t stream);
  void end_captured(cudaStream_t stream);
  Capture *find(unsigned long long id);

  cudaEvent_t event_ = nullptr;  // behind the latest turn, or a graph's
  uint64_t turn_ = 0, done_ = 0;
  unsigned long long last_ = 0;  // number of the latest turn's stream
  bool graphs_ = false;          // there was a capture
  std::vector<Capture> captures_;

  // Of the turn that has begun: its stream's number, or else what that is captured into.
  bool capturing_ = false;
  unsigned long long stream_ = 0, capture_ = 0;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace mscclsh

#endif

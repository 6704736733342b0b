#include "order_gpu.h"

#include <algorithm>

#include "check_gpu.h"

namespace mscclsh {

namespace {

// kFew is how many turns on a stream are recorded one by one.
constexpr uint32_t kFew = 64;

// kCaptures is how many captures are remembered, the latest ones.
constexpr size_t kCaptures = 256;

// stream_id tells streams apart, one that is made where another one was too.
cudaError_t stream_id(cudaStream_t stream, unsigned long long *id) {
#if CUDART_VERSION >= 12000
  return cudaStreamGetId(stream, id);
#else
  *id = reinterpret_cast<unsigned long long>(stream);
  return cudaSuccess;
#endif
}

// Captured is what a stream is being captured into, and the nodes that its next one
// depends on.
struct Captured {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t *nodes = nullptr;
  size_t n = 0;
};

cudaError_t captured(cudaStream_t stream, Captured *to) {
#if CUDART_VERSION >= 13000
  const cudaGraphEdgeData *edges = nullptr;
  return cudaStreamGetCaptureInfo(stream, &to->status, &to->id, &to->graph, &to->nodes, &edges,
                                  &to->n);
#elif CUDART_VERSION >= 12030
  const cudaGraphEdgeData *edges = nullptr;
  return cudaStreamGetCaptureInfo_v3(stream, &to->status, &to->id, &to->graph, &to->nodes, &edges,
                                     &to->n);
#else
  return cudaStreamGetCaptureInfo_v2(stream, &to->status, &to->id, &to->graph, &to->nodes, &to->n);
#endif
}

// depend makes what a stream captures next depend on nodes too.
void depend(cudaStream_t stream, std::vector<cudaGraphNode_t> nodes) {
#if CUDART_VERSION >= 13000
  const cudaError_t e = cudaStreamUpdateCaptureDependencies(
      stream, nodes.data(), nullptr, nodes.size(), cudaStreamAddCaptureDependencies);
#else
  const cudaError_t e = cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nodes.size(),
                                                            cudaStreamAddCaptureDependencies);
#endif
  check(e, "ordering what is captured");
}

// follow makes a node depend on others too.
void follow(cudaGraph_t graph, cudaGraphNode_t node, const cudaGraphNode_t *on, size_t n) {
  for (size_t i = 0; i < n; i++) {
#if CUDART_VERSION >= 13000
    const cudaError_t e = cudaGraphAddDependencies(graph, on + i, &node, nullptr, 1);
#else
    const cudaError_t e = cudaGraphAddDependencies(graph, on + i, &node, 1);
#endif
    check(e, "ordering what is captured");
  }
}

}  // namespace

Order::~Order() {
  if (event_) cudaEventDestroy(event_);
}

void Order::open() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
}

Device::Turn Order::begin(cudaStream_t stream) {
  Captured now;
  check(captured(stream, &now), "asking whether the stream is captured");
  if (now.status == cudaStreamCaptureStatusInvalidated)
    throw Failure(MSCCLSH_EDEVICE, "the capture of the stream was ended by an error");
  check(stream_id(stream, &id_), "asking for the stream's number");
  capturing_ = now.status == cudaStreamCaptureStatusActive;
  if (capturing_) return {true, begin_captured(stream, now.id, now.graph)};
  if (turn_ > 0 && id_ != last_id_) {
    if (!record_latest())
      refused(
          "the stream of the launch before, the only one so far, is being captured: launch on "
          "another stream before that begins, or after it has ended");
    many_ = true;
  } else if (!graphs_) {
    return {false, true};
  }
  check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
  return {false, false};
}

void Order::end(cudaStream_t stream) {
  if (capturing_) {
    end_captured(stream);
    return;
  }
  in_a_row_ = id_ == last_id_ ? in_a_row_ + 1 : 1;
  last_ = stream;
  last_id_ = id_;
  turn_++;
  recorded_ = false;
  // The stream of each thread has one name for all of them: no other thread could find the
  // one that the latest turn was on.
  const bool nameless = stream == cudaStreamPerThread;
  if (!many_ && !graphs_ && in_a_row_ > kFew && !nameless) return;
  check(cudaEventRecord(event_, stream), "recording an event");
  recorded_ = true;
}

// record_latest records the event behind the latest turn, unless its stream is being
// captured. A stream that is gone has done what it had to: until then it must stay.
bool Order::record_latest() {
  if (recorded_) return true;
  unsigned long long id = 0;
  Captured now;
  if (stream_id(last_, &id) != cudaSuccess || id != last_id_ ||
      captured(last_, &now) != cudaSuccess) {
    cudaGetLastError();
    return recorded_ = true;
  }
  if (now.status != cudaStreamCaptureStatusNone) return false;
  check(cudaEventRecord(event_, last_), "recording an event");
  return recorded_ = true;
}

uint64_t Order::done() {
  if (done_ == turn_ || !record_latest()) return done_;
  const cudaError_t e = cudaEventQuery(event_);
  if (e == cudaSuccess) return done_ = turn_;
  if (e != cudaErrorNotReady) check(e, "looking at an event");
  cudaGetLastError();
  return done_;
}

Order::Capture *Order::find(unsigned long long id) {
  for (Capture &c : captures_)
    if (c.id == id) return &c;
  return nullptr;
}

// begin_captured returns whether a launch may overlap with what the stream captured before.
bool Order::begin_captured(cudaStream_t stream, unsigned long long capture, cudaGraph_t graph) {
  capture_ = capture;
  graph_ = graph;
  const Capture *known = find(capture);
  if (known != nullptr) {
    if (known->stream == id_) return true;
    depend(stream, known->last);
    return false;
  }
  // Where the latest turn's stream is what is being captured, only that stream's own order
  // puts the graph behind it.
  record_latest();
  graphs_ = true;
  cudaGraphNode_t wait = nullptr;
  check(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, event_), "waiting in a graph");
  depend(stream, {wait});
  return false;
}

void Order::end_captured(cudaStream_t stream) {
  Captured now;
  check(captured(stream, &now), "asking what is captured");
  Capture *c = find(capture_);
  if (c == nullptr) {
    if (captures_.size() == kCaptures) captures_.erase(captures_.begin());
    captures_.emplace_back();
    c = &captures_.back();
    c->id = capture_;
    check(cudaGraphAddEventRecordNode(&c->record, graph_, now.nodes, now.n, event_),
          "recording an event in a graph");
  } else {
    follow(graph_, c->record, now.nodes, now.n);
  }
  c->stream = id_;
  c->last.assign(now.nodes, now.nodes + now.n);
}

}  // namespace mscclsh

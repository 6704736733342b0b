#include "order_gpu.h"

#include <algorithm>

#include "check_gpu.h"

namespace mscclsh {

namespace {

// kCaptures is how many captures are remembered, the latest ones.
constexpr size_t kCaptures = 256;

// kNear is how many nodes of a graph are looked at, to find out whether it orders two turns.
constexpr size_t kNear = 256;

// stream_id tells streams apart, one that is made where another one was too; 0 is not known.
// The stream must not be captured.
cudaError_t stream_id(cudaStream_t stream, unsigned long long *id) {
#if CUDART_VERSION >= 12000
  return cudaStreamGetId(stream, id);
#else
  static_cast<void>(stream);
  *id = 0;
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

bool among(cudaGraphNode_t node, const std::vector<cudaGraphNode_t> &nodes) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// move makes a node that depends on some nodes depend on others instead.
void move(cudaGraph_t graph, cudaGraphNode_t node, const std::vector<cudaGraphNode_t> &from,
          const std::vector<cudaGraphNode_t> &to) {
  const char *const doing = "ordering what is captured";
  for (const cudaGraphNode_t on : to) {
    if (among(on, from)) continue;
#if CUDART_VERSION >= 13000
    check(cudaGraphAddDependencies(graph, &on, &node, nullptr, 1), doing);
#else
    check(cudaGraphAddDependencies(graph, &on, &node, 1), doing);
#endif
  }
  for (const cudaGraphNode_t on : from) {
    if (among(on, to)) continue;
#if CUDART_VERSION >= 13000
    check(cudaGraphRemoveDependencies(graph, &on, &node, nullptr, 1), doing);
#else
    check(cudaGraphRemoveDependencies(graph, &on, &node, 1), doing);
#endif
  }
}

// before lists the nodes that a node depends on.
std::vector<cudaGraphNode_t> before(cudaGraphNode_t node) {
  size_t n = 0;
  std::vector<cudaGraphNode_t> nodes;
#if CUDART_VERSION >= 12030
#if CUDART_VERSION >= 13000
  const auto ask = cudaGraphNodeGetDependencies;
#else
  const auto ask = cudaGraphNodeGetDependencies_v2;
#endif
  check(ask(node, nullptr, nullptr, &n), "looking at what is captured");
  nodes.resize(n);
  std::vector<cudaGraphEdgeData> edges(n);
  if (n > 0) check(ask(node, nodes.data(), edges.data(), &n), "looking at what is captured");
#else
  check(cudaGraphNodeGetDependencies(node, nullptr, &n), "looking at what is captured");
  nodes.resize(n);
  if (n > 0)
    check(cudaGraphNodeGetDependencies(node, nodes.data(), &n), "looking at what is captured");
#endif
  return nodes;
}

// behind is whether all of some nodes are among others, or come before those, as far as it
// is to be found near them: false is not known.
bool behind(const cudaGraphNode_t *nodes, size_t n, std::vector<cudaGraphNode_t> wanted) {
  std::vector<cudaGraphNode_t> seen(nodes, nodes + n);
  for (size_t i = 0; i < seen.size() && !wanted.empty(); i++) {
    const auto found = std::find(wanted.begin(), wanted.end(), seen[i]);
    if (found != wanted.end()) {
      wanted.erase(found);
      continue;
    }
    if (seen.size() >= kNear) continue;
    for (const cudaGraphNode_t b : before(seen[i]))
      if (!among(b, seen)) seen.push_back(b);
  }
  return wanted.empty();
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
  capturing_ = now.status == cudaStreamCaptureStatusActive;
  if (capturing_) {
    capture_ = now.id;
    graph_ = now.graph;
    return {true, begin_captured(stream)};
  }
  check(stream_id(stream, &stream_), "asking for the stream's number");
  const bool follows = turn_ == 0 || (stream_ == last_ && stream_ != 0);
  if (follows && !graphs_) return {false, true};
  check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
  return {false, false};
}

void Order::end(cudaStream_t stream) {
  if (capturing_) {
    end_captured(stream);
    return;
  }
  check(cudaEventRecord(event_, stream), "recording an event");
  last_ = stream_;
  turn_++;
}

uint64_t Order::done() {
  if (done_ == turn_) return done_;
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

// begin_captured returns whether a launch may overlap with what the stream captured before:
// it may where that comes behind the latest turn, or is that.
bool Order::begin_captured(cudaStream_t stream) {
  const Relaxed relaxed;
  if (const Capture *known = find(capture_)) {
    Captured now;
    check(captured(stream, &now), "asking what is captured");
    if (behind(now.nodes, now.n, known->last)) return true;
    depend(stream, known->last);
    return false;
  }
  graphs_ = true;
  cudaGraphNode_t wait = nullptr;
  check(cudaGraphAddEventWaitNode(&wait, graph_, nullptr, 0, event_), "waiting in a graph");
  depend(stream, {wait});
  return false;
}

void Order::end_captured(cudaStream_t stream) {
  const Relaxed relaxed;
  Captured now;
  check(captured(stream, &now), "asking what is captured");
  std::vector<cudaGraphNode_t> last(now.nodes, now.nodes + now.n);
  Capture *c = find(capture_);
  if (c == nullptr) {
    if (captures_.size() == kCaptures) captures_.erase(captures_.begin());
    captures_.emplace_back();
    c = &captures_.back();
    c->id = capture_;
    check(cudaGraphAddEventRecordNode(&c->record, graph_, last.data(), last.size(), event_),
          "recording an event in a graph");
  } else {
    // This turn comes behind the one before. An edge more for each would cost as much as the
    // whole order does otherwise.
    move(graph_, c->record, c->last, last);
  }
  c->last = std::move(last);
}

}  // namespace mscclsh

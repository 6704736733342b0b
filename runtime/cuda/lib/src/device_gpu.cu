// Devices through the CUDA run-time library, linked statically.
#include "device.h"

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

#include "check_gpu.h"
#include "memory_gpu.h"
#include "order_gpu.h"

namespace mscclsh {

int32_t device_count() {
  int n = 0;
  check(cudaGetDeviceCount(&n), "counting GPUs");
  return n;
}

mscclsh_device device_info(int32_t id) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, id), "asking for the GPU's properties");
  mscclsh_device d = {};
  std::snprintf(d.name, sizeof d.name, "%.127s", p.name);
  d.memory = int64_t(p.totalGlobalMem);
  d.multiprocessors = p.multiProcessorCount;
  d.major = p.major;
  d.minor = p.minor;
  return d;
}

#define MSCCLSH_TEXT2(x) #x
#define MSCCLSH_TEXT(x) MSCCLSH_TEXT2(x)

const char *build_name() {
  return "cuda " MSCCLSH_TEXT(__CUDACC_VER_MAJOR__) "." MSCCLSH_TEXT(
      __CUDACC_VER_MINOR__) ", " MSCCLSH_ARCHS;
}

int32_t default_threads() { return kMaxThreads; }
int32_t thread_unit() { return 32; }

KeptDevice::KeptDevice() {
  int id = -1;
  if (cudaGetDevice(&id) != cudaSuccess) cudaGetLastError();
  id_ = id;
}
KeptDevice::~KeptDevice() {
  int id = id_;
  if (id_ >= 0 && cudaGetDevice(&id) == cudaSuccess && id != id_) cudaSetDevice(id_);
}

HostFlag::HostFlag(std::unique_ptr<SharedFile> file) : file_(std::move(file)) {
  void *p = nullptr;
  if (file_ == nullptr) {
    check(cudaHostAlloc(&p, 2 * sizeof *word_, cudaHostAllocPortable | cudaHostAllocMapped),
          "allocating host memory");
    here_ = static_cast<uint32_t *>(p);
    here_[0] = here_[1] = 0;
  } else {
    check(cudaHostRegister(file_->at(), file_->bytes(),
                           cudaHostRegisterPortable | cudaHostRegisterMapped),
          "opening host memory to the GPUs");
    here_ = static_cast<uint32_t *>(file_->at());
  }
  check(cudaHostGetDevicePointer(&p, here_, 0), "opening host memory to the GPUs");
  word_ = static_cast<uint32_t *>(p);
}
HostFlag::~HostFlag() {
  if (file_)
    cudaHostUnregister(here_);
  else
    cudaFreeHost(here_);
}
bool HostFlag::raised() const { return *static_cast<volatile uint32_t *>(here_) != 0; }
void HostFlag::abort() {
  __atomic_store_n(here_ + 1, 1, __ATOMIC_RELEASE);
  __atomic_store_n(here_, 1, __ATOMIC_RELEASE);
}
bool HostFlag::aborted() const { return __atomic_load_n(here_ + 1, __ATOMIC_ACQUIRE) != 0; }

namespace {

// kUnit is what shared memory is allocated in: the driver may put smaller allocations
// into one, all of which another process would see.
constexpr size_t kUnit = size_t(2) << 20;

// kStaged is what is copied to the device at once without waiting for its queue, bytes.
constexpr size_t kStaged = size_t(256) << 10;

}  // namespace

struct Device::Impl {
  cudaStream_t stream = nullptr;
  bool others = false;  // streams of the caller's were used
  cudaEvent_t begin = nullptr, end = nullptr;
  int multiprocessors = 0;
  int major = 0;  // compute capability
  Order order;
  // A stream of its own for copies to the device, through memory that stays where it is.
  cudaStream_t copies = nullptr;
  void *staged = nullptr;
  uint64_t told = 0;  // allocations without an identity that were told by a descriptor
  // Memory that is mapped here, others' by a descriptor or its own: bytes of each.
  std::map<unsigned char *, size_t> mapped;
  std::map<std::tuple<const void *, int32_t, size_t>, Fit> fits;

  // unmap is false for memory that is not mapped here.
  bool unmap(unsigned char *start) {
    const auto found = mapped.find(start);
    if (found == mapped.end()) return false;
    const size_t bytes = found->second;
    mapped.erase(found);
    mscclsh::unmap(start, bytes);
    return true;
  }
};

struct Device::Graph {
  cudaGraphExec_t exec = nullptr;
};

Device::Device(int32_t id) : id(id), impl_(new Impl) {
  use(id);
  int cooperative = 0;
  check(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, id),
        "asking for cooperative launches");
  if (!cooperative) refused(format("GPU %d has no cooperative launches", id));
  check(cudaDeviceGetAttribute(&impl_->major, cudaDevAttrComputeCapabilityMajor, id),
        "asking for the compute capability");
  check(cudaDeviceGetAttribute(&impl_->multiprocessors, cudaDevAttrMultiProcessorCount, id),
        "counting multiprocessors");
  check(cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking), "making a stream");
  check(cudaEventCreate(&impl_->begin), "making an event");
  check(cudaEventCreate(&impl_->end), "making an event");
  impl_->order.open();
  check(cudaStreamCreateWithFlags(&impl_->copies, cudaStreamNonBlocking), "making a stream");
  check(cudaHostAlloc(&impl_->staged, kStaged, cudaHostAllocDefault), "allocating host memory");
}

Device::~Device() {
  if (cudaSetDevice(id) != cudaSuccess) return;
  if (impl_->staged) cudaFreeHost(impl_->staged);
  if (impl_->copies) cudaStreamDestroy(impl_->copies);
  if (impl_->end) cudaEventDestroy(impl_->end);
  if (impl_->begin) cudaEventDestroy(impl_->begin);
  if (impl_->stream) cudaStreamDestroy(impl_->stream);
}

void Device::open_peer(const Device &other) {
  use(id);
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, id, other.id), "asking for peer access");
  if (!can) refused(format("GPU %d can't reach the memory of GPU %d", id, other.id));
  cudaError_t e = cudaDeviceEnablePeerAccess(other.id, 0);
  if (e == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check(e, "opening peer access");
}

// Where devices have atomics of their own on each other's memory, NVLink is between them.
bool Device::whole_lines(const Device &other) {
  if (id == other.id) return true;
  int atomics = 0;
  check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, id, other.id),
        "asking what is between two GPUs");
  return atomics != 0;
}

void *Device::alloc(size_t bytes) {
  use(id);
  void *p = nullptr;
  if (bytes == 0) bytes = 1;
  check(cudaMalloc(&p, bytes), format("allocating %zu bytes on GPU %d", bytes, id).c_str());
  try {
    fill(p, 0, bytes);
  } catch (...) {
    cudaFree(p);
    throw;
  }
  return p;
}

void *Device::alloc_now(size_t bytes) {
  use(id);
  const Relaxed relaxed;
  unsigned char *const p = map_new(&bytes, id);
  impl_->mapped[p] = bytes;
  return p;
}

void *Device::alloc_shared(size_t bytes) { return alloc((bytes / kUnit + 1) * kUnit); }

void Device::free(void *p) {
  if (p == nullptr) return;
  use(id);
  // Both wait for what runs on the device: unmapping would not by itself.
  if (impl_->mapped.count(static_cast<unsigned char *>(p)) == 0)
    check(cudaFree(p), "freeing memory");
  else
    check(cudaDeviceSynchronize(), "waiting for the GPU");
  impl_->unmap(static_cast<unsigned char *>(p));
}

bool Device::reaches(const void *p) {
  use(id);
  const Relaxed relaxed;
  return reachable(p);
}

uint64_t Device::identity(const void *p, size_t bytes) {
  use(id);
  const Relaxed relaxed;
  const Allocation a = allocation_of(p);
  const size_t offset = size_t(static_cast<const unsigned char *>(p) - a.start);
  if (bytes > a.bytes - offset)
    refused(format("%zu bytes from %p on reach beyond their allocation, of which %zu are left",
                   bytes, p, a.bytes - offset));
  return a.id;
}

Export Device::tell(const void *p, Fd *fd) {
  use(id);
  const Allocation a = allocation_of(p);
  Export to = {};
  to.offset = static_cast<const unsigned char *>(p) - a.start;
  to.bytes = int64_t(a.bytes);
  to.fd = -1;
  if (a.ipc || fd == nullptr) {
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof Export::handle, "a handle's size");
    const cudaError_t e = cudaIpcGetMemHandle(&handle, a.start);
    if (e != cudaSuccess) {
      cudaGetLastError();
      refused(
          format("memory on GPU %d can't be told to other processes, as that of cudaMalloc can: %s",
                 id, cudaGetErrorString(e)));
    }
    std::memcpy(to.handle, &handle, sizeof handle);
    return to;
  }
  *fd = export_fd(p);
  to.by_fd = 1;
  // One name for an allocation, however often it is told of: who opens it twice has it once.
  const uint64_t name[] = {uint64_t(getpid()), uint64_t(id), a.id, a.id != 0 ? 0 : ++impl_->told};
  std::memcpy(to.handle, name, sizeof name);
  return to;
}

unsigned char *Device::map(const Export &e) {
  use(id);
  if (e.by_fd) {
    unsigned char *start = import_fd(e.fd, size_t(e.bytes), id);
    impl_->mapped[start] = size_t(e.bytes);
    return start;
  }
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, e.handle, sizeof handle);
  void *p = nullptr;
  check(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess),
        format("opening another process's memory to GPU %d", id).c_str());
  return static_cast<unsigned char *>(p);
}

void Device::unmap(unsigned char *start) {
  use(id);
  if (!impl_->unmap(start)) check(cudaIpcCloseMemHandle(start), "closing another process's memory");
}

void Device::upload(void *to, const void *from, size_t bytes) {
  use(id);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, impl_->stream),
        "copying to the GPU");
  sync();
}

void Device::download(void *to, const void *from, size_t bytes) {
  use(id);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, impl_->stream),
        "copying from the GPU");
  sync();
}

void Device::fill(void *to, int value, size_t bytes) {
  use(id);
  check(cudaMemsetAsync(to, value, bytes, impl_->stream), "filling memory");
  sync();
}

void Device::place(void *to, const void *from, size_t bytes) {
  use(id);
  const Relaxed relaxed;
  for (size_t done = 0; done < bytes; done += kStaged) {
    const size_t n = std::min(kStaged, bytes - done);
    std::memcpy(impl_->staged, static_cast<const unsigned char *>(from) + done, n);
    check(cudaMemcpyAsync(static_cast<unsigned char *>(to) + done, impl_->staged, n,
                          cudaMemcpyHostToDevice, impl_->copies),
          "copying to the GPU");
    check(cudaStreamSynchronize(impl_->copies), "copying to the GPU");
  }
}

Fit Device::fit(Kernel kernel, int32_t threads, size_t shared) {
  const void *f = reinterpret_cast<const void *>(kernel);
  const auto key = std::make_tuple(f, threads, shared);
  const auto known = impl_->fits.find(key);
  if (known != impl_->fits.end()) return known->second;
  use(id);
  const Relaxed relaxed;
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, f), "loading the kernel");
  int per = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, f, threads, shared),
        "asking how many blocks fit");
  return impl_->fits[key] = {per * impl_->multiprocessors, a.numRegs};
}

void Device::load(DivideKernel kernel) {
  use(id);
  const Relaxed relaxed;
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, reinterpret_cast<const void *>(kernel)), "loading the division");
}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared,
                    const Args &args) {
  start(kernel, blocks, threads, shared, args, impl_->stream, true);
}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
                    void *stream, bool overlaps) {
  impl_->others = true;
  start(kernel, blocks, threads, shared, args, stream, overlaps);
}

void Device::start(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
                   void *stream, bool overlaps) {
  use(id);
  // All blocks at once; and where a GPU can, they may start while the launch before still
  // runs, and do what does not depend on it.
  cudaLaunchAttribute attrs[2] = {};
  attrs[0].id = cudaLaunchAttributeCooperative;
  attrs[0].val.cooperative = 1;
  attrs[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attrs[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(unsigned(blocks));
  c.blockDim = dim3(unsigned(threads));
  c.dynamicSmemBytes = shared;
  c.stream = static_cast<cudaStream_t>(stream);
  c.attrs = attrs;
  c.numAttrs = impl_->major >= 9 && overlaps ? 2 : 1;
  Args copy = args;
  void *params[] = {&copy};
  check(cudaLaunchKernelExC(&c, reinterpret_cast<const void *>(kernel), params),
        "launching the kernel");
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n) {
  divide(kernel, runs, n, impl_->stream);
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n, void *stream,
                    const Bases &bases) {
  use(id);
  Bases copy = bases;
  void *params[] = {&runs, &n, &copy};
  check(cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                         dim3(unsigned(2 * impl_->multiprocessors)), dim3(256), params, 0,
                         static_cast<cudaStream_t>(stream)),
        "launching the division");
}

void Device::copy(void *to, const void *from, size_t bytes, void *stream) {
  use(id);
  impl_->others = true;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
        "copying");
}

Device::Turn Device::begin_turn(void *stream) {
  use(id);
  return impl_->order.begin(static_cast<cudaStream_t>(stream));
}

void Device::end_turn(void *stream) { impl_->order.end(static_cast<cudaStream_t>(stream)); }

uint64_t Device::turn() const { return impl_->order.turn(); }

uint64_t Device::turns_done() {
  use(id);
  const Relaxed relaxed;
  return impl_->order.done();
}

void Device::load(DataKernel kernel) {
  use(id);
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, reinterpret_cast<const void *>(kernel)),
        "loading the comparison");
}

void Device::launch(DataKernel kernel, const DataArgs &args) {
  use(id);
  DataArgs copy = args;
  void *params[] = {&copy};
  check(cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                         dim3(unsigned(8 * impl_->multiprocessors)), dim3(256), params, 0,
                         impl_->stream),
        "launching the comparison");
}

// Relaxed: while the graph of one device is being made, the streams of the others
// are still capturing, which the stricter modes forbid.
void Device::begin_capture() {
  use(id);
  check(cudaStreamBeginCapture(impl_->stream, cudaStreamCaptureModeRelaxed),
        "starting to capture a graph");
}

Device::Graph *Device::end_capture() {
  use(id);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(impl_->stream, &graph), "capturing a graph");
  std::unique_ptr<Graph> g(new Graph);
  cudaError_t e = cudaGraphInstantiateWithFlags(&g->exec, graph, 0);
  cudaGraphDestroy(graph);
  check(e, "making a graph");
  e = cudaGraphUpload(g->exec, impl_->stream);
  if (e != cudaSuccess) cudaGraphExecDestroy(g->exec);
  check(e, "loading a graph");
  return g.release();
}

void Device::replay(Graph *graph) {
  use(id);
  check(cudaGraphLaunch(graph->exec, impl_->stream), "launching a graph");
}

void Device::drop(Graph *graph) {
  if (graph == nullptr) return;
  use(id);
  cudaGraphExecDestroy(graph->exec);
  delete graph;
}

void Device::begin_timing() {
  use(id);
  check(cudaEventRecord(impl_->begin, impl_->stream), "recording an event");
}
void Device::end_timing() {
  use(id);
  check(cudaEventRecord(impl_->end, impl_->stream), "recording an event");
}
double Device::timed_ns() {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, impl_->begin, impl_->end), "reading events");
  return double(ms) * 1e6;
}

void Device::sync() {
  use(id);
  check(impl_->others ? cudaDeviceSynchronize() : cudaStreamSynchronize(impl_->stream),
        "waiting for the GPU");
}

}  // namespace mscclsh

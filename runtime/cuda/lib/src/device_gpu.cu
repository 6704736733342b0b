// Devices through the CUDA run-time library, linked statically.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "device.h"

namespace mscclsh {

namespace {

void check(cudaError_t e, const char *doing) {
  if (e == cudaSuccess) return;
  int32_t code = e == cudaErrorMemoryAllocation ? MSCCLSH_EREFUSED : MSCCLSH_EDEVICE;
  cudaGetLastError();  // so that a later call does not report it again
  throw Failure(code, format("%s: %s", doing, cudaGetErrorString(e)));
}

void use(int32_t id) { check(cudaSetDevice(id), "choosing the device"); }

}  // namespace

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

HostFlag::HostFlag(std::unique_ptr<SharedFile> file) : file_(std::move(file)) {
  void *p = nullptr;
  if (file_ == nullptr) {
    check(cudaHostAlloc(&p, sizeof *word_, cudaHostAllocPortable | cudaHostAllocMapped),
          "allocating host memory");
    here_ = static_cast<uint32_t *>(p);
    *here_ = 0;
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

namespace {

// kUnit is what shared memory is allocated in: the driver may put smaller allocations
// into one, all of which another process would see.
constexpr size_t kUnit = size_t(2) << 20;

// allocation finds the start and the size of the allocation that p lies in, which only
// the driver knows.
void allocation(const void *p, unsigned char **start, size_t *bytes) {
  using Range = int (*)(unsigned long long *, size_t *, unsigned long long);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) throw Failure(MSCCLSH_EDEVICE, format("no driver: %s", dlerror()));
  Range range = reinterpret_cast<Range>(dlsym(driver, "cuMemGetAddressRange_v2"));
  unsigned long long base = 0;
  const int result = range ? range(&base, bytes, reinterpret_cast<unsigned long long>(p)) : -1;
  dlclose(driver);
  if (result != 0) refused(format("the driver knows no allocation at %p (error %d)", p, result));
  *start = reinterpret_cast<unsigned char *>(base);
}

}  // namespace

struct Device::Impl {
  cudaStream_t stream = nullptr;
  bool others = false;  // streams of the caller's were used
  cudaEvent_t begin = nullptr, end = nullptr;
  int multiprocessors = 0;
  int major = 0;  // compute capability
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
}

Device::~Device() {
  if (cudaSetDevice(id) != cudaSuccess) return;
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

void *Device::alloc_shared(size_t bytes) { return alloc((bytes / kUnit + 1) * kUnit); }

void Device::free(void *p) {
  if (p == nullptr) return;
  use(id);
  check(cudaFree(p), "freeing memory");
}

Export Device::tell(const void *p) {
  use(id);
  unsigned char *start = nullptr;
  size_t bytes = 0;
  allocation(p, &start, &bytes);
  cudaIpcMemHandle_t handle;
  static_assert(sizeof handle == sizeof Export::handle, "a handle's size");
  cudaError_t e = cudaIpcGetMemHandle(&handle, start);
  if (e != cudaSuccess) {
    cudaGetLastError();
    refused(
        format("memory on GPU %d can't be told to other processes, as that of cudaMalloc can: %s",
               id, cudaGetErrorString(e)));
  }
  Export to = {};
  std::memcpy(to.handle, &handle, sizeof handle);
  to.offset = static_cast<const unsigned char *>(p) - start;
  to.bytes = int64_t(bytes);
  return to;
}

unsigned char *Device::map(const Export &e) {
  use(id);
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, e.handle, sizeof handle);
  void *p = nullptr;
  check(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess),
        format("opening another process's memory to GPU %d", id).c_str());
  return static_cast<unsigned char *>(p);
}

void Device::unmap(unsigned char *start) {
  use(id);
  check(cudaIpcCloseMemHandle(start), "closing another process's memory");
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

Fit Device::fit(Kernel kernel, int32_t threads, size_t shared) {
  use(id);
  const void *f = reinterpret_cast<const void *>(kernel);
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, f), "loading the kernel");
  int per = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, f, threads, shared),
        "asking how many blocks fit");
  return {per * impl_->multiprocessors, a.numRegs};
}

void Device::load(DivideKernel kernel) {
  use(id);
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, reinterpret_cast<const void *>(kernel)), "loading the division");
}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared,
                    const Args &args) {
  start(kernel, blocks, threads, shared, args, impl_->stream);
}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
                    void *stream) {
  impl_->others = true;
  start(kernel, blocks, threads, shared, args, stream);
}

void Device::start(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
                   void *stream) {
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
  c.numAttrs = impl_->major >= 9 ? 2 : 1;
  Args copy = args;
  void *params[] = {&copy};
  check(cudaLaunchKernelExC(&c, reinterpret_cast<const void *>(kernel), params),
        "launching the kernel");
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n) {
  divide(kernel, runs, n, impl_->stream);
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n, void *stream) {
  use(id);
  void *params[] = {&runs, &n};
  check(cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                         dim3(unsigned(2 * impl_->multiprocessors)), dim3(256), params, 0,
                         static_cast<cudaStream_t>(stream)),
        "launching the division");
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

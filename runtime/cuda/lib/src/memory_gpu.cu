#include "memory_gpu.h"

#include <cuda.h>

#include "check_gpu.h"

namespace mscclsh {

namespace {

// entry finds a function of the driver, which is not linked with.
void *entry(const char *name) {
  void *p = nullptr;
#if CUDART_VERSION >= 12050
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &found),
        "finding a function of the driver");
#else
  check(cudaGetDriverEntryPoint(name, &p, cudaEnableDefault), "finding a function of the driver");
#endif
  if (p == nullptr) refused(format("the driver has no function %s", name));
  return p;
}

#define MSCCLSH_DRIVER(f) reinterpret_cast<decltype(&f)>(entry(#f))

// driver_check turns an error of the driver into one of the caller's.
void driver_check(CUresult e, const char *doing) {
  if (e == CUDA_SUCCESS) return;
  const char *text = nullptr;
  MSCCLSH_DRIVER(cuGetErrorString)(e, &text);
  throw Failure(e == CUDA_ERROR_OUT_OF_MEMORY ? MSCCLSH_EREFUSED : MSCCLSH_EDEVICE,
                format("%s: %s", doing, text ? text : "an error without a name"));
}

CUdeviceptr address(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }

// attribute asks for one that drivers may not know; 0 is what they say then.
template <class T>
T attribute(CUpointer_attribute which, const void *p) {
  static const auto get = MSCCLSH_DRIVER(cuPointerGetAttribute);
  T v = {};
  return get(&v, which, address(p)) == CUDA_SUCCESS ? v : T{};
}

// kBlockId is CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, which older headers lack: the number of
// what is mapped where CU_POINTER_ATTRIBUTE_BUFFER_ID may be that of the addresses.
constexpr CUpointer_attribute kBlockId = CUpointer_attribute(20);

// Handle is one that is released at the end.
struct Handle {
  CUmemGenericAllocationHandle h = 0;
  ~Handle() {
    if (h != 0) MSCCLSH_DRIVER(cuMemRelease)(h);
  }
};

}  // namespace

Allocation allocation_of(const void *p) {
  static const auto range = MSCCLSH_DRIVER(cuMemGetAddressRange);
  if (attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) != CU_MEMORYTYPE_DEVICE)
    refused(format("there is no memory of a GPU at %p", p));
  CUdeviceptr start = 0;
  size_t bytes = 0;
  if (range(&start, &bytes, address(p)) != CUDA_SUCCESS)
    refused(format("the driver knows no allocation at %p", p));
  Allocation a = {};
  a.start = reinterpret_cast<unsigned char *>(start);
  a.bytes = bytes;
  const unsigned long long ids[] = {
      attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, p),
      attribute<unsigned long long>(kBlockId, p)};
  a.id = ids[0] == 0 && ids[1] == 0 ? 0 : digest(1, ids, 2);
  a.ipc = attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p) != 0;
  return a;
}

bool reachable(const void *p) {
  return attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p) != 0 ||
         attribute<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p) ==
             CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

Fd export_fd(const void *p) {
  Handle handle;
  const char *const what = "can't be told to others, as that of cudaMalloc and ncclMemAlloc can";
  if (MSCCLSH_DRIVER(cuMemRetainAllocationHandle)(&handle.h, const_cast<void *>(p)) != CUDA_SUCCESS)
    refused(format("memory at %p %s: it is of a pool", p, what));
  CUmemAllocationProp prop = {};
  driver_check(MSCCLSH_DRIVER(cuMemGetAllocationPropertiesFromHandle)(&prop, handle.h),
               "asking what memory is");
  if ((prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    refused(format("memory at %p %s: it was made without a file descriptor", p, what));
  int fd = -1;
  driver_check(MSCCLSH_DRIVER(cuMemExportToShareableHandle)(
                   &fd, handle.h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "making a descriptor of memory");
  return Fd(fd);
}

namespace {

CUmemLocation on_device(int32_t device) {
  CUmemLocation at = {};
  at.type = CU_MEM_LOCATION_TYPE_DEVICE;
  at.id = device;
  return at;
}

// map_for maps an allocation for a device. The mapping keeps it when the handle is released.
unsigned char *map_for(CUmemGenericAllocationHandle handle, size_t bytes, int32_t device) {
  CUdeviceptr at = 0;
  driver_check(MSCCLSH_DRIVER(cuMemAddressReserve)(&at, bytes, 0, 0, 0), "reserving addresses");
  bool mapped = false;
  try {
    driver_check(MSCCLSH_DRIVER(cuMemMap)(at, bytes, 0, handle, 0), "mapping memory");
    mapped = true;
    CUmemAccessDesc access = {};
    access.location = on_device(device);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_check(MSCCLSH_DRIVER(cuMemSetAccess)(at, bytes, &access, 1),
                 format("opening memory to GPU %d", device).c_str());
  } catch (const Failure &) {
    if (mapped) MSCCLSH_DRIVER(cuMemUnmap)(at, bytes);
    MSCCLSH_DRIVER(cuMemAddressFree)(at, bytes);
    throw;
  }
  return reinterpret_cast<unsigned char *>(at);
}

}  // namespace

unsigned char *import_fd(int fd, size_t bytes, int32_t device) {
  Handle handle;
  driver_check(MSCCLSH_DRIVER(cuMemImportFromShareableHandle)(
                   &handle.h, reinterpret_cast<void *>(static_cast<intptr_t>(fd)),
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "opening a descriptor of memory");
  return map_for(handle.h, bytes, device);
}

unsigned char *map_new(size_t *bytes, int32_t device) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = on_device(device);
  size_t unit = 0;
  driver_check(MSCCLSH_DRIVER(cuMemGetAllocationGranularity)(&unit, &prop,
                                                             CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "asking what memory is allocated in");
  const size_t all = (*bytes + unit - 1) / unit * unit;
  Handle handle;
  driver_check(MSCCLSH_DRIVER(cuMemCreate)(&handle.h, all, &prop, 0),
               format("allocating %zu bytes on GPU %d", all, device).c_str());
  unsigned char *const start = map_for(handle.h, all, device);
  *bytes = all;
  return start;
}

void unmap(unsigned char *start, size_t bytes) {
  driver_check(MSCCLSH_DRIVER(cuMemUnmap)(address(start), bytes), "closing memory");
  driver_check(MSCCLSH_DRIVER(cuMemAddressFree)(address(start), bytes), "freeing addresses");
}

}  // namespace mscclsh

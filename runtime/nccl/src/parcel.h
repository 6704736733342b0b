// What ranks need to tell each other something over NCCL, before they have anything else in
// common: memory of a device, memory of the host that copies to and from it wait for nobody
// with, and a stream of its own. It is used again and never given back, because giving back
// waits for all that runs on the device, such as a program of another communicator, which may
// wait for a rank that this one holds up.
#ifndef MSCCLSH_NCCL_PARCEL_H
#define MSCCLSH_NCCL_PARCEL_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu.h"

namespace mscclsh::nccl {

// kParcelBytes is what a parcel has room for.
constexpr size_t kParcelBytes = size_t(16) << 10;

struct Parcel {
  int32_t device;
  unsigned char *memory, *host;  // kParcelBytes each
  uint64_t identity;             // of memory, see device_identity
  PrivateStream stream;
};

// take_parcel finds one or makes it, with its device current, and give_parcel leaves it to
// others, once its stream has done all. Fails with Failure.
std::unique_ptr<Parcel> take_parcel(int32_t device);
void give_parcel(std::unique_ptr<Parcel> parcel);

}  // namespace mscclsh::nccl

#endif

#include "parcel.h"

#include <map>
#include <mutex>
#include <vector>

namespace mscclsh::nccl {

namespace {

struct Parcels {
  std::mutex mu;
  std::map<int32_t, std::vector<std::unique_ptr<Parcel>>> free;  // of each device
};
Parcels &parcels() {
  // Never destroyed: the driver may end before the process does.
  static Parcels &all = *new Parcels;
  return all;
}

std::unique_ptr<Parcel> kept(int32_t device) {
  std::lock_guard<std::mutex> lock(parcels().mu);
  std::vector<std::unique_ptr<Parcel>> &free = parcels().free[device];
  if (free.empty()) return nullptr;
  std::unique_ptr<Parcel> p = std::move(free.back());
  free.pop_back();
  return p;
}

}  // namespace

std::unique_ptr<Parcel> take_parcel(int32_t device) {
  while (std::unique_ptr<Parcel> p = kept(device)) {
    if (device_identity(p->memory) == p->identity) return p;
    // The device was reset meanwhile, and all that was on it is gone.
    static_cast<void>(p.release());
  }
  std::unique_ptr<Parcel> p(new Parcel{device, nullptr, nullptr, 0, {}});
  p->host = static_cast<unsigned char *>(host_alloc(kParcelBytes));
  p->memory = static_cast<unsigned char *>(device_alloc(kParcelBytes));
  p->identity = device_identity(p->memory);
  return p;
}

void give_parcel(std::unique_ptr<Parcel> parcel) {
  std::lock_guard<std::mutex> lock(parcels().mu);
  parcels().free[parcel->device].push_back(std::move(parcel));
}

}  // namespace mscclsh::nccl

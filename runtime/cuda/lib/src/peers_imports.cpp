#include "peers_imports.h"

namespace mscclsh {

Imports::Key Imports::key(Device *device, int32_t process, const Export &e) {
  return Key(device, process, std::string(e.handle, e.handle + sizeof e.handle));
}

unsigned char *Imports::open(Device *device, int32_t process, const Export &e) {
  if (e.offset < 0 || e.offset >= e.bytes)
    invalid(format("process %d told of byte %lld of an allocation of %lld", process,
                   static_cast<long long>(e.offset), static_cast<long long>(e.bytes)));
  Mapped &m = mapped_[key(device, process, e)];
  if (m.start == nullptr) {
    try {
      m.start = device->map(e);
    } catch (const Failure &f) {
      mapped_.erase(key(device, process, e));
      throw Failure(f.code, format("memory of process %d: %s", process, f.what()));
    }
  }
  m.users++;
  return m.start + e.offset;
}

void Imports::close(Device *device, int32_t process, const Export &e) {
  auto found = mapped_.find(key(device, process, e));
  if (found == mapped_.end() || --found->second.users > 0) return;
  unsigned char *start = found->second.start;
  mapped_.erase(found);
  device->unmap(start);
}

void Imports::close_all() {
  for (auto &m : mapped_) {
    try {
      std::get<0>(m.first)->unmap(m.second.start);
    } catch (const Failure &) {  // it goes with the process
    }
  }
  mapped_.clear();
}

}  // namespace mscclsh

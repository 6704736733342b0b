// Memory of other processes, open here.
#ifndef MSCCLSH_PEERS_IMPORTS_H
#define MSCCLSH_PEERS_IMPORTS_H

#include <map>
#include <string>
#include <tuple>

#include "device.h"

namespace mscclsh {

// Imports opens each allocation of another process once for each device that reaches it,
// and closes it with its last user.
class Imports {
 public:
  // open returns where the memory is for kernels of the device.
  unsigned char *open(Device *device, int32_t process, const Export &e);
  void close(Device *device, int32_t process, const Export &e);

  // close_all closes what is open and tells nothing of failures.
  void close_all();

 private:
  using Key = std::tuple<Device *, int32_t, std::string>;
  struct Mapped {
    unsigned char *start = nullptr;
    int32_t users = 0;
  };
  static Key key(Device *device, int32_t process, const Export &e);

  std::map<Key, Mapped> mapped_;
};

}  // namespace mscclsh

#endif

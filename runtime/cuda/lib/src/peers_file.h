// Memory of this machine that several processes map: a file without a name, which
// goes away with the last process that has it, however that one ends.
#ifndef MSCCLSH_PEERS_FILE_H
#define MSCCLSH_PEERS_FILE_H

#include <cstddef>
#include <cstdint>

namespace mscclsh {

// FileRef names such a file to other processes while its maker lives. The numbers of
// device and node make sure that it is still the same file.
struct FileRef {
  int64_t device, node, bytes;
  int32_t pid, fd;
};

// SharedFile is such a file, mapped.
class SharedFile {
 public:
  explicit SharedFile(size_t bytes);        // a new one, all zero
  explicit SharedFile(const FileRef &ref);  // another process's
  ~SharedFile();
  SharedFile(const SharedFile &) = delete;
  SharedFile &operator=(const SharedFile &) = delete;

  void *at() const { return at_; }
  size_t bytes() const { return size_t(ref_.bytes); }
  const FileRef &ref() const { return ref_; }

 private:
  void map();

  FileRef ref_ = {};
  int fd_ = -1;
  void *at_ = nullptr;
};

}  // namespace mscclsh

#endif

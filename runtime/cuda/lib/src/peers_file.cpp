#include "peers_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace mscclsh {

namespace {

[[noreturn]] void fail(const char *doing) {
  refused(format("memory shared between processes: %s: %s", doing, std::strerror(errno)));
}

}  // namespace

SharedFile::SharedFile(size_t bytes) {
  fd_ = memfd_create("mscclsh", MFD_CLOEXEC);
  if (fd_ < 0) fail("making it");
  struct stat s;
  if (ftruncate(fd_, off_t(bytes)) != 0 || fstat(fd_, &s) != 0) {
    const int saved = errno;
    close(fd_);
    errno = saved;
    fail("sizing it");
  }
  ref_ = FileRef{int64_t(s.st_dev), int64_t(s.st_ino), int64_t(bytes), int32_t(getpid()), fd_};
  map();
}

SharedFile::SharedFile(const FileRef &ref) : ref_(ref) {
  const std::string path = format("/proc/%d/fd/%d", ref.pid, ref.fd);
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) fail(("opening " + path).c_str());
  struct stat s;
  if (fstat(fd_, &s) != 0 || int64_t(s.st_dev) != ref.device || int64_t(s.st_ino) != ref.node ||
      s.st_size < ref.bytes) {
    close(fd_);
    errno = ESTALE;
    fail(("opening " + path).c_str());
  }
  map();
}

void SharedFile::map() {
  void *p = mmap(nullptr, size_t(ref_.bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (p == MAP_FAILED) {
    const int saved = errno;
    close(fd_);
    errno = saved;
    fail("mapping it");
  }
  at_ = p;
}

SharedFile::~SharedFile() {
  munmap(at_, size_t(ref_.bytes));
  close(fd_);
}

}  // namespace mscclsh

#include "peers_fds.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

namespace mscclsh {

namespace {

// kPatience is how long a process waits for descriptors of the others, which are in the same
// call, s.
constexpr int kPatience = 20;

// Letter goes with one descriptor.
struct Letter {
  uint64_t nonce;
  int64_t number;
};

[[noreturn]] void fail(const char *doing) {
  refused(format("handing memory to other processes: %s: %s", doing, std::strerror(errno)));
}

sockaddr_un address(const char *path) {
  sockaddr_un a = {};
  a.sun_family = AF_UNIX;
  std::memcpy(a.sun_path, path, 64);
  return a;
}
constexpr socklen_t kAddress = offsetof(sockaddr_un, sun_path) + 64;

// Control is the room for one descriptor in a message.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Fd &Fd::operator=(Fd &&o) noexcept {
  if (this != &o) {
    if (fd_ >= 0) close(fd_);
    fd_ = o.fd_;
    o.fd_ = -1;
  }
  return *this;
}

FdPost::FdPost(int32_t self)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (socket_.get() < 0) fail("making a socket");
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != ssize_t(sizeof random) ||
      getrandom(&name_.nonce, sizeof name_.nonce, 0) != ssize_t(sizeof name_.nonce))
    fail("drawing a name");
  std::snprintf(name_.path + 1, sizeof name_.path - 1, "mscclsh-%d-%d-%016llx", int(getpid()), self,
                static_cast<unsigned long long>(random));
  const sockaddr_un a = address(name_.path);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr *>(&a), kAddress) != 0)
    fail("naming a socket");
}

// deliver sends a descriptor; false: the other's box is full.
bool FdPost::deliver(const Name &to, int32_t number, int fd) {
  Letter letter{to.nonce, number};
  iovec part{&letter, sizeof letter};
  Control control = {};
  sockaddr_un a = address(to.path);
  msghdr m = {};
  m.msg_name = &a;
  m.msg_namelen = kAddress;
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control.bytes;
  m.msg_controllen = sizeof control.bytes;
  cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  if (sendmsg(socket_.get(), &m, MSG_NOSIGNAL) >= 0) return true;
  if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR || errno == ETOOMANYREFS) return false;
  fail("sending a descriptor");
}

// take takes one letter out of the box, if there is one. Strangers' are dropped.
bool FdPost::take(Fds *to) {
  Letter letter = {};
  iovec part{&letter, sizeof letter};
  Control control = {};
  msghdr m = {};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control.bytes;
  m.msg_controllen = sizeof control.bytes;
  const ssize_t n = recvmsg(socket_.get(), &m, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n < 0) fail("receiving a descriptor");
  const cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (c == nullptr || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) return true;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
  Fd got(fd);
  if (n == ssize_t(sizeof letter) && letter.nonce == name_.nonce)
    to->emplace(int32_t(letter.number), std::move(got));
  return true;
}

FdPost::Fds FdPost::swap(Peers *peers, const Fds &mine, const std::vector<int32_t> &want) {
  std::unique_ptr<FdPost> post;
  const std::vector<Bytes> told = peers->together("open sockets", [&] {
    post.reset(new FdPost(peers->self()));
    Bytes to;
    append(&to, post->name_);
    return to;
  });
  Fds got;
  peers->together("pass buffers", [&] {
    struct Due {
      Name to;
      int32_t number;
      int fd;
    };
    std::vector<Due> due;
    for (int32_t p = 0; p < peers->count(); p++)
      for (const auto &m : mine)
        if (p != peers->self())
          due.push_back({item<Name>(told[size_t(p)], 0), m.first, m.second.get()});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (!due.empty() || got.size() < want.size()) {
      while (!due.empty() && post->deliver(due.back().to, due.back().number, due.back().fd))
        due.pop_back();
      while (post->take(&got)) {
      }
      if (std::chrono::steady_clock::now() > limit)
        refused(format("handing memory to other processes: %zu of %zu descriptors came in %d s",
                       got.size(), want.size(), kPatience));
      pollfd box{post->socket_.get(), POLLIN, 0};
      if (!due.empty() || got.size() < want.size()) poll(&box, 1, due.empty() ? 100 : 1);
    }
    for (const int32_t number : want)
      if (got.count(number) == 0) invalid("another process handed out something else");
    return Bytes();
  });
  return got;
}

}  // namespace mscclsh

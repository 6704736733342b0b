#include "world.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

template <class F>
void look_up(void *library, F *&f, const char *name) {
  f = reinterpret_cast<F *>(dlsym(library, name));
  if (f == nullptr) {
    std::fprintf(stderr, "the stub has no %s\n", name);
    std::exit(1);
  }
}

Stub load() {
  void *library = dlopen(std::getenv("MSCCLSH_NCCL_LIB"), RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  Stub s;
  look_up(library, s.calls, "stub_calls");
  look_up(library, s.forget, "stub_forget");
  look_up(library, s.fail, "stub_fail");
  look_up(library, s.slow, "stub_slow");
  look_up(library, s.device, "stub_device");
  look_up(library, s.idle, "stub_idle");
  look_up(library, s.async, "stub_async");
  look_up(library, s.misuses, "stub_misuses");
  look_up(library, s.alive, "stub_alive");
  return s;
}

}  // namespace

uint64_t Stub::collectives() const {
  uint64_t n = calls("ncclSend") + calls("ncclRecv");
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) n += calls(function_of(c));
  return n;
}

const Stub &stub() {
  static const Stub s = load();
  return s;
}

void threads(int ranks, const std::function<void(int)> &f) {
  std::vector<std::thread> all;
  for (int r = 0; r < ranks; r++) all.emplace_back(f, r);
  for (std::thread &t : all) t.join();
}

void processes(int ranks, const std::function<void(int)> &f) {
  std::vector<pid_t> all;
  std::fflush(stdout);
  for (int r = 0; r < ranks; r++) {
    const pid_t pid = fork();
    if (pid == 0) {
      failures = 0;
      f(r);
      std::exit(failures == 0 ? 0 : 1);
    }
    all.push_back(pid);
  }
  for (int r = 0; r < ranks; r++) {
    int status = 0;
    waitpid(all[size_t(r)], &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x", r,
           unsigned(status));
  }
}

void Gate::wait() {
  std::unique_lock<std::mutex> lock(mu_);
  const uint64_t round = round_;
  if (++here_ == n_) {
    here_ = 0;
    round_++;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round; });
}

Comms::Comms(int ranks) : comm(size_t(ranks)) {
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  for (int r = 0; r < ranks; r++) stream.emplace_back(new mscclsh::HostStream);
  threads(ranks, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], ranks, id, r)); });
}

Comms::~Comms() {
  threads(ranks(), [&](int r) { GOOD(ncclCommDestroy(comm[size_t(r)])); });
}

uint64_t Comms::all(const Call &call, const std::string &what) {
  const int seed = ++seed_;
  stub().forget();
  std::vector<std::unique_ptr<Part>> parts;
  for (int r = 0; r < ranks(); r++) {
    parts.emplace_back(new Part(call, r, ranks()));
    parts.back()->fill(seed);
  }
  threads(ranks(), [&](int r) {
    GOOD(parts[size_t(r)]->start(comm[size_t(r)], stream_of(*stream[size_t(r)])));
    stream[size_t(r)]->wait();
  });
  for (const auto &p : parts)
    if (!p->check(what)) break;
  return stub().calls(function_of(call.collective));
}

void ran_here(Comms &comms, const Call &call, const std::string &what) {
  const uint64_t n = comms.all(call, what);
  EXPECT(n == 0 && stub().collectives() == 0, "%s: %s: NCCL got %d calls", what.c_str(),
         call.text().c_str(), int(stub().collectives()));
}

void left_to_nccl(Comms &comms, const Call &call, const std::string &what) {
  const uint64_t n = comms.all(call, what);
  EXPECT(n == uint64_t(comms.ranks()) && stub().collectives() == n,
         "%s: %s: NCCL got %d calls, %d of it", what.c_str(), call.text().c_str(),
         int(stub().collectives()), int(n));
}

std::string told(const std::function<void()> &f) {
  char name[] = "/tmp/mscclsh-told-XXXXXX";
  const int file = mkstemp(name), before = dup(2);
  unlink(name);
  dup2(file, 2);
  f();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::string text(1 << 20, 0);
  const ssize_t n = pread(file, &text[0], text.size(), 0);
  text.resize(n > 0 ? size_t(n) : 0);
  close(file);
  return text;
}

int count_of(const std::string &text, const std::string &part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}

namespace {

// Tables that this process wrote, and which process that is: its children end before it.
std::vector<std::string> written;
pid_t writer = 0;

void drop_written() {
  if (writer != getpid()) return;
  for (const std::string &name : written) unlink(name.c_str());
}

}  // namespace

void use_table(const std::vector<unsigned char> &file) {
  char name[] = "/tmp/mscclsh-table-XXXXXX";
  close(mkstemp(name));
  write_file(name, file);
  setenv("MSCCLSH_TABLE", name, 1);
  if (writer != getpid()) {
    writer = getpid();
    written.clear();
    std::atexit(drop_written);
  }
  written.push_back(name);
}

void use_table(const Bundle &bundle) { use_table(bundle.bytes()); }

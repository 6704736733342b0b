// What a stream is in the host build: anything that runs work in the order it is given,
// one after the other. A stream argument of the library there is null, the device's own
// queue, or points to one of these, so that work of the library, of an application and
// of others keeps one order as on a GPU.
#ifndef MSCCLSH_HOST_STREAM_H
#define MSCCLSH_HOST_STREAM_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

// Begins with a pointer to a function, so that whoever has only the address of a stream
// can use it: run puts work behind what the stream has and does not wait.
struct mscclsh_host_stream {
  void (*run)(mscclsh_host_stream *stream, void (*work)(void *argument), void *argument);
};

namespace mscclsh {

// run_on puts f behind what a stream has.
inline void run_on(void *stream, std::function<void()> f) {
  mscclsh_host_stream *s = static_cast<mscclsh_host_stream *>(stream);
  s->run(
      s,
      [](void *p) {
        std::function<void()> *work = static_cast<std::function<void()> *>(p);
        (*work)();
        delete work;
      },
      new std::function<void()>(std::move(f)));
}

// HostStream is such a stream with a thread of its own.
class HostStream : public mscclsh_host_stream {
 public:
  HostStream() : mscclsh_host_stream{put}, runner_([this] { loop(); }) {}
  ~HostStream() {
    {
      std::lock_guard<std::mutex> lock(mu_);
      closed_ = true;
      changed_.notify_all();
    }
    runner_.join();
  }
  HostStream(const HostStream &) = delete;
  HostStream &operator=(const HostStream &) = delete;

  // wait returns when all that the stream was given so far is done.
  void wait() {
    std::unique_lock<std::mutex> lock(mu_);
    const uint64_t upto = given_;
    changed_.wait(lock, [&] { return done_ >= upto; });
  }

 private:
  static void put(mscclsh_host_stream *stream, void (*work)(void *), void *argument) {
    HostStream *s = static_cast<HostStream *>(stream);
    std::lock_guard<std::mutex> lock(s->mu_);
    s->queue_.emplace_back(work, argument);
    s->given_++;
    s->changed_.notify_all();
  }
  void loop() {
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto next = queue_.front();
      queue_.pop_front();
      lock.unlock();
      next.first(next.second);
      lock.lock();
      done_++;
      changed_.notify_all();
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void *), void *>> queue_;
  uint64_t given_ = 0, done_ = 0;
  bool closed_ = false;
  std::thread runner_;
};

}  // namespace mscclsh

#endif

// The C interface: exceptions end here.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "call.h"
#include "expect.h"
#include "one_prog.h"

struct mscclsh_comm {
  explicit mscclsh_comm(const mscclsh_comm_options &o) : comm(o) {}
  mscclsh::Comm comm;
};
struct mscclsh_prog {
  explicit mscclsh_prog(mscclsh::Prog *made) : own(made), prog(*made) {}
  const std::unique_ptr<mscclsh::Prog> own;
  mscclsh::Prog &prog;
  std::unique_ptr<mscclsh::Expectation> data;  // of the size that prog is prepared for
};

struct mscclsh_call {
  mscclsh_call(mscclsh::Prog *prog, const mscclsh_binding &b, mscclsh_prepared *out)
      : call(prog, b, out) {}
  mscclsh::Call call;
};

using mscclsh::Failure;

namespace {

int32_t fail(int32_t code, const char *text, char *err, int64_t cap) {
  if (err != nullptr && cap > 0) std::snprintf(err, size_t(cap), "%s", text);
  return code;
}

// caught runs f and turns what it throws into a code and a sentence.
template <class F>
int32_t caught(char *err, int64_t cap, F f) {
  try {
    f();
    return MSCCLSH_OK;
  } catch (const Failure &e) {
    return fail(e.code, e.what(), err, cap);
  } catch (const std::bad_alloc &) {
    return fail(MSCCLSH_EREFUSED, "the host's memory is used up", err, cap);
  } catch (const std::exception &e) {
    return fail(MSCCLSH_EDEVICE, e.what(), err, cap);
  }
}

// guarded is caught for what may choose a device.
template <class F>
int32_t guarded(char *err, int64_t cap, F f) {
  const mscclsh::KeptDevice kept;
  return caught(err, cap, f);
}

template <class T>
T *need(T *p) {
  if (p == nullptr) mscclsh::invalid("a null pointer");
  return p;
}

mscclsh::Expectation *expectation(mscclsh_prog *prog) {
  if (need(prog)->data == nullptr) mscclsh::invalid("nothing is expected of the program's data");
  return prog->data.get();
}

}  // namespace

extern "C" {

int32_t mscclsh_abi(void) { return MSCCLSH_ABI; }

const char *mscclsh_build(void) { return mscclsh::build_name(); }

int32_t mscclsh_devices(int32_t *count, char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(count) = mscclsh::device_count(); });
}

int32_t mscclsh_device_info(int32_t device, mscclsh_device *info, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    if (device < 0 || device >= mscclsh::device_count())
      mscclsh::invalid(mscclsh::format("there is no device %d", device));
    *need(info) = mscclsh::device_info(device);
  });
}

int32_t mscclsh_comm_create(const mscclsh_comm_options *options, mscclsh_comm **comm, char *err,
                            int64_t cap) {
  return guarded(err, cap, [&] { *need(comm) = new mscclsh_comm(*need(options)); });
}

int32_t mscclsh_comm_destroy(mscclsh_comm *comm, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    if (comm != nullptr && comm->comm.used())
      mscclsh::invalid("the communicator still has programs");
    if (comm != nullptr && comm->comm.windows > 0)
      mscclsh::invalid("the communicator still has windows");
    delete comm;
  });
}

int32_t mscclsh_load(mscclsh_comm *comm, const mscclsh_program *program, mscclsh_prog **prog,
                     char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    *need(prog) = new mscclsh_prog(new mscclsh::Prog(&need(comm)->comm, *need(program)));
  });
}

int32_t mscclsh_one_load(mscclsh_comm *comm, const mscclsh_one_program *program,
                         mscclsh_prog **prog, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    *need(prog) = new mscclsh_prog(new mscclsh::OneProg(&need(comm)->comm, *need(program)));
  });
}

int32_t mscclsh_unload(mscclsh_prog *prog, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    if (prog != nullptr && prog->prog.calls > 0)
      mscclsh::invalid(
          mscclsh::format("the program still has %d bound calls", prog->prog.calls.load()));
    delete prog;
  });
}

int32_t mscclsh_prepare(mscclsh_prog *prog, const mscclsh_size *size, mscclsh_prepared *out,
                        char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    need(prog)->data.reset();
    prog->prog.prepare(*need(size), out);
  });
}

int32_t mscclsh_attach(mscclsh_prog *prog, int32_t rank, int32_t buf, void *memory, int64_t bytes,
                       char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.attach(rank, buf, memory, bytes); });
}

int32_t mscclsh_alloc(mscclsh_comm *comm, int32_t rank, int64_t bytes, void **memory, char *err,
                      int64_t cap) {
  return guarded(err, cap, [&] { *need(memory) = need(comm)->comm.alloc_for(rank, bytes); });
}

int32_t mscclsh_free(mscclsh_comm *comm, int32_t rank, void *memory, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(comm)->comm.free_of(rank, memory); });
}

int32_t mscclsh_upload(mscclsh_prog *prog, int32_t rank, int32_t buf, int64_t offset,
                       const void *from, int64_t bytes, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.upload(rank, buf, offset, from, bytes); });
}

int32_t mscclsh_download(mscclsh_prog *prog, int32_t rank, int32_t buf, int64_t offset, void *to,
                         int64_t bytes, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.download(rank, buf, offset, to, bytes); });
}

int32_t mscclsh_fill(mscclsh_prog *prog, int32_t rank, int32_t buf, int32_t value, char *err,
                     int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.fill(rank, buf, value); });
}

int32_t mscclsh_check_guards(mscclsh_prog *prog, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.check_guards(); });
}

int32_t mscclsh_enqueue(mscclsh_prog *prog, int32_t launches, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.enqueue(launches); });
}

int32_t mscclsh_enqueue_on(mscclsh_prog *prog, int32_t device, void *stream, char *err,
                           int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.enqueue_on(device, stream); });
}

int32_t mscclsh_reserve(mscclsh_comm *comm, int64_t bytes, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(comm)->comm.reserve(bytes); });
}

int32_t mscclsh_one_reserve(mscclsh_prog *prog, int64_t chunk_bytes, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.reserve(chunk_bytes); });
}

int32_t mscclsh_window_open(mscclsh_comm *comm, void *const *memory, const int64_t *bytes,
                            mscclsh_window **window, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    *need(window) = new mscclsh_window(&need(comm)->comm, need(memory), need(bytes));
  });
}

int32_t mscclsh_window_close(mscclsh_window *window, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    if (window != nullptr && window->window.calls > 0)
      mscclsh::invalid(
          mscclsh::format("the window still has %d bound calls", window->window.calls.load()));
    delete window;
  });
}

int32_t mscclsh_identity(mscclsh_comm *comm, int32_t device, const void *at, int64_t bytes,
                         uint64_t *id, char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(id) = need(comm)->comm.identity(device, at, bytes); });
}

int32_t mscclsh_fits(mscclsh_prog *prog, int32_t dtype, int32_t op, int32_t threads,
                     mscclsh_prepared *out, char *err, int64_t cap) {
  return guarded(err, cap, [&] {
    mscclsh_prepared fit = {};
    need(prog)->prog.fits(dtype, op, threads, &fit);
    if (out != nullptr) *out = fit;
  });
}

int32_t mscclsh_bind(mscclsh_prog *prog, const mscclsh_binding *binding, mscclsh_call **call,
                     mscclsh_prepared *out, char *err, int64_t cap) {
  return guarded(err, cap,
                 [&] { *need(call) = new mscclsh_call(&need(prog)->prog, *need(binding), out); });
}

int32_t mscclsh_call_on(mscclsh_call *call, void *stream, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(call)->call.launch_on(stream); });
}

int32_t mscclsh_call_at(mscclsh_call *call, void *const *buffers, void *stream, char *err,
                        int64_t cap) {
  return guarded(err, cap, [&] { need(call)->call.launch_at(buffers, stream); });
}

int32_t mscclsh_unbind(mscclsh_call *call, char *err, int64_t cap) {
  return guarded(err, cap, [&] { delete call; });
}

int32_t mscclsh_copy_on(mscclsh_comm *comm, int32_t device, void *stream, void *to,
                        const void *from, int64_t bytes, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(comm)->comm.copy_on(device, stream, to, from, bytes); });
}

int32_t mscclsh_poll(mscclsh_comm *comm, char *err, int64_t cap) {
  return caught(err, cap, [&] { need(comm)->comm.poll(); });
}

int32_t mscclsh_abort(mscclsh_comm *comm, char *err, int64_t cap) {
  return caught(err, cap, [&] { need(comm)->comm.abort(); });
}

int32_t mscclsh_sync(mscclsh_comm *comm, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(comm)->comm.sync(); });
}

int32_t mscclsh_run(mscclsh_prog *prog, int32_t launches, double *ns, char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(ns) = need(prog)->prog.run(launches); });
}

int32_t mscclsh_capture(mscclsh_prog *prog, int32_t launches, char *err, int64_t cap) {
  return guarded(err, cap, [&] { need(prog)->prog.capture(launches); });
}

int32_t mscclsh_capture_many(mscclsh_prog *const *progs, int32_t n, int32_t launches, char *err,
                             int64_t cap) {
  return guarded(err, cap, [&] {
    if (n < 1) mscclsh::invalid(mscclsh::format("a graph of %d programs", n));
    std::vector<mscclsh::Prog *> then;
    for (int32_t i = 1; i < n; i++) then.push_back(&need(need(progs)[i])->prog);
    need(need(progs)[0])->prog.capture(launches, then);
  });
}

int32_t mscclsh_replay(mscclsh_prog *prog, int32_t replays, double *ns, char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(ns) = need(prog)->prog.replay(replays); });
}

int32_t mscclsh_expect(mscclsh_prog *prog, const mscclsh_expectation *expectation, char *err,
                       int64_t cap) {
  return guarded(err, cap, [&] {
    need(prog)->data.reset();
    prog->data.reset(new mscclsh::Expectation(&prog->prog, *need(expectation)));
  });
}

int32_t mscclsh_generate(mscclsh_prog *prog, uint64_t seed, char *err, int64_t cap) {
  return guarded(err, cap, [&] { expectation(prog)->generate(seed); });
}

int32_t mscclsh_verify(mscclsh_prog *prog, uint64_t seed, char *err, int64_t cap) {
  return guarded(err, cap, [&] { expectation(prog)->verify(seed); });
}

int32_t mscclsh_verdict(mscclsh_prog *prog, mscclsh_verdict_data *verdict, char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(verdict) = expectation(prog)->verdict(); });
}

int32_t mscclsh_waits(mscclsh_comm *comm, mscclsh_wait *waits, int64_t n, int64_t *have, char *err,
                      int64_t cap) {
  return guarded(err, cap, [&] {
    std::vector<mscclsh_wait> all = need(comm)->comm.waits();
    *need(have) = int64_t(all.size());
    std::copy_n(all.begin(), std::min(n < 0 ? 0 : n, *have), waits);
  });
}

int32_t mscclsh_events(mscclsh_prog *prog, mscclsh_event *events, int64_t n, int64_t *have,
                       char *err, int64_t cap) {
  return guarded(err, cap, [&] { *need(have) = need(prog)->prog.events(events, n); });
}

}  // extern "C"

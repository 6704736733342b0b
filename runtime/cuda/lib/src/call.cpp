#include "call.h"

namespace mscclsh {

static_assert(kPlace == MSCCLSH_PLACE, "the interface tells callers");

namespace {

const char *const kNames[] = {"input", "output", "scratch"};

// window_of is the window of the input, 0, or the output, 1, or null.
const Window *window_of(const mscclsh_binding &b, int32_t buf) {
  const mscclsh_window *w = b.windows ? b.windows[buf] : nullptr;
  return w ? &w->window : nullptr;
}

// Range is the part of a buffer that steps touch.
struct Range {
  const unsigned char *begin, *end;
  bool overlaps(const Range &o) const { return begin < o.end && o.begin < end; }
};

Range touched(const Prog &p, const Sizing &s, int32_t rank, int32_t buf,
              const unsigned char *from) {
  const Touched t = p.touched(rank, buf);
  if (t.begin == t.end || s.size.chunk_bytes == 0) return {from, from};
  return {from + t.begin * s.size.chunk_bytes, from + t.end * s.size.chunk_bytes};
}

// number_of is what tells places in the input, 0, or the output, 1, from addresses.
constexpr uint64_t number_of(uint32_t buf) { return uint64_t(1 + buf) << kNumberBit; }

// end_of is where what steps touch of a buffer ends, bytes from its start; 0 is nothing.
int64_t end_of(const Prog &p, const Sizing &s, int32_t rank, int32_t buf) {
  const Touched t = p.touched(rank, buf);
  return t.begin == t.end ? 0 : t.end * s.size.chunk_bytes;
}

}  // namespace

Call::Call(Prog *prog, const mscclsh_binding &b, mscclsh_prepared *out)
    : prog_(prog),
      comm_(prog->comm),
      device_(comm_->index_of(b.device)),
      one_memory_(b.one_memory != 0),
      sizing_(checked(b)) {
  Places at = places(b, sizing_);
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    if (!here(r) && !(prog_->direct() && b.windows == nullptr)) continue;
    const size_t i = size_t(3 * r);
    check_rank(sizing_, r, {at[i], at[i + 1], at[i + 2]}, b.buffers, b.windows != nullptr);
  }
  name_buffers(&at);
  mscclsh_prepared chosen = {};
  place(sizing_, prog_->image(sizing_, device_, at), &chosen);
  if (out != nullptr) *out = chosen;
  for (int32_t i = 0; i < 2; i++) {
    windows_[i] = window_of(b, i);
    if (windows_[i] != nullptr) windows_[i]->calls++;
  }
  prog_->calls++;
  comm_->calls++;
}

Call::~Call() {
  for (const Window *w : windows_)
    if (w != nullptr) w->calls--;
  prog_->calls--;
  comm_->calls--;
  // What was captured stays: the pool keeps it until the communicator ends.
  if (!captured_) comm_->pool(device_).give(piece_, turn_);
}

// checked is about what is given and what not, and the size.
Sizing Call::checked(const mscclsh_binding &b) const {
  comm_->check_alive();
  if (b.size == nullptr) invalid("a binding without a size");
  if (b.size->misalign != 0 || b.size->trace != 0)
    invalid("bound calls have neither a misalignment nor a trace: prepare the program for these");
  if (b.windows != nullptr && !prog_->direct())
    invalid(prog_->one_sided() ? "windows are for programs that touch peers' input or output"
                               : "windows are for programs of protocol Direct");
  if (prog_->direct() && b.windows == nullptr && !comm_->peers().alone())
    invalid(prog_->one_sided()
                ? "with several processes a program that touches peers' input or output needs "
                  "windows"
                : "with several processes a program of protocol Direct needs windows");
  if (b.one_memory != 0 && (!prog_->one_sided() || prog_->direct()))
    invalid("input and output are one memory where the program says so: this one has no say");
  if (b.windows == nullptr && b.buffers == nullptr) invalid("a binding without buffers");
  for (int32_t i = 0; i < 2; i++)
    if (window_of(b, i) != nullptr && window_of(b, i)->comm != comm_)
      invalid(format("the %s's window is of another communicator", kNames[i]));
  return prog_->sizing(*b.size);
}

// places finds the buffers that the device's tables name: its ranks', with Direct all.
Places Call::places(const mscclsh_binding &b, const Sizing &s) const {
  Places at(size_t(3 * comm_->ranks()), nullptr);
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    if (!here(r) && !prog_->direct()) continue;
    for (int32_t buf = 0; buf < 3; buf++)
      if (prog_->own(r, buf) && end_of(*prog_, s, r, buf) > 0)
        at[size_t(3 * r + buf)] = find(b, s, r, buf);
  }
  return at;
}

unsigned char *Call::find(const mscclsh_binding &b, const Sizing &s, int32_t rank,
                          int32_t buf) const {
  if (buf == 2) return prog_->scratch(device_, rank, s);
  if (b.windows != nullptr) return in_window(b, s, rank, buf);
  unsigned char *at = static_cast<unsigned char *>(b.buffers[2 * rank + buf]);
  if (at == nullptr) invalid(format("the %s of rank %d is null", kNames[buf], rank));
  if (!here(rank) && !comm_->device(device_).reaches(at))
    refused(format("GPU %d can't reach the %s of rank %d at %p", comm_->device(device_).id,
                   kNames[buf], rank, static_cast<void *>(at)));
  return at;
}

unsigned char *Call::in_window(const mscclsh_binding &b, const Sizing &s, int32_t rank,
                               int32_t buf) const {
  const Window *w = window_of(b, buf);
  if (w == nullptr) invalid(format("no window is given for the %s", kNames[buf]));
  const int64_t end = end_of(*prog_, s, rank, buf), offset = b.offset[buf];
  if (offset < 0 || offset > w->bytes(rank) || end > w->bytes(rank) - offset)
    invalid(format("the %s of rank %d ends %lld bytes after byte %lld of a window of %lld",
                   kNames[buf], rank, static_cast<long long>(end), static_cast<long long>(offset),
                   static_cast<long long>(w->bytes(rank))));
  return w->at(device_, rank) + offset;
}

// check_rank is about where a rank's buffers lie. buffers are those that the caller gave, of
// all ranks, or null.
void Call::check_rank(const Sizing &s, int32_t rank, const Own &at, void *const *buffers,
                      bool windows) const {
  Range ranges[3];
  for (int32_t buf = 0; buf < 3; buf++) {
    const unsigned char *from = at[size_t(buf)];
    if (reinterpret_cast<uintptr_t>(from) % uint32_t(s.elem))
      invalid(format("the %s of rank %d at %p does not start at a whole element of %d bytes",
                     kNames[buf], rank, static_cast<const void *>(from), s.elem));
    ranges[buf] = touched(*prog_, s, rank, buf, from);
    for (int32_t i = 0; i < buf && !(buf == 1 && one_memory_); i++)
      if (ranges[i].overlaps(ranges[buf]))
        invalid(format("%s and %s of rank %d overlap: copy one elsewhere first", kNames[i],
                       kNames[buf], rank));
  }
  for (int32_t buf = 0; buf < 2 && buffers != nullptr; buf++) {
    const unsigned char *given = static_cast<unsigned char *>(buffers[2 * rank + buf]);
    const int32_t base = prog_->base_buf(rank, buf);
    const unsigned char *from = at[size_t(base)];
    if (given == nullptr || from == nullptr) continue;
    const unsigned char *want = from + prog_->base_chunk(rank, buf) * s.size.chunk_bytes;
    if (given != want)
      invalid(format("the %s of rank %d is given at %p, but it lies %lld bytes from there, in %s",
                     kNames[buf], rank, static_cast<const void *>(given),
                     static_cast<long long>(want - given), windows ? "its window" : kNames[base]));
  }
}

// name_buffers puts numbers in place of the addresses that may change from launch to launch.
// With Direct peers have them in their tables, and where several ranks share a device that
// would take more bases than a launch has.
void Call::name_buffers(Places *at) {
  int32_t ranks = 0;
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    if (!here(r)) continue;
    ranks++;
    rank_ = r;
  }
  if (prog_->direct() || ranks != 1) rank_ = -1;
  if (rank_ < 0) return;
  unsigned char **own = at->data() + 3 * rank_;
  for (uint32_t buf = 0; buf < 2; buf++)
    past_[buf] = uint32_t(reinterpret_cast<uintptr_t>(own[buf]) % kPlace);
  bound_ = bases_of({own[0], own[1], own[2]});
  for (uint32_t buf = 0; buf < 2; buf++)
    if (own[buf] != nullptr)
      own[buf] = reinterpret_cast<unsigned char *>(uintptr_t(number_of(buf)) + past_[buf]);
}

// bases_of is what a launch adds to places in the tables for buffers there.
Bases Call::bases_of(const Own &at) const {
  Bases to = {};
  for (uint32_t buf = 0; buf < 2; buf++)
    if (at[buf] != nullptr)
      to.of[1 + buf] = uint64_t(reinterpret_cast<uintptr_t>(at[buf])) - past_[buf] - number_of(buf);
  return to;
}

// place puts the image into the device's memory.
void Call::place(const Sizing &s, const Image &image, mscclsh_prepared *out) {
  out->tile_bytes = s.tile_bytes;
  out->tiles = s.tiles;
  out->threads = s.threads;
  launch_.blocks = prog_->blocks(device_);
  if (launch_.blocks == 0) return;
  launch_.shared = image.shared;
  prog_->choose(s, image.shape, &launch_.kernel, &launch_.threads, &launch_.shared);
  out->threads = launch_.threads;
  prog_->fit(device_, launch_.kernel, launch_.threads, launch_.shared, out);
  Device &d = comm_->device(device_);
  if (image.n_divides > 0) d.load(s.divide);
  piece_ = comm_->pool(device_).take(image.bytes.size());
  try {
    d.place(piece_.at, image.bytes.data(), image.bytes.size());
  } catch (...) {
    comm_->pool(device_).give(piece_, 0);
    throw;
  }
  launch_.args = image.args;
  launch_.args.blocks = piece_.at;
  launch_.args.rebases |= rank_ >= 0;
  launch_.divide = s.divide;
  launch_.divides = reinterpret_cast<const DivideRun *>(piece_.at + image.divides_at);
  launch_.n_divides = image.n_divides;
}

void Call::launch_on(void *stream) {
  comm_->check_alive();
  enqueue(bound_, stream);
}

void Call::launch_at(void *const *buffers, void *stream) {
  comm_->check_alive();
  if (prog_->direct())
    invalid(prog_->one_sided()
                ? "a call of a program that touches peers' input or output has the buffers that "
                  "it was bound to"
                : "a call of a program of protocol Direct has the buffers that it was bound to");
  if (rank_ < 0)
    invalid("where several ranks share a device a call has the buffers that it was bound to");
  if (buffers == nullptr) invalid("a launch without buffers");
  Own at = {};
  for (uint32_t buf = 0; buf < 3; buf++) {
    if (!prog_->own(rank_, int32_t(buf)) || end_of(*prog_, sizing_, rank_, int32_t(buf)) == 0)
      continue;
    if (buf == 2) {
      at[buf] = prog_->scratch(device_, rank_, sizing_);
      continue;
    }
    at[buf] = static_cast<unsigned char *>(buffers[2 * rank_ + int32_t(buf)]);
    if (at[buf] == nullptr) invalid(format("the %s of rank %d is null", kNames[buf], rank_));
    if (reinterpret_cast<uintptr_t>(at[buf]) % kPlace != past_[buf])
      invalid(
          format("the %s of rank %d at %p is %u bytes past a multiple of %u, but was %u when "
                 "the call was bound: bind one for this place",
                 kNames[buf], rank_, static_cast<void *>(at[buf]),
                 uint32_t(reinterpret_cast<uintptr_t>(at[buf]) % kPlace), kPlace, past_[buf]));
  }
  check_rank(sizing_, rank_, at, buffers, false);
  enqueue(bases_of(at), stream);
}

// enqueue launches with buffers at these bases. They go with the launch by value: a graph
// keeps those that it has captured.
void Call::enqueue(const Bases &bases, void *stream) {
  if (launch_.blocks == 0) return;
  Device &d = comm_->device(device_);
  launch_.args.bases = bases;
  const Device::Turn turn = d.begin_turn(stream);
  // Noted first: a graph that is being captured may have it even if something fails below.
  captured_ |= turn.captured;
  if (turn.captured) comm_->captured = true;
  if (turn.captured) prog_->captured = true;
  d.launch(launch_.kernel, launch_.blocks, launch_.threads, launch_.shared, launch_.args, stream,
           turn.overlaps);
  if (launch_.n_divides > 0)
    d.divide(launch_.divide, launch_.divides, launch_.n_divides, stream, bases);
  d.end_turn(stream);
  if (!turn.captured) turn_ = d.turn();
}

}  // namespace mscclsh

// Buffers of one rank, whatever they are, and programs of either form: what a program finds
// at its input must be what the application sent, what it leaves at its output must come
// to where the application wants it, and nothing else may change.
#include <cstring>
#include <memory>
#include <vector>

#include "../src/place.h"
#include "bundle.h"
#include "check.h"

using namespace mscclsh::nccl;

namespace {

constexpr int64_t kBlock = 48;  // bytes of the count: three times 16
constexpr int32_t kRanks = 3;

using Memory = std::vector<unsigned char>;

// Arena is the application's memory, in which both buffers lie.
struct Arena {
  explicit Arena(size_t bytes) : all(bytes + 256) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(all.data());
    begin = all.data() + (256 - at % 256) % 256;
    for (size_t i = 0; i < bytes; i++) begin[i] = (unsigned char)(i * 7 + 1);
  }
  Memory all;
  unsigned char *begin;
};

struct Case {
  int32_t collective, rank, root;
  int64_t send_at, recv_at;  // in the arena
  Form form;
};

// result is what byte i of an output is.
unsigned char result(int64_t i) { return (unsigned char)(200 - i * 3); }

// check_relation looks at what a program of a form takes for granted.
void check_relation(const Case &c, const Buffers &b, const Staged &s) {
  const int64_t in = b.send_bytes(), out = b.recv_bytes();
  const auto at = [](const void *p) { return reinterpret_cast<uintptr_t>(p); };
  if (in == 0 || out == 0) return;
  if (!c.form.in_place) {
    EXPECT(
        at(s.input) + uintptr_t(in) <= at(s.output) || at(s.output) + uintptr_t(out) <= at(s.input),
        "%s: a program out of place has two buffers", collective_name(c.collective));
  } else if (in > out) {
    EXPECT(at(s.output) == at(s.input) + uintptr_t(b.offset()), "%s: the output lies in the input",
           collective_name(c.collective));
  } else {
    EXPECT(at(s.input) == at(s.output) + uintptr_t(b.offset()), "%s: the input lies in the output",
           collective_name(c.collective));
  }
  const void *holder = in > out ? s.input : s.output;
  EXPECT(at(holder) % uintptr_t(c.form.alignment) == 0, "%s: the buffer is aligned",
         collective_name(c.collective));
}

void copy_all(const std::vector<Copy> &copies) {
  for (const Copy &c : copies) {
    const unsigned char *from = static_cast<const unsigned char *>(c.from);
    unsigned char *to = static_cast<unsigned char *>(c.to);
    EXPECT(to + c.bytes <= from || from + c.bytes <= to, "copies must not overlap");
    std::memmove(to, from, size_t(c.bytes));
  }
}

void run(const Case &c, const char *what) {
  Arena arena(2048);
  const Memory before(arena.begin, arena.begin + 2048);
  const Buffers b = {
      c.collective,           c.rank, kRanks, c.root, kBlock, arena.begin + c.send_at,
      arena.begin + c.recv_at};
  const int64_t need = staging_need(b, c.form), in = b.send_bytes(), out = b.recv_bytes();
  Arena staging(size_t(need) + 1);
  const Staged s = stage(b, c.form, need > 0 ? staging.begin : nullptr);
  copy_all(s.before);
  check_relation(c, b, s);
  if (in > 0)
    EXPECT(std::memcmp(s.input, &before[size_t(c.send_at)], size_t(in)) == 0,
           "%s %s: the program reads what was sent", collective_name(c.collective), what);
  // A program that spoils its input does so before it writes its output.
  if (c.form.spoils && in > 0) std::memset(s.input, 0xee, size_t(in));
  for (int64_t i = 0; i < out; i++) static_cast<unsigned char *>(s.output)[i] = result(i);
  copy_all(s.after);
  for (int64_t i = 0; i < 2048; i++) {
    const bool gets = i >= c.recv_at && i < c.recv_at + out;
    const unsigned char want = gets ? result(i - c.recv_at) : before[size_t(i)];
    if (arena.begin[i] == want) continue;
    EXPECT(false, "%s %s: rank %d root %d: byte %lld is %d, want %d (%s, program %s place, %s)",
           collective_name(c.collective), what, c.rank, c.root, (long long)i, arena.begin[i], want,
           gets ? "a result" : "the application's", c.form.in_place ? "in" : "out of",
           c.form.spoils ? "which spoils its input" : "which keeps its input");
    return;
  }
}

// offset_in_place is where NCCL wants the smaller buffer in the larger, by its manual.
int64_t offset_in_place(int32_t collective, int32_t rank, int32_t root) {
  switch (collective) {
    case MSCCLSH_ALLGATHER:      // sendbuff == recvbuff + rank * sendcount
    case MSCCLSH_REDUCESCATTER:  // recvbuff == sendbuff + rank * recvcount
      return rank * kBlock;
    case MSCCLSH_GATHER:   // sendbuff == recvbuff + root * count
    case MSCCLSH_SCATTER:  // recvbuff == sendbuff + root * count
      return root * kBlock;
    default:
      return 0;
  }
}

void all_places(int32_t collective, int32_t rank, int32_t root, Form form) {
  const bool send_holds = collective == MSCCLSH_REDUCESCATTER || collective == MSCCLSH_SCATTER;
  const int64_t at = offset_in_place(collective, rank, root);
  for (const int64_t shift : {0, 4}) {  // 4: not aligned to 16
    run({collective, rank, root, 0 + shift, 1024 + shift, form}, "out of place");
    if (send_holds)
      run({collective, rank, root, 256 + shift, 256 + at + shift, form}, "in place");
    else
      run({collective, rank, root, 256 + at + shift, 256 + shift, form}, "in place");
    run({collective, rank, root, 256 + shift, 256 + 8 + shift, form}, "overlapping");
    run({collective, rank, root, 256 + shift, 256 + shift, form}, "at one address");
  }
}

void test_staging() {
  for (int32_t collective = 0; collective < MSCCLSH_SENDRECV; collective++)
    for (int32_t rank = 0; rank < kRanks; rank++)
      for (int32_t root = 0; root < (rooted(collective) ? kRanks : 1); root++)
        for (const bool in_place : {false, true})
          for (const bool spoils : {false, true})
            for (const int64_t alignment : {1, 16})
              all_places(collective, rank, root, {in_place, spoils, alignment});
}

// What fits as it is must not be copied.
void test_no_copies() {
  alignas(256) static unsigned char memory[2048];
  struct {
    int32_t collective;
    int64_t send, recv;
    bool in_place;
  } fits[] = {
      {MSCCLSH_ALLREDUCE, 0, 1024, false},     {MSCCLSH_ALLREDUCE, 0, 0, true},
      {MSCCLSH_ALLGATHER, 0, 1024, false},     {MSCCLSH_ALLGATHER, kBlock, 0, true},
      {MSCCLSH_REDUCESCATTER, 0, 1024, false}, {MSCCLSH_REDUCESCATTER, 0, kBlock, true},
      {MSCCLSH_BROADCAST, 512, 0, false},      {MSCCLSH_BROADCAST, 512, 0, true},
      {MSCCLSH_GATHER, 0, 512, true},          {MSCCLSH_SCATTER, 512, 0, true},
      {MSCCLSH_REDUCE_TO_ROOT, 0, 512, true},  {MSCCLSH_ALLTOALL, 0, 0, true},
  };
  for (const auto &f : fits) {  // on rank 1, with root 0
    const Buffers b = {f.collective, 1, kRanks, 0, kBlock, memory + f.send, memory + f.recv};
    const Form form = {f.in_place, false, 16};
    const Staged s = stage(b, form, nullptr);
    EXPECT(staging_need(b, form) == 0 && s.before.empty() && s.after.empty(), "%s: it fits",
           collective_name(f.collective));
  }
}

void test_place() {
  static unsigned char m[2048];
  const auto place = [&](int32_t collective, int32_t rank, int32_t root, int64_t send,
                         int64_t recv) {
    return place_of({collective, rank, kRanks, root, kBlock, m + send, m + recv});
  };
  EXPECT(place(MSCCLSH_ALLREDUCE, 0, 0, 0, 0) == Place::kIn, "one address");
  EXPECT(place(MSCCLSH_ALLREDUCE, 0, 0, 0, kBlock) == Place::kOut, "side by side");
  EXPECT(place(MSCCLSH_ALLREDUCE, 0, 0, 0, kBlock - 1) == Place::kOverlap, "a byte in common");
  EXPECT(place(MSCCLSH_ALLGATHER, 0, 0, 0, 0) == Place::kIn, "rank 0's block is the first");
  EXPECT(place(MSCCLSH_ALLGATHER, 2, 0, 0, 0) == Place::kOverlap, "rank 2's is not");
  EXPECT(place(MSCCLSH_ALLGATHER, 2, 0, 2 * kBlock, 0) == Place::kIn, "but the third");
  EXPECT(place(MSCCLSH_REDUCESCATTER, 2, 0, 0, 2 * kBlock) == Place::kIn, "the third block");
  EXPECT(place(MSCCLSH_GATHER, 1, 1, kBlock, 0) == Place::kIn, "the root's block");
  EXPECT(place(MSCCLSH_GATHER, 0, 1, 0, 0) == Place::kEither, "not the root: nothing is received");
  EXPECT(place(MSCCLSH_BROADCAST, 0, 1, 0, 0) == Place::kEither, "not the root: nothing is sent");
  EXPECT(place(MSCCLSH_SCATTER, 1, 1, 0, kBlock) == Place::kIn, "the root's block");
}

// Of the programs of bundle.h none writes where it should not.
void test_spoils() {
  Bundle made = standard({2});
  std::string why;
  const std::vector<unsigned char> bytes = made.bytes();
  const std::unique_ptr<Table> t = Table::over(bytes.data(), bytes.size(), "test", &why);
  EXPECT(t != nullptr, "%s", why.c_str());
  if (t == nullptr) return;
  for (int32_t e = 0; e < t->entries(); e++)
    for (const int32_t p : {t->entry(e).in_place, t->entry(e).out_of_place})
      for (int32_t r = 0; r < 2 && p >= 0; r++)
        EXPECT(!spoils_input(*t, p, r, t->entry(e).collective, t->entry(e).root), "%s on rank %d",
               t->text(t->program(p).title), r);
}

// One that adds to its input where the result does not belong does.
void test_spoils_found() {
  Bundle made;
  made.add({MSCCLSH_REDUCESCATTER, 2, -1, true}, 0, 1 << 20, "spoiler");
  for (HandProgram &p : made.programs)
    for (auto &tb : p.steps[0])
      for (mscclsh_step &s : tb)
        if (s.kind == MSCCLSH_RRC) {
          s.dst_buf = 0;
          s.dst_chunk = 1;  // rank 1's block
        }
  const std::vector<unsigned char> bytes = made.bytes();
  std::string why;
  const std::unique_ptr<Table> t = Table::over(bytes.data(), bytes.size(), "test", &why);
  EXPECT(t != nullptr, "%s", why.c_str());
  if (t == nullptr) return;
  const int32_t p = t->entry(0).in_place >= 0 ? t->entry(0).in_place : t->entry(0).out_of_place;
  EXPECT(spoils_input(*t, p, 0, MSCCLSH_REDUCESCATTER, -1), "rank 0 writes into rank 1's block");
  EXPECT(!spoils_input(*t, p, 1, MSCCLSH_REDUCESCATTER, -1), "rank 1 does not");
}

}  // namespace

int main() {
  test_place();
  test_staging();
  test_no_copies();
  test_spoils();
  test_spoils_found();
  return report("place");
}

// unit_table: the reader of tables (table.h) takes what is whole, and refuses, with a
// sentence, every file in which any one bit is not as it was, every file that was cut, and
// offsets that lead astray even where the digest is right.
#include <cstddef>
#include <cstring>
#include <random>

#include "bundle.h"
#include "check.h"
#include "table.h"

using mscclsh::nccl::Table;

namespace {

// read opens a table over a copy that is aligned.
bool read(const std::vector<unsigned char> &file, std::string *why) {
  alignas(16) static unsigned char memory[1 << 20];
  std::memcpy(memory, file.data(), file.size());
  return Table::over(memory, file.size(), "test", why) != nullptr;
}

void test_bits(const std::vector<unsigned char> &file) {
  std::vector<unsigned char> changed = file;
  for (size_t i = 0; i < file.size(); i++) {
    changed[i] ^= static_cast<unsigned char>(1u << i % 8);
    std::string why;
    EXPECT(!read(changed, &why), "byte %zu changed", i);
    EXPECT(!why.empty() && why.find('\n') == std::string::npos, "byte %zu: %s", i, why.c_str());
    changed[i] = file[i];
  }
}

void test_cut(const std::vector<unsigned char> &file) {
  for (size_t n = 0; n < file.size(); n += n < 200 ? 1 : 97) {
    std::string why;
    EXPECT(!read({file.begin(), file.begin() + long(n)}, &why), "cut to %zu bytes", n);
    EXPECT(!why.empty(), "cut to %zu bytes", n);
  }
}

// of_one_sided are the offsets in the first program that has operations, and the lengths there.
std::vector<size_t> of_one_sided(const std::vector<unsigned char> &file,
                                 const mscclsh_table_header &h) {
  mscclsh_table_program p = {};
  size_t at = size_t(h.programs);
  for (uint32_t i = 0; i < h.n_programs && p.one == 0; i++, at += sizeof p)
    std::memcpy(&p, file.data() + at, sizeof p);
  EXPECT(p.one != 0, "a one-sided program");
  std::vector<size_t> fields = {at - sizeof p + offsetof(mscclsh_table_program, one)};
  for (size_t f = 0; f < offsetof(mscclsh_table_one, packets); f += 8)
    fields.push_back(size_t(p.one) + f);
  return fields;
}

// Fields of a header, an entry and a program set to what leads out of the file, signed.
void test_astray(const std::vector<unsigned char> &file) {
  mscclsh_table_header h;
  std::memcpy(&h, file.data(), sizeof h);
  std::vector<size_t> fields = {
      offsetof(mscclsh_table_header, entries), offsetof(mscclsh_table_header, programs),
      offsetof(mscclsh_table_header, made_by), offsetof(mscclsh_table_header, n_entries),
      offsetof(mscclsh_table_header, n_programs)};
  for (const size_t f :
       {offsetof(mscclsh_table_entry, name), offsetof(mscclsh_table_entry, source)})
    fields.push_back(h.entries + f);
  for (const size_t f :
       {offsetof(mscclsh_table_program, tbs), offsetof(mscclsh_table_program, steps_per_tb),
        offsetof(mscclsh_table_program, steps), offsetof(mscclsh_table_program, deps),
        offsetof(mscclsh_table_program, chunks), offsetof(mscclsh_table_program, base_buf),
        offsetof(mscclsh_table_program, base_chunk), offsetof(mscclsh_table_program, divides),
        offsetof(mscclsh_table_program, title), offsetof(mscclsh_table_program, n_steps)})
    fields.push_back(h.programs + f);
  for (const size_t f : of_one_sided(file, h)) fields.push_back(f);
  for (const size_t at : fields)
    for (const uint64_t to : {uint64_t(1) << 60, uint64_t(0) - 16, uint64_t(file.size()) + 16}) {
      std::vector<unsigned char> changed = file;
      std::memcpy(&changed[at], &to, at >= sizeof h || at % 8 == 0 ? 8 : 4);
      sign(changed);
      std::string why;
      EXPECT(!read(changed, &why), "field at %zu set to %llx", at,
             static_cast<unsigned long long>(to));
    }
}

// Anything at all behind a good header: whatever is read, nothing is read outside of it.
void test_anything(const std::vector<unsigned char> &file) {
  std::mt19937 random(1);
  for (int n = 0; n < 3000; n++) {
    std::vector<unsigned char> changed = file;
    for (unsigned i = 0; i < 1 + random() % 4; i++)
      changed[sizeof(mscclsh_table_header) +
              random() % (file.size() - sizeof(mscclsh_table_header))] =
          static_cast<unsigned char>(random());
    sign(changed);
    std::string why;
    const bool good = read(changed, &why);
    EXPECT(good || !why.empty(), "a reason");
  }
}

}  // namespace

// A file whose header alone says that it has an entry less is not read, though the digest in it
// is of what follows; and what ranks compare counts the header too.
void test_digest(const std::vector<unsigned char> &file) {
  std::vector<unsigned char> less = file;
  mscclsh_table_header h;
  std::memcpy(&h, less.data(), sizeof h);
  EXPECT(h.n_entries > 1, "%u entries", h.n_entries);
  h.n_entries--;
  std::memcpy(less.data(), &h, sizeof h);
  uint64_t digests[3] = {};
  const std::vector<unsigned char> *files[3] = {&file, &less, &file};
  for (int i = 0; i < 3; i++) {
    alignas(16) static unsigned char memory[1 << 20];
    std::memcpy(memory, files[i]->data(), files[i]->size());
    std::string why;
    const std::unique_ptr<Table> t = Table::over(memory, files[i]->size(), "test", &why);
    EXPECT((t != nullptr) == (i != 1), "table %d: %s", i, why.c_str());
    if (t != nullptr) digests[i] = t->digest();
  }
  EXPECT(digests[0] != 0 && digests[0] == digests[2], "the same file has the same digest");
  EXPECT(digests[0] != digests[1], "a table of one entry less has the same digest");
}

// whole is a table of programs of each kind.
Bundle whole() {
  Bundle b = standard({2, 3});
  b.add_one({MSCCLSH_ALLREDUCE, 2}, Way::kPackets, 1, 4096, "packets");
  b.add_one({MSCCLSH_ALLREDUCE, 3}, Way::kPipeline, 1, 4096, "pipeline");
  b.add_one({MSCCLSH_ALLGATHER, 2}, Way::kPorts, 1, 4096, "ports");
  b.add_one({MSCCLSH_REDUCESCATTER, 2}, Way::kGets, 1, 4096, "gets");
  return b;
}

int main() {
  const std::vector<unsigned char> file = whole().bytes();
  std::string why;
  EXPECT(read(file, &why), "the table itself: %s", why.c_str());
  test_bits(file);
  test_cut(file);
  test_astray(file);
  test_anything(file);
  test_digest(file);
  return report("unit_table");
}

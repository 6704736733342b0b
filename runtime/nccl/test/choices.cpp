// choices VECTORS TABLE: the library chooses what the Go package table chooses: each line
// of table/testdata/choices.txt, which says how they are read, over the table that
// "go test ./table -run Vectors -bundle TABLE" writes.
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "check.h"
#include "table.h"

using namespace mscclsh::nccl;

namespace {

int32_t numbered(const char *(*name)(int32_t), int32_t n, const std::string &word) {
  for (int32_t i = 0; i < n; i++)
    if (word == name(i)) return i;
  return -1;
}

// Line is one of the file: a call, and the entry that it gets.
struct Line {
  Query query;
  std::string want;
};

bool parse(const std::string &text, Line &to) {
  std::istringstream in(text);
  std::string collective, dtype, op, place, arrow;
  Query &q = to.query;
  if (!(in >> collective >> q.bytes >> q.count >> q.ranks >> q.nodes >> dtype >> op >> q.root >>
        place >> q.registered >> q.max_ctas >> arrow >> to.want) ||
      arrow != "->" || (place != "in" && place != "out"))
    return false;
  q.collective = collective_named(collective);
  q.dtype = numbered(dtype_name, kDtypes, dtype);
  q.op = numbered(op_name, kOps, op);
  q.in_place = place == "in";
  if (q.max_ctas == 0) q.max_ctas = INT32_MAX;
  // Of collectives that reduce nothing the operation says nothing.
  if (q.op < 0 && !reduces(q.collective)) q.op = 0;
  return q.collective >= 0 && q.dtype >= 0 && q.op >= 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  std::string why;
  const std::unique_ptr<Table> table = Table::open(argv[2], &why);
  if (table == nullptr) {
    std::fprintf(stderr, "choices: %s\n", why.c_str());
    return 1;
  }
  std::ifstream file(argv[1]);
  int lines = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    Line line;
    EXPECT(parse(text, line), "can't be read: %s", text.c_str());
    std::vector<Reason> reasons;
    const int32_t entry = table->choose(line.query, nullptr, &reasons);
    const std::string have = entry < 0 ? "nccl" : table->text(table->entry(entry).name);
    EXPECT(have == line.want, "%s: it chose %s", text.c_str(), have.c_str());
    EXPECT(int32_t(reasons.size()) == table->entries(), "a reason for each");
    lines++;
  }
  EXPECT(lines > 500, "%d lines", lines);
  return report("choices");
}

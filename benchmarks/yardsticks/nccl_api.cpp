// Measures a library with NCCL's interface, a process a GPU; see usage below.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "member.h"

namespace {

const char usage[] =
    "usage: nccl_api [--library PATH] [--collective allreduce|allgather|reduce_scatter]\n"
    "                [--min BYTES] [--max BYTES] [--in-place] [--eager]\n"
    "                [--buffers plain|allocated|registered|windows] [--devices A,B,...]\n"
    "                [--repetitions N] [--launches N] [--limit SECONDS]\n"
    "prints bytes,median_us,min_us,max_us,ok: us a call, fp32 and sum, the median of 20 replays\n"
    "of a graph of calls, a process a GPU, of the one that took longest. PATH (libnccl.so.2) is\n"
    "any library with NCCL's interface. With --eager the calls are made one by one, without a "
    "graph. Sizes double from --min (1024) to --max (1 GiB), as\n"
    "nccl-tests counts them. Buffers are cudaMalloc's, ncclMemAlloc's, or those made known with\n"
    "ncclCommRegister or as symmetric windows. ok is yes, no (a value was wrong after a call or\n"
    "after the replays), or failed: the library refused, died, or stood for --limit (30)\n"
    "seconds; the next size begins anew, but after three in a row the rest is left out.\n"
    "Multicast (NVLS) is off. Ends with 1 if a size is not ok, 3 if this machine can't.\n";

struct Options {
  Plan plan;
  int64_t min = 1024, max = int64_t(1) << 30;
  double limit = 30;
};

bool number(const std::string &s, int64_t least, int64_t most, int64_t &to) {
  char *end = nullptr;
  const long long v = std::strtoll(s.c_str(), &end, 10);
  if (s.empty() || *end || v < least || v > most) return false;
  to = v;
  return true;
}

// devices parses A,B,... of different GPUs.
bool devices(const std::string &s, std::vector<int> &to) {
  to.clear();
  for (size_t at = 0; at <= s.size();) {
    const size_t comma = std::min(s.find(',', at), s.size());
    int64_t v = 0;
    if (!number(s.substr(at, comma - at), 0, 1023, v)) return false;
    if (std::find(to.begin(), to.end(), int(v)) != to.end()) return false;
    to.push_back(int(v));
    at = comma + 1;
  }
  return to.size() >= 2 && to.size() <= Team::kMaxRanks;
}

// choose sets to to the place of s in names.
template <class E>
bool choose(const std::string &s, const std::vector<std::string> &names, E &to) {
  const auto at = std::find(names.begin(), names.end(), s);
  if (at == names.end()) return false;
  to = E(at - names.begin());
  return true;
}

bool set(Options &o, const std::string &flag, const std::string &v) {
  Plan &p = o.plan;
  int64_t n = 0;
  if (flag == "--library") {
    p.path = v;
    return !v.empty();
  }
  if (flag == "--collective")
    return choose(v, {"allreduce", "allgather", "reduce_scatter"}, p.kind);
  if (flag == "--buffers")
    return choose(v, {"plain", "allocated", "registered", "windows"}, p.buffers);
  if (flag == "--devices") return devices(v, p.devices);
  if (flag == "--min") return number(v, 4, int64_t(1) << 40, o.min);
  if (flag == "--max") return number(v, 4, int64_t(1) << 40, o.max);
  if (flag == "--repetitions") {
    const bool good = number(v, 1, Team::kMaxRepetitions, n);
    p.repetitions = int(n);
    return good;
  }
  if (flag == "--launches") {
    const bool good = number(v, 1, 10000, n);
    p.launches = int(n);
    return good;
  }
  if (flag == "--limit") {
    const bool good = number(v, 1, 3600, n);
    o.limit = double(n);
    return good;
  }
  return false;
}

// parse ends the program where the arguments are no good.
Options parse(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "--in-place") == 0) {
      o.plan.in_place = true;
      continue;
    }
    if (std::strcmp(argv[i], "--eager") == 0) {
      o.plan.eager = true;
      continue;
    }
    if (i + 1 >= argc || !set(o, argv[i], argv[i + 1])) {
      std::fputs(usage, stderr);
      std::exit(2);
    }
    i++;
  }
  const int64_t ranks = o.plan.ranks(), unit = ranks * int64_t(sizeof(float));
  const char *wrong = nullptr;
  if (o.min > o.max) wrong = "--min is above --max";
  if (o.min % unit != 0) wrong = "--min has to be a multiple of 4 bytes a GPU";
  // Otherwise repeated sums would not be exact.
  if (o.plan.in_place && o.plan.kind == Kind::kAllReduce && (ranks & (ranks - 1)) != 0)
    wrong = "in place an allreduce is measured on 2, 4, 8 or 16 GPUs";
  if (wrong) {
    std::fprintf(stderr, "nccl_api: %s\n", wrong);
    std::exit(2);
  }
  for (int64_t n = o.min; n <= o.max; n *= 2) o.plan.sizes.push_back(n);
  return o;
}

// Table prints rows as they come.
class Table {
 public:
  Table(const Plan &plan, const Team &team) : plan_(plan), team_(team) {}

  void catch_up() {
    for (; next < size_t(team_.shared->finished); next++) {
      const Row &r = team_.shared->rows[next];
      start();
      std::printf("%lld,%.3f,%.3f,%.3f,%s\n", static_cast<long long>(plan_.sizes[next]), r.median,
                  r.least, r.most, r.wrong ? "no" : "yes");
      std::fflush(stdout);
      if (r.wrong) note(std::to_string(r.wrong) + " values are wrong");
      in_a_row = 0;
    }
  }

  // fail gives the next size up.
  void fail(const std::string &why) {
    start();
    std::printf("%lld,,,,failed\n", static_cast<long long>(plan_.sizes[next]));
    std::fflush(stdout);
    note(why);
    team_.shared->finished = int(++next);
    in_a_row++;
  }

  size_t next = 0;
  int in_a_row = 0;
  bool good = true;

 private:
  void start() {
    if (next == 0) std::printf("bytes,median_us,min_us,max_us,ok\n");
  }
  void note(const std::string &what) {
    std::fprintf(stderr, "nccl_api: %lld bytes: %s\n", static_cast<long long>(plan_.sizes[next]),
                 what.c_str());
    good = false;
  }

  const Plan &plan_;
  const Team &team_;
};

int measure(const Options &o) {
  Team team(o.plan.ranks());
  Table table(o.plan, team);
  const size_t sizes = o.plan.sizes.size();
  while (table.next < sizes) {
    const size_t from = table.next;
    const auto work = [&](int rank) {
      Member member(o.plan, team, rank);
      for (size_t i = from; i < sizes; i++) member.measure(i);
    };
    const std::string why = team.run(o.limit, work, [&] { table.catch_up(); });
    if (table.next == sizes) break;
    if (!team.shared->ready) {
      std::fprintf(stderr, "nccl_api: %s\n", why.c_str());
      return 3;
    }
    table.fail(why);
    if (table.in_a_row == 3 && table.next < sizes) {
      std::fprintf(stderr, "nccl_api: three sizes in a row failed: the rest is left out\n");
      break;
    }
  }
  return table.good ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const Options o = parse(argc, argv);
  // Before anything is loaded: only what every machine has is measured.
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  setenv("MSCCLPP_FORCE_DISABLE_NVLS", "1", 1);
  try {
    return measure(o);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "nccl_api: %s\n", e.what());
    return 3;
  }
}

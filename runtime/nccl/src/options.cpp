#include "options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "table.h"

namespace mscclsh::nccl {

uint64_t mix_bytes(uint64_t digest, const void *bytes, uint64_t n) {
  const unsigned char *p = static_cast<const unsigned char *>(bytes);
  for (uint64_t i = 0; i < n; i++) digest = (digest ^ p[i]) * 1099511628211u;
  return digest;
}

uint64_t mix(uint64_t digest, uint64_t v) { return mix_bytes(digest, &v, sizeof v); }

namespace {

std::vector<std::string> words(const std::string &text) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) all.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return all;
}

// Reader reads variables and keeps the first complaint.
class Reader {
 public:
  Reader(const char *(*get)(const char *), std::string *wrong) : get_(get), wrong_(wrong) {}

  std::string text(const char *name) const {
    const char *v = get_(name);
    return v == nullptr ? "" : v;
  }

  void flag(const char *name, bool *to) const {
    const std::string v = text(name);
    if (v == "0" || v == "1")
      *to = v == "1";
    else if (!v.empty())
      complain(name, v, "want 0 or 1");
  }

  // number multiplies what it reads by unit.
  void number(const char *name, int64_t unit, int64_t *to) const {
    const std::string v = text(name);
    if (v.empty()) return;
    char *end = nullptr;
    errno = 0;
    const long long n = std::strtoll(v.c_str(), &end, 10);
    if (*end != 0 || errno != 0 || n < 0 || n > INT64_MAX / 2 / unit)
      complain(name, v, "want a whole number from 0 on");
    else
      *to = n * unit;
  }

  void complain(const char *name, const std::string &got, const char *want) const {
    if (wrong_->empty()) *wrong_ = std::string(name) + ": got \"" + got + "\", " + want;
  }

 private:
  const char *(*get_)(const char *);
  std::string *wrong_;
};

void read_log(const Reader &in, Options *o) {
  std::string v = in.text("MSCCLSH_LOG");
  const size_t colon = v.find(':');
  if (colon != std::string::npos) {
    o->log_file = v.substr(colon + 1);
    v.resize(colon);
  }
  for (const std::string &w : words(v)) {
    if (w == "choice")
      o->log_choice = true;
    else if (w == "setup")
      o->log_setup = true;
    else
      in.complain("MSCCLSH_LOG", w, "want choice, setup, or both, and perhaps :FILE");
  }
}

void read_deny(const Reader &in, Options *o) {
  for (const std::string &w : words(in.text("MSCCLSH_DENY"))) {
    const int32_t c = collective_named(w);
    if (w == "all")
      o->deny = ~uint32_t(0);
    else if (c >= 0)
      o->deny |= uint32_t(1) << c;
    else
      in.complain("MSCCLSH_DENY", w, "want collectives such as allreduce,alltoall, or all");
  }
}

}  // namespace

Options read_options(const char *(*get)(const char *name)) {
  Options o;
  const Reader in(get, &o.wrong);
  in.flag("MSCCLSH_NCCL", &o.on);
  in.flag("MSCCLSH_GROUP_ALLTOALL", &o.group_alltoall);
  in.flag("MSCCLSH_NCCL_STATS", &o.stats);
  o.table = in.text("MSCCLSH_TABLE");
  in.number("MSCCLSH_SCRATCH", 1, &o.scratch);
  in.number("MSCCLSH_GROUP_DIRECT", 1, &o.group_direct);
  in.number("MSCCLSH_WATCHDOG", 1000000000, &o.watchdog_ns);
  if (o.watchdog_ns == 0) o.watchdog_ns = kPatience * 1000000000;
  read_log(in, &o);
  read_deny(in, &o);
  return o;
}

uint64_t Options::digest() const {
  uint64_t d = mix(kDigest, deny);
  d = mix(d, uint64_t(scratch));
  d = mix(d, uint64_t(watchdog_ns));
  return mix(d, group_alltoall);
}

const Options &options() {
  static const Options &read = *new Options(
      read_options([](const char *name) -> const char * { return std::getenv(name); }));
  return read;
}

}  // namespace mscclsh::nccl

// What ranks conclude from what they have told each other.
#include <algorithm>

#include "failure.h"
#include "setup.h"

namespace mscclsh::nccl {

namespace {

// differ finds the first rank for which something is not as for rank 0, or 0.
template <class F>
int32_t differ(const std::vector<Hello> &all, F what) {
  for (size_t r = 1; r < all.size(); r++)
    if (what(all[r]) != what(all[0])) return int32_t(r);
  return 0;
}

// wrong is what an operator must hear of: ranks of one application that were not started
// alike. "" is nothing.
std::string wrong(const std::vector<Hello> &all) {
  if (const int32_t r = differ(all, [](const Hello &h) { return h.magic; }))
    return format("rank %d has another version of this library than rank 0", r);
  for (size_t r = 0; r < all.size(); r++)
    if (all[r].failed)
      return format("rank %zu can't take part, as its log says with MSCCLSH_LOG=setup", r);
  if (const int32_t r = differ(all, [](const Hello &h) { return h.abi; }))
    return format("rank %d has another version of the runtime than rank 0", r);
  if (const int32_t r = differ(all, [](const Hello &h) { return h.build; }))
    return format("rank %d has another build of this library than rank 0", r);
  if (const int32_t r = differ(all, [](const Hello &h) { return h.table; }))
    return format("rank %d has another table of algorithms than rank 0: set MSCCLSH_TABLE alike",
                  r);
  if (const int32_t r = differ(all, [](const Hello &h) { return h.options; }))
    return format(
        "rank %d was started with other values of MSCCLSH_DENY, MSCCLSH_SCRATCH, MSCCLSH_WATCHDOG "
        "or "
        "MSCCLSH_GROUP_ALLTOALL than rank 0",
        r);
  return "";
}

// unsuited is what is no mistake: communicators that no program is for.
std::string unsuited(const std::vector<Hello> &all, const Table *table) {
  if (table == nullptr) return "there is no table of algorithms";
  const int32_t n = int32_t(all.size());
  bool any = false;
  for (int32_t i = 0; i < table->entries(); i++) any |= table->entry(i).ranks == n;
  if (!any) return format("no entry of the table is for %d ranks", n);
  if (const int32_t r = differ(all, [](const Hello &h) { return h.host; }))
    return format("ranks 0 and %d are on two machines, or don't see each other's processes", r);
  for (size_t r = 0; r < all.size(); r++)
    for (size_t q = 0; q < r; q++)
      if (all[q].gpu == all[r].gpu) return format("ranks %zu and %zu share a GPU", q, r);
  const auto kind = [](const Hello &h) {
    return std::make_tuple(h.multiprocessors, h.major, h.minor);
  };
  if (const int32_t r = differ(all, kind))
    return format("the GPU of rank %d is of another kind than that of rank 0", r);
  return "";
}

Layout layout_of(const std::vector<Hello> &all, int32_t rank) {
  Layout l;
  std::vector<uint64_t> processes;
  for (const Hello &h : all) {
    const auto known = std::find(processes.begin(), processes.end(), h.process);
    l.process_of.push_back(int32_t(known - processes.begin()));
    if (known == processes.end()) {
      processes.push_back(h.process);
      l.pids.push_back(h.pid);
    }
    l.devices.push_back(h.device);
  }
  l.self = l.process_of[size_t(rank)];
  for (size_t r = 0; r < all.size(); r++)
    if (l.process_of[r] == l.self) l.local.push_back(int32_t(r));
  l.multiprocessors = all[0].multiprocessors;
  return l;
}

}  // namespace

Verdict judge(const std::vector<Hello> &all, int32_t rank, const Table *table) {
  Verdict v;
  v.why = wrong(all);
  if (!v.why.empty()) return v;
  v.why = unsuited(all, table);
  v.plain = !v.why.empty();
  if (v.plain) return v;
  v.together = true;
  v.layout = layout_of(all, rank);
  for (const Hello &h : all) {
    v.max_ctas = std::min(v.max_ctas, h.max_ctas);
    v.blocking &= h.blocking != 0;
  }
  return v;
}

}  // namespace mscclsh::nccl

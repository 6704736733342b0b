// Stands in for libnccl.so.2 and libcuda.so.1 where there are none: counts calls,
// keeps memory on the host, and carries out an allreduce of float sums at once, so
// that the order and the arguments of calls can be tested without a GPU.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, CALLS = 64 };
typedef struct {
  const char *name;
  const void *send;
  void *recv;
  uint64_t count;
  int dtype, op, comm;
} call;
static call pending[CALLS];
static int n_pending, groups, capturing, total, windows, live, launches;
int standin_total(void) { return total; }
int standin_launches(void) { return launches; }
int standin_windows(void) { return windows; }
int standin_live(void) { return live; }
int standin_nvls(void) { const char *v = getenv("NCCL_NVLS_ENABLE"); return v && !strcmp(v, "0"); }

int ncclGetVersion(int *v) { *v = 22809; return 0; }
const char *ncclGetErrorString(int r) { return r == 5 ? "invalid usage" : "some error"; }
int ncclCommInitAll(uintptr_t *comms, int n, const int *devices) {
  for (int i = 0; i < n; i++) comms[i] = 100 + devices[i];
  live += n;
  return n > RANKS ? 5 : 0;
}
int ncclCommDestroy(uintptr_t c) { live--; return c < 100 ? 5 : 0; }
int ncclGroupStart(void) { groups++; return 0; }
// parts does a reduce-scatter or an allgather of small counts, all inputs first.
static int parts(void) {
  float in[RANKS][RANKS * 1024], out[1024];
  int scatter = !strcmp(pending[0].name, "reducescatter"), n = n_pending;
  uint64_t count = pending[0].count, have = scatter ? count * RANKS : count;
  n_pending = 0;
  if (have > RANKS * 1024 || strcmp(pending[0].name, pending[1].name)) return 5;
  for (int r = 0; r < n; r++) {
    // In place a rank's part is where it belongs in the whole.
    const float *part = scatter ? pending[r].recv : pending[r].send;
    const float *whole = scatter ? pending[r].send : pending[r].recv;
    if (part >= whole && part < whole + RANKS * count && part != whole + (pending[r].comm - 100) * count) return 5;
    memcpy(in[r], pending[r].send, 4 * have);
  }
  for (int r = 0; r < n; r++) {
    for (int q = 0; q < n && !scatter; q++) memcpy((float *)pending[r].recv + q * count, in[q], 4 * count);
    for (uint64_t i = 0; i < count && scatter; i++) out[i] = in[0][r * count + i] + in[1][r * count + i];
    if (scatter) memcpy(pending[r].recv, out, 4 * count);
  }
  return 0;
}
int ncclGroupEnd(void) {
  float sum[1024];
  if (--groups || !n_pending) return 0;
  if (n_pending != RANKS) return 5;
  if (strcmp(pending[0].name, "allreduce")) return parts();
  for (uint64_t i = 0; i < pending[0].count && i < 1024; i++) {
    sum[i] = 0;
    for (int r = 0; r < n_pending; r++) sum[i] += ((const float *)pending[r].send)[i];
  }
  for (int r = 0; r < n_pending; r++)
    memcpy(pending[r].recv, sum, 4 * (pending[r].count < 1024 ? pending[r].count : 1024));
  n_pending = 0;
  return 0;
}
int ncclAllReduce(const void *send, void *recv, uint64_t count, int dtype, int op, uintptr_t comm, uintptr_t stream) {
  if (dtype != 7 || op != 0 || stream - 1000 != comm - 100 || capturing == 1) return 5;
  pending[n_pending++] = (call){"allreduce", send, recv, count, dtype, op, (int)comm};
  total++;
  return 0;
}
int ncclReduce(void) { return 5; }
int ncclBroadcast(void) { return 5; }
int ncclAllGather(const void *send, void *recv, uint64_t count, int dtype, uintptr_t comm, uintptr_t stream) {
  if (dtype != 7 || stream - 1000 != comm - 100 || capturing == 1) return 5;
  pending[n_pending++] = (call){"allgather", send, recv, count, dtype, 0, (int)comm};
  total++;
  return 0;
}
int ncclReduceScatter(const void *send, void *recv, uint64_t count, int dtype, int op, uintptr_t comm, uintptr_t stream) {
  if (dtype != 7 || op != 0 || stream - 1000 != comm - 100 || capturing == 1) return 5;
  pending[n_pending++] = (call){"reducescatter", send, recv, count, dtype, op, (int)comm};
  total++;
  return 0;
}
int ncclSend(void) { total++; return 0; }
int ncclRecv(void) { total++; return 0; }
int ncclMemAlloc(void **at, uint64_t n) { *at = calloc(1, n); live++; return !*at; }
int ncclMemFree(void *at) { free(at); live--; return 0; }
int ncclCommWindowRegister(uintptr_t comm, void *at, uint64_t n, uintptr_t *window, int flags) {
  if (flags != 1 || n % (2 << 20) || !groups || !at || comm < 100) return 5;
  *window = 7000 + windows++;
  return 0;
}
int ncclCommWindowDeregister(uintptr_t comm, uintptr_t window) { windows--; return comm < 100 || window < 7000 ? 5 : 0; }

static int current = -1;
int cuGetErrorString(int r, const char **text) { *text = r == 2 ? "out of memory" : "bad"; return 0; }
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(uintptr_t *c, int d) { *c = 500 + d; return 0; }
int cuCtxSetCurrent(uintptr_t c) { current = (int)c - 500; return current < 0; }
int cuMemAlloc_v2(uintptr_t *at, uint64_t n) {
  if (n > 1u << 30) return 2;
  *at = (uintptr_t)calloc(1, n);
  live++;
  return !*at;
}
int cuMemFree_v2(uintptr_t at) { free((void *)at); live--; return 0; }
int cuMemcpyHtoD_v2(uintptr_t to, const void *from, uint64_t n) { memcpy((void *)to, from, n); return 0; }
int cuStreamCreate(uintptr_t *s, unsigned flags) { *s = 1000 + current; live++; return flags != 1; }
int cuStreamDestroy_v2(uintptr_t s) { live--; return s < 1000; }
int cuStreamSynchronize(uintptr_t s) { return capturing || s - 1000 != (uintptr_t)current; }
int cuStreamBeginCapture_v2(uintptr_t s, int mode) { capturing++; return mode != 2 || s - 1000 != (uintptr_t)current; }
int cuStreamEndCapture(uintptr_t s, uintptr_t *g) { capturing--; *g = 2000 + s; return 0; }
int cuGraphInstantiateWithFlags(uintptr_t *e, uintptr_t g, uint64_t flags) { *e = g + 1000; live++; return (int)flags; }
int cuGraphDestroy(uintptr_t g) { return g < 2000; }
int cuGraphLaunch(uintptr_t e, uintptr_t s) { launches++; return e != s + 3000 || s - 1000 != (uintptr_t)current; }
int cuGraphExecDestroy(uintptr_t e) { live--; return e < 3000; }
int cuEventCreate(uintptr_t *e, unsigned flags) { static uintptr_t n = 9000; *e = n++; live++; return (int)flags; }
int cuEventRecord(uintptr_t e, uintptr_t s) { return e < 9000 || s - 1000 != (uintptr_t)current; }
int cuEventElapsedTime(float *ms, uintptr_t a, uintptr_t b) { *ms = current == 1 ? 0.5f : 0.25f; return a == b; }
int cuEventDestroy_v2(uintptr_t e) { live--; return e < 9000; }

// The C interface of libmscclsh_cuda.so, which runs programs on GPUs, and of
// libmscclsh_cuda_host.so, the same source on threads of a CPU.
//
// A communicator holds some ranks on some devices, several ranks to a device where
// there are fewer devices. Programs are loaded into it, each is prepared for a size,
// a data type and a reduction, and then run any number of times. All ranks of one
// device are blocks of one cooperative launch.
//
// One process drives all devices, or several of one machine do, each those of its own
// ranks. Then every process makes a communicator with the same options but for process
// and devices, and loads the same programs, whole. These calls are collective: all
// processes make them in the same order, each waits for the others, and what fails in
// one fails in all: mscclsh_comm_create, mscclsh_load, mscclsh_prepare, mscclsh_unload,
// mscclsh_comm_destroy. The last two don't wait once the communicator is of no more use.
// Launches are not collective calls, but every process must make the same ones in the
// same order. All other calls are about ranks of this process.
//
// Conventions. Every function but the first two returns 0, or one of MSCCLSH_E*
// with a sentence in err: at most cap bytes, the final zero included. Structures
// hold fixed-width fields only, in an order that needs no hidden padding. Pointers
// that a call takes are not kept after it. Calls on one communicator must not
// overlap in time; any thread may make them.
#ifndef MSCCLSH_CUDA_H
#define MSCCLSH_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// MSCCLSH_ABI is what mscclsh_abi returns from a library that fits this header.
#define MSCCLSH_ABI 3

// What a call returns.
enum {
  MSCCLSH_OK = 0,
  MSCCLSH_EINVAL = 1,    // the request makes no sense: an error in the caller
  MSCCLSH_EREFUSED = 2,  // it can't be done here, err says why: memory, residency, peers
  MSCCLSH_EDEVICE = 3,   // the driver or a device reported an error
  MSCCLSH_ESTUCK = 4,    // the watchdog ended a launch; mscclsh_waits tells who waited
  MSCCLSH_EDEAD = 5,     // an earlier launch was cut short: make a new communicator
  MSCCLSH_EPEER = 6      // the exchange between processes failed: make a new communicator
};

// Protocols, numbered like ir.Protocol.
enum { MSCCLSH_SIMPLE = 0, MSCCLSH_LL = 1, MSCCLSH_LL128 = 2, MSCCLSH_DIRECT = 3 };

// Step kinds, numbered like ir.StepKind.
enum {
  MSCCLSH_NOP = 0,
  MSCCLSH_SEND = 1,
  MSCCLSH_RECV = 2,
  MSCCLSH_RCS = 3,
  MSCCLSH_RRS = 4,
  MSCCLSH_RRC = 5,
  MSCCLSH_RRCS = 6,
  MSCCLSH_COPY = 7,
  MSCCLSH_REDUCE = 8
};

// Data types and reductions are numbered like runtime.DType (fp32 0, fp64, fp16,
// bf16, fp8e4m3, fp8e5m2, int8, uint8, int32, uint32, int64, uint64 11) and
// runtime.ReduceOp (sum 0, prod, min, max, avg 4).

// Buffers of a rank: input 0, output 1, scratch 2.

// What a waiting block waited for.
enum {
  MSCCLSH_WAIT_STEP = 1,     // a step of another thread block: peer is the thread block
  MSCCLSH_WAIT_MESSAGE = 2,  // a message from rank peer on channel chan
  MSCCLSH_WAIT_SLOT = 3,     // a free slot towards rank peer on channel chan
  MSCCLSH_WAIT_ARRIVAL = 4   // Direct: rank peer to take or fetch what is sent on channel chan
};

typedef struct mscclsh_comm mscclsh_comm;
typedef struct mscclsh_prog mscclsh_prog;

// An allgather over the processes of a communicator: bytes of each, in the order of
// their indexes, into all, which has room for as many times bytes as there are
// processes. It returns 0, or something else when it failed, as it must before long
// when a process has ended. It is called from within the collective calls only.
typedef int32_t (*mscclsh_exchange)(void *context, const void *mine, void *all, int64_t bytes);

typedef struct {
  const int32_t *devices;  // [ranks]: the device of each rank; not read for ranks elsewhere
  int32_t ranks;
  int32_t flag_modulus;       // 0: the default; else a power of two from 16 on, for tests
  int64_t watchdog_ns;        // longest that a block may wait; 0: 10 seconds
  const int32_t *process_of;  // [ranks]: the process of each rank; null: all in this one
  mscclsh_exchange exchange;  // kept until the communicator is destroyed; null: one process
  void *context;              // for exchange
  int32_t processes;          // how many; 0: one
  int32_t process;            // the index of this one
} mscclsh_comm_options;

// One step. Places that its kind does not use, and peers, are ignored.
typedef struct {
  int32_t kind;
  int32_t post;  // 1 when other thread blocks wait for this step
  int32_t src_buf, src_chunk;
  int32_t dst_buf, dst_chunk;
  int32_t count;                 // chunks
  int32_t send_peer, recv_peer;  // ranks
  int32_t chan;
  int32_t dep_start, dep_end;  // it waits for deps[dep_start:dep_end]
} mscclsh_step;

// One dependency: a step of another thread block of the same rank.
typedef struct {
  int32_t tb, step;
} mscclsh_dep;

// A run of output chunks that avg divides once at the end.
typedef struct {
  int32_t rank, chunk, count;
  int32_t divisor;  // the number of contributions, at least 2
} mscclsh_divide;

// A two-sided program, flattened: the steps of rank 0's first thread block, its
// second, ..., then rank 1's.
typedef struct {
  const int32_t *tbs;           // [ranks]: thread blocks of each rank
  const int32_t *steps_per_tb;  // [sum of tbs]
  const mscclsh_step *steps;
  const mscclsh_dep *deps;
  const int32_t *chunks;  // [ranks*3]: physical size of each buffer, chunks
  // In place, buffers of a rank overlap: buffer b lies inside buffer base_buf[b] from
  // chunk base_chunk[b] on. A buffer of its own has base_buf[b] == b, base_chunk 0.
  // base_buf[b] must itself be a buffer of its own.
  const int32_t *base_buf;    // [ranks*3]
  const int32_t *base_chunk;  // [ranks*3]
  const mscclsh_divide *divides;
  int64_t n_deps;
  int64_t n_divides;
  int64_t slot_bytes;  // payload of a slot; 0 with Direct, which has none
  int32_t slots;       // per connection, that the program relies on; 0 with Direct
  int32_t protocol;
} mscclsh_program;

// A size to run a program at. chunk_bytes must be whole elements.
typedef struct {
  int64_t chunk_bytes;  // padding included; 0 runs nothing
  int32_t regime;       // K: chunks that one message carries
  int32_t dtype, op;
  int32_t threads;   // per block, a multiple of 32 on a GPU; 0: a default
  int32_t misalign;  // bytes by which buffers start past a 256-byte boundary, whole elements
  int32_t trace;     // 1: record the begin and end of every step of the latest launch
} mscclsh_size;

// What prepare chose, for reports.
typedef struct {
  int64_t tile_bytes;  // bytes of a chunk in one turn of the outer loop
  int64_t tiles;
  int32_t threads;
  int32_t registers;        // per thread; 0 on the host
  int32_t blocks_needed;    // on the fullest device
  int32_t blocks_resident;  // that fit there at once
} mscclsh_prepared;

// A block that had not finished when the watchdog ended a launch.
typedef struct {
  int64_t tile;
  int64_t want, have;  // of the counter or flag it looked at
  int32_t rank, tb, step;
  int32_t waits_for;  // MSCCLSH_WAIT_*
  int32_t peer, chan;
  int32_t timed_out;  // 1: its own time ran out; 0: it was told to leave
  int32_t zero;
} mscclsh_wait;

// One step of one tile, ns of its device's global timer.
typedef struct {
  int64_t begin, end;
  int32_t rank, tb, step, tile;
} mscclsh_event;

// A run of chunks of a rank's input that hold data before the collective.
typedef struct {
  int32_t rank, chunk, count, zero;
} mscclsh_held;

// What one chunk adds to a result: times times that of rank's input. In a run of
// results the next chunk of it belongs to the next result.
typedef struct {
  int32_t rank, chunk, times, zero;
} mscclsh_part;

// A run of chunks of a buffer (input or output), and what must be in them after the
// collective: the reduction of parts[first_part:first_part+n_parts], at least one.
// One part that counts once is a copy; avg divides other results by the sum of times.
typedef struct {
  int32_t rank, buf, chunk, count;
  int64_t first_part;
  int32_t n_parts, zero;
} mscclsh_result;

// What a program is to do with data, for mscclsh_generate and mscclsh_verify.
typedef struct {
  const mscclsh_held *held;
  const mscclsh_result *results;
  const mscclsh_part *parts;
  int64_t n_held, n_results, n_parts;
  int32_t dtype, op;
} mscclsh_expectation;

// What mscclsh_verify found. The first wrong element is the first in the order of
// calls, devices, results and elements.
typedef struct {
  int64_t compared, wrong;
  int64_t element;      // within the chunk
  uint64_t seed;        // of the call
  uint64_t want, have;  // the element's bits
  int32_t rank, buf, chunk, zero;
} mscclsh_verdict_data;

typedef struct {
  char name[128];
  int64_t memory;  // bytes
  int32_t multiprocessors;
  int32_t major, minor;  // compute capability; 0, 0 on the host
  int32_t zero;
} mscclsh_device;

// mscclsh_abi is the version of this interface.
int32_t mscclsh_abi(void);

// mscclsh_build tells in words how the library was built ("cuda 13.0, sm_90",
// "host"). The text lives as long as the library.
const char *mscclsh_build(void);

// mscclsh_devices counts devices. The host build has as many as one asks for, 16.
int32_t mscclsh_devices(int32_t *count, char *err, int64_t cap);

int32_t mscclsh_device_info(int32_t device, mscclsh_device *info, char *err, int64_t cap);

// mscclsh_comm_create makes a communicator and opens memory between its devices.
// A block may wait for what another process has not launched yet: watchdog_ns must be
// longer than the processes are apart. When the watchdog ends a launch in one process
// it ends those of all; of a process that has ended the others' watchdogs find out, each
// by itself.
int32_t mscclsh_comm_create(const mscclsh_comm_options *options, mscclsh_comm **comm, char *err,
                            int64_t cap);

// mscclsh_comm_destroy waits for what runs and frees the communicator. Its programs
// must have been unloaded. Null is ignored.
int32_t mscclsh_comm_destroy(mscclsh_comm *comm, char *err, int64_t cap);

// mscclsh_load checks a program's references and makes its connections. Programs of
// one protocol, slot count and slot size share them.
int32_t mscclsh_load(mscclsh_comm *comm, const mscclsh_program *program, mscclsh_prog **prog,
                     char *err, int64_t cap);

// mscclsh_unload waits for what runs and frees a program and its buffers. Null is
// ignored.
int32_t mscclsh_unload(mscclsh_prog *prog, char *err, int64_t cap);

// mscclsh_prepare allocates a program's buffers for a size, guard bytes around each,
// and resolves its steps. Contents of the buffers are undefined afterwards. out may
// be null. It can be called again, for another size; buffers attached before stay.
int32_t mscclsh_prepare(mscclsh_prog *prog, const mscclsh_size *size, mscclsh_prepared *out,
                        char *err, int64_t cap);

// mscclsh_attach makes device memory of the caller a rank's buffer from the next
// mscclsh_prepare on. The buffer must be one of its own (see base_buf). Null goes
// back to the library's memory. Attached buffers have no guard bytes. With several
// processes and protocol Direct, others map it: it must then be of cudaMalloc or
// mscclsh_alloc, and may be freed once the program was unloaded or prepared without it.
int32_t mscclsh_attach(mscclsh_prog *prog, int32_t rank, int32_t buf, void *memory, int64_t bytes,
                       char *err, int64_t cap);

// mscclsh_alloc allocates zeroed memory on a rank's device, which any process may have
// as a buffer; mscclsh_free frees it. Null is ignored.
int32_t mscclsh_alloc(mscclsh_comm *comm, int32_t rank, int64_t bytes, void **memory, char *err,
                      int64_t cap);
int32_t mscclsh_free(mscclsh_comm *comm, int32_t rank, void *memory, char *err, int64_t cap);

// mscclsh_upload and mscclsh_download copy bytes to and from a rank's buffer at an
// offset, after what was enqueued before; mscclsh_fill sets all bytes of a buffer.
int32_t mscclsh_upload(mscclsh_prog *prog, int32_t rank, int32_t buf, int64_t offset,
                       const void *from, int64_t bytes, char *err, int64_t cap);
int32_t mscclsh_download(mscclsh_prog *prog, int32_t rank, int32_t buf, int64_t offset, void *to,
                         int64_t bytes, char *err, int64_t cap);
int32_t mscclsh_fill(mscclsh_prog *prog, int32_t rank, int32_t buf, int32_t value, char *err,
                     int64_t cap);

// mscclsh_check_guards fails when a byte next to a buffer was written, and tells which.
int32_t mscclsh_check_guards(mscclsh_prog *prog, char *err, int64_t cap);

// mscclsh_enqueue starts launches of a prepared program on all devices, behind what
// was enqueued before, and does not wait. Programs may alternate.
int32_t mscclsh_enqueue(mscclsh_prog *prog, int32_t launches, char *err, int64_t cap);

// mscclsh_enqueue_on starts one launch of a prepared program's part on one device of
// this process on a stream of the caller's, a cudaStream_t of that device, and does not
// wait. The other devices, and the other processes, need a launch each of their own.
// A stream that is being captured records it. The caller puts all launches of a
// communicator on one device in one order, by its streams and events: two must not
// run there at once. The host's build has no streams: null is its own queue there.
int32_t mscclsh_enqueue_on(mscclsh_prog *prog, int32_t device, void *stream, char *err,
                           int64_t cap);

// mscclsh_sync waits for everything that was enqueued, on streams of the caller's too,
// and tells whether the watchdog ended a launch.
int32_t mscclsh_sync(mscclsh_comm *comm, char *err, int64_t cap);

// mscclsh_run enqueues launches and waits; ns is the time by events, of the device
// that took longest, all launches together.
int32_t mscclsh_run(mscclsh_prog *prog, int32_t launches, double *ns, char *err, int64_t cap);

// mscclsh_capture records launches of a prepared program into one graph a device, in
// place of an earlier recording; preparing anew drops it.
int32_t mscclsh_capture(mscclsh_prog *prog, int32_t launches, char *err, int64_t cap);

// mscclsh_capture_many records the same of n programs of one communicator: launches
// times one launch of each, in their order. The recording is the first program's, whose
// mscclsh_replay launches it; preparing any of them anew, or unloading it, ends its use.
int32_t mscclsh_capture_many(mscclsh_prog *const *progs, int32_t n, int32_t launches, char *err,
                             int64_t cap);

// mscclsh_replay launches a recording's graphs replays times and waits; ns as above.
int32_t mscclsh_replay(mscclsh_prog *prog, int32_t replays, double *ns, char *err, int64_t cap);

// mscclsh_expect tells what a prepared program is to do with data; it holds until the
// program is prepared anew. Refused where the data type has no room for results that
// are exact in whatever order they are made.
int32_t mscclsh_expect(mscclsh_prog *prog, const mscclsh_expectation *expectation, char *err,
                       int64_t cap);

// mscclsh_generate enqueues writing all buffers anew: inputs that hold data get
// elements that depend on seed, rank and place alone, the rest bytes of value 0xcb.
// mscclsh_verify enqueues comparing all results, bit for bit, with what that seed's
// inputs make. Both run on the devices, behind what was enqueued before.
int32_t mscclsh_generate(mscclsh_prog *prog, uint64_t seed, char *err, int64_t cap);
int32_t mscclsh_verify(mscclsh_prog *prog, uint64_t seed, char *err, int64_t cap);

// mscclsh_verdict waits, tells what the calls of mscclsh_verify since the last verdict
// found, and forgets it.
int32_t mscclsh_verdict(mscclsh_prog *prog, mscclsh_verdict_data *verdict, char *err, int64_t cap);

// mscclsh_waits copies at most n records of blocks that were stuck, and says how many
// there are. Those whose time ran out come first.
int32_t mscclsh_waits(mscclsh_comm *comm, mscclsh_wait *waits, int64_t n, int64_t *have, char *err,
                      int64_t cap);

// mscclsh_events copies at most n events of the latest launch of a program prepared
// with trace, block by block, and says how many there are. Each device has its own
// timer.
int32_t mscclsh_events(mscclsh_prog *prog, mscclsh_event *events, int64_t n, int64_t *have,
                       char *err, int64_t cap);

#ifdef __cplusplus
}
#endif

#endif

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
// one fails in all: mscclsh_comm_create, mscclsh_load, mscclsh_prepare, mscclsh_reserve,
// mscclsh_window_open, mscclsh_window_close, mscclsh_unload, mscclsh_comm_destroy. The last
// three don't wait once the communicator is of no more use. Launches are not collective
// calls, but every process must make the same ones in the same order. All other calls are
// about ranks of this process.
//
// Preparing suits a program that runs at one size. Where sizes and buffers change from call
// to call a program is bound instead (mscclsh_bind): by each process alone, to a size and to
// memory of the caller's, and launched with that memory or with other (mscclsh_call_at).
//
// Conventions. Every function but the first two returns 0, or one of MSCCLSH_E*
// with a sentence in err: at most cap bytes, the final zero included. Structures
// hold fixed-width fields only, in an order that needs no hidden padding. Pointers
// that a call takes are not kept after it. Calls on one communicator must not
// overlap in time, but for mscclsh_poll and mscclsh_abort, which may be made at any time
// until mscclsh_comm_destroy, and but for mscclsh_bind, mscclsh_unbind, mscclsh_call_on,
// mscclsh_call_at, mscclsh_copy_on and mscclsh_identity: those for one device may overlap
// with those for another, so that a thread which waits, since its device's queue is full,
// keeps no other from launching. Any thread may make calls, and has the CUDA device that it
// had chosen afterwards.
#ifndef MSCCLSH_CUDA_H
#define MSCCLSH_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// MSCCLSH_ABI is what mscclsh_abi returns from a library that fits this header.
#define MSCCLSH_ABI 5

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

// MSCCLSH_PLACE is what buffers' addresses are told apart by, bytes: see mscclsh_call_at.
enum { MSCCLSH_PLACE = 128 };

// What a waiting block waited for.
enum {
  MSCCLSH_WAIT_STEP = 1,     // a step of another thread block: peer is the thread block
  MSCCLSH_WAIT_MESSAGE = 2,  // a message from rank peer on channel chan
  MSCCLSH_WAIT_SLOT = 3,     // a free slot towards rank peer on channel chan
  MSCCLSH_WAIT_ARRIVAL = 4   // Direct: rank peer to take or fetch what is sent on channel chan
};

typedef struct mscclsh_comm mscclsh_comm;
typedef struct mscclsh_prog mscclsh_prog;
typedef struct mscclsh_window mscclsh_window;
typedef struct mscclsh_call mscclsh_call;

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

// What a program is bound to on one device of this process: a size, and buffers of the
// caller's, which may start at any address of whole elements. Exactly what the size says is
// touched, no byte more. A buffer that lies inside another (base_buf) needs not be given;
// given, it must be where it lies. One that no step touches may be null. Others of one rank
// must not overlap.
//
// Direct touches peers' buffers, and so do one-sided programs with operations on the input or
// the output of another rank: what is said of Direct here is said of these, too. Either input
// and output of every rank lie in windows, each at the same offset on all ranks. Or all ranks
// live in this process, and buffers of all ranks are given, those that the other devices'
// parts of the same launch are bound to.
typedef struct {
  const mscclsh_size *size;  // misalign and trace must be 0
  // [ranks*2]: input and output of each rank on the device; others are not read, but with
  // Direct without windows. With windows it may be null, as may each: given, it must be
  // where the window has it.
  void *const *buffers;
  // Direct: [2], of input and output, of which a buffer inside another, or that no step
  // touches, needs none; null without windows, and with other protocols.
  const mscclsh_window *const *windows;
  int64_t offset[2];  // Direct: where input and output start in their windows, bytes
  int32_t device;
  // 1: input and output of a rank may be one memory, as the program, a one-sided one that
  // isn't like Direct, does the same then. Ranks may differ in that.
  int32_t one_memory;
} mscclsh_binding;

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
// processes and protocol Direct, others map it: it must then be memory that a window may be
// of (mscclsh_window_open), and may be freed once the program was unloaded or prepared
// without it.
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
// run there at once. In the host build a stream is null, the device's own queue, or one of
// mscclsh_host_stream.h.
int32_t mscclsh_enqueue_on(mscclsh_prog *prog, int32_t device, void *stream, char *err,
                           int64_t cap);

// mscclsh_reserve gives bound calls at least so many bytes of scratch for each rank, which
// all programs of the communicator share: their launches on a device never overlap. It is a
// collective call. To have more than before it waits for what runs, and is refused while a
// call is bound or once one was captured. Programs whose scratch does not fit can't be bound.
int32_t mscclsh_reserve(mscclsh_comm *comm, int64_t bytes, char *err, int64_t cap);

// mscclsh_window_open tells the processes each other's memory: memory[rank] and bytes[rank]
// of each rank of this process, null and 0 for none; those of ranks elsewhere are not read.
// Between processes it must be of cudaMalloc, of mscclsh_alloc, or of the driver's virtual
// memory functions with handles that are file descriptors, as that of ncclMemAlloc, and lie
// in one allocation; memory of pools is refused, in all processes. It must stay until the
// window is closed.
// mscclsh_window_close waits for what runs. Calls that were bound to the window must have
// been unbound; those that were captured must not be replayed any more. Null is ignored.
int32_t mscclsh_window_open(mscclsh_comm *comm, void *const *memory, const int64_t *bytes,
                            mscclsh_window **window, char *err, int64_t cap);
int32_t mscclsh_window_close(mscclsh_window *window, char *err, int64_t cap);

// mscclsh_identity gives the allocation at an address of a device a number that no other
// allocation gets, one that is made there later neither: what was found out about memory
// holds while the number is the same. Refused when the bytes reach beyond the allocation.
// 0 is not known: the host build knows memory of mscclsh_alloc alone.
int32_t mscclsh_identity(mscclsh_comm *comm, int32_t device, const void *at, int64_t bytes,
                         uint64_t *id, char *err, int64_t cap);

// mscclsh_fits tells what mscclsh_bind would choose at most, and refuses a program whose
// blocks can't be resident at once on each device of this process, with kernels of the data
// type and the reduction. threads as in mscclsh_size; tiles and tile_bytes are 0, blocks
// and registers those of the kernel that takes most. It says nothing of scratch. It also
// brings those kernels to the devices, which the driver may hold up while others run there:
// call it before the first launch, so that binding need not.
int32_t mscclsh_fits(mscclsh_prog *prog, int32_t dtype, int32_t op, int32_t threads,
                     mscclsh_prepared *out, char *err, int64_t cap);

// mscclsh_bind makes a launch of a loaded program for one device. It waits for no stream and
// no peer, and is allowed while the calling thread, or another, captures a stream. Every
// rank's part is bound by its own process, and all must choose the same program, chunk size,
// regime, data type and reduction for the same launch; threads and places may differ. out
// may be null. The program needs not be prepared, and stays as it is if it is.
//
// A call may be launched with other buffers than those it was bound to (mscclsh_call_at) where
// they lie alike: each as many bytes past a multiple of MSCCLSH_PLACE. So it is bound once for
// a size and for each such pair of places, however often buffers change.
//
// It takes some ten microseconds, and now and then maps memory for the tables, some
// hundreds; that waits for no kernel either, of this device or of another one.
int32_t mscclsh_bind(mscclsh_prog *prog, const mscclsh_binding *binding, mscclsh_call **call,
                     mscclsh_prepared *out, char *err, int64_t cap);

// mscclsh_call_on enqueues one launch of a bound call, with the buffers that it was bound to,
// on a stream of its device, any stream, and does not wait. A stream that is being captured
// records it: the graph may be launched any number of times. A stream must stay until its
// launches have ended.
//
// Order. All launches of a communicator's bound calls and copies (mscclsh_copy_on) on one
// device run one after the other, on whatever streams:
// - those on streams that are not captured in the order in which they are enqueued here;
// - those of one capture in the order in which they are captured, in each launch of its
//   graph; an executable graph's launches follow each other anyway;
// - what is enqueued before a graph is launched runs before the graph's first launch or copy
//   of this kind, and what is enqueued after the graph was launched runs after its last. One
//   graph likewise before and behind another. Each graph pays for it with one node that
//   waits, at its beginning, and one that records, beside the path of the caller's work.
// A graph with launches can't be the body of a conditional node.
//
// What is first must be the same on all ranks, as for all collectives: the caller sees to it
// where several threads enqueue launches, or launch graphs, of one communicator.
// Launches of mscclsh_enqueue, mscclsh_enqueue_on and mscclsh_replay are not in this order:
// the caller keeps them apart; mscclsh_sync does.
int32_t mscclsh_call_on(mscclsh_call *call, void *stream, char *err, int64_t cap);

// mscclsh_call_at is mscclsh_call_on with these buffers, [ranks*2] as in a binding, of which
// those of the rank on the call's device are read; for this launch, and the launches of the
// graph that captures it. Refused with protocol Direct, and where several ranks share the
// device: these calls have the buffers that they were bound to. Fails, and launches nothing,
// where a buffer lies in another place than the one bound, or overlaps with another.
int32_t mscclsh_call_at(mscclsh_call *call, void *const *buffers, void *stream, char *err,
                        int64_t cap);

// mscclsh_unbind frees a call once its launches are done, without waiting for them. What
// graphs read of one that was captured stays until the communicator is destroyed; they must
// not be launched any more once its program was unloaded. Null is ignored. All calls of a
// program must have been unbound before mscclsh_unload.
int32_t mscclsh_unbind(mscclsh_call *call, char *err, int64_t cap);

// mscclsh_copy_on enqueues a copy between memory that a device reaches, in one order with
// the launches of bound calls.
int32_t mscclsh_copy_on(mscclsh_comm *comm, int32_t device, void *stream, void *to,
                        const void *from, int64_t bytes, char *err, int64_t cap);

// mscclsh_poll tells without waiting whether the communicator is of use: MSCCLSH_OK;
// MSCCLSH_ESTUCK when a watchdog, of whatever process, ended a launch; MSCCLSH_EDEAD after
// mscclsh_abort, of whatever process, or when an exchange failed.
int32_t mscclsh_poll(mscclsh_comm *comm, char *err, int64_t cap);

// mscclsh_abort ends what runs, in all processes, before long, and the communicator with it:
// calls return MSCCLSH_EDEAD from then on. A collective call that waits in the exchange
// returns when that does.
int32_t mscclsh_abort(mscclsh_comm *comm, char *err, int64_t cap);

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

// One-sided programs: thread blocks of operations that name the memory they touch, at
// peers too, and synchronize by hand, as MSCCL++'s executor has them (ir.OneSided). A loaded
// one is an mscclsh_prog, for which all calls above do the same. Of its size regime must be 1;
// chunk_bytes must be a multiple of the alignment. Its buffers are reached by other processes
// as with Direct, and its scratch may not be the scratch of another program that is prepared;
// nor is that of its bound calls mscclsh_reserve's, as peers write there while other programs
// may run (mscclsh_one_reserve). A launch of a rank ends when the rank's own
// blocks have, and what they gave to ports has arrived; peers may touch its memory until
// theirs have, where the program lets them. mscclsh_generate therefore waits; with several
// processes it must be called when all have waited, and none has launched anew.

// Operations, numbered like ir.OpKind.
enum {
  MSCCLSH_OP_NOP = 0,
  MSCCLSH_OP_BARRIER = 1,
  MSCCLSH_OP_SIGNAL = 2,
  MSCCLSH_OP_WAIT = 3,
  MSCCLSH_OP_RLXSIGNAL = 4,
  MSCCLSH_OP_RLXWAIT = 5,
  MSCCLSH_OP_FLUSH = 6,
  MSCCLSH_OP_PUT = 7,
  MSCCLSH_OP_PWS = 8,
  MSCCLSH_OP_PWSF = 9,
  MSCCLSH_OP_GET = 10,
  MSCCLSH_OP_COPY = 11,
  MSCCLSH_OP_RE = 12,
  MSCCLSH_OP_RES = 13,
  MSCCLSH_OP_RRE = 14,
  MSCCLSH_OP_RRES = 15,
  MSCCLSH_OP_CPKT = 16,
  MSCCLSH_OP_UPKT = 17,
  MSCCLSH_OP_PPKT = 18,
  MSCCLSH_OP_RPPKT = 19,
  MSCCLSH_OP_REPKT = 20,
  MSCCLSH_OP_RESPKT = 21,
  MSCCLSH_OP_RECPKT = 22,
  MSCCLSH_OP_RECSPKT = 23,
  MSCCLSH_OP_GSTORE = 24,     // refused: it needs multicast, which is left alone here
  MSCCLSH_OP_GSTOREPKT = 25,  // likewise
  MSCCLSH_OP_GLRES = 26,      // likewise
  MSCCLSH_OP_SEM_ACQUIRE = 27,
  MSCCLSH_OP_SEM_RELEASE = 28,
  MSCCLSH_OP_PIPELINE = 29
};

// Channels, numbered like ir.ChannelKind.
enum { MSCCLSH_VIA_NONE = 0, MSCCLSH_VIA_MEMORY = 1, MSCCLSH_VIA_PORT = 2, MSCCLSH_VIA_SWITCH = 3 };

// What a waiting block of such a program waited for, beside MSCCLSH_WAIT_*; its tile is the
// turn of a pipeline, and its step the index in mscclsh_one_program.ops.
enum {
  MSCCLSH_WAIT_SIGNAL = 5,     // a signal of rank peer on its channel chan
  MSCCLSH_WAIT_SEMAPHORE = 6,  // semaphore chan of its rank
  MSCCLSH_WAIT_BARRIER = 7,    // thread blocks of its rank at barrier chan
  MSCCLSH_WAIT_PACKET = 8,     // a packet in its scratch
  MSCCLSH_WAIT_PORT = 9        // the host's thread, with what goes to rank peer on channel chan
};

// One operation. Lists are runs of the program's tables.
typedef struct {
  int64_t unit_bytes;   // of a pipeline: it runs ops[body_start:body_end] on so many bytes
  int32_t unit_chunks;  // after so many, of so many chunks
  int32_t kind, via;
  int32_t reduce;                // 0: the run's reduction; else sum 1, min 2, max 3, prod 4
  int32_t src_start, src_end;    // operands
  int32_t dst_start, dst_end;    // operands
  int32_t ref_start, ref_end;    // channels or semaphores of the rank, or a barrier's number
  int32_t part, parts;           // of the ranges; of a barrier parts thread blocks meet
  int32_t body_start, body_end;  // operations
} mscclsh_op;

// A range of chunks of a rank's buffer. Packets count by the chunks of data they carry.
typedef struct {
  int32_t rank, buf, index, size;
  int32_t packets;  // 1: packets, in scratch
  int32_t zero;
} mscclsh_operand;

// One end of a channel of a rank; pair is the other end, an index among the peer's.
typedef struct {
  int32_t kind, peer, pair, zero;
} mscclsh_channel;

// The operations of a thread block, ops[start:end].
typedef struct {
  int32_t start, end;
} mscclsh_span;

// A one-sided program, flattened: rank 0's thread blocks, channels and semaphores, then
// rank 1's, ... The other tables, and what is not said here, are those of mscclsh_program.
typedef struct {
  const int32_t *tbs;          // [ranks]
  const mscclsh_span *blocks;  // [sum of tbs]
  const int32_t *n_channels;   // [ranks]
  const mscclsh_channel *channels;
  const int32_t *n_semaphores;  // [ranks]
  const int32_t *semaphores;    // the values that every launch begins with
  const mscclsh_op *ops;
  const mscclsh_operand *operands;
  const int32_t *refs;
  const int32_t *chunks;      // [ranks*3]; of scratch, chunks of data, in one half of it
  const int32_t *base_buf;    // [ranks*3]
  const int32_t *base_chunk;  // [ranks*3]
  const mscclsh_divide *divides;
  int64_t n_ops, n_operands, n_refs, n_divides;
  int32_t packets;         // 1: scratch holds packets and takes twice the bytes
  int32_t double_scratch;  // 1: it has two halves that launches alternate between
  int32_t alignment;       // bytes: ranges are cut at multiples of it
  int32_t threads;         // of a block where mscclsh_size leaves it open; 0: the library's
} mscclsh_one_program;

int32_t mscclsh_one_load(mscclsh_comm *comm, const mscclsh_one_program *program,
                         mscclsh_prog **prog, char *err, int64_t cap);

// mscclsh_one_reserve sets scratch aside for a one-sided program's bound calls of chunks of up
// to so many bytes, a multiple of the alignment; it is a collective call, and needs to be
// made only for programs that have scratch. To have more than before it waits for what runs,
// and is refused while a call of the program is bound or once one was captured.
//
// Bound calls of a program, of whatever sizes and buffers, are launches of one sequence: what
// packets and counters are told apart by goes on from one to the next, and where the program
// has two halves of scratch launches take turns at them. Halves lie at one distance whatever
// the size. Whether a launch may follow one of another size is for the program to see to. A
// packet is told from those of earlier launches at its place, but for one exactly 2^31
// launches older, which only a place that wasn't written since can hold.
int32_t mscclsh_one_reserve(mscclsh_prog *prog, int64_t chunk_bytes, char *err, int64_t cap);

#ifdef __cplusplus
}
#endif

#endif

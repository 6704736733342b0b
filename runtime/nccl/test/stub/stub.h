// A library with NCCL's interface for machines without GPUs: its collectives work on
// this machine's memory, between threads and processes. Streams are those of
// mscclsh_host_stream.h; on the null stream a call is over when it returns, or when the
// group ends. These functions steer it; a test finds them with dlsym.
//
// Environment, for clients that know nothing of it:
//   STUB_REPORT=FILE   appends "NAME CALLS" of each function that was called, at exit
//   STUB_TIMEOUT_MS    how long a rank waits for another before its call fails (20000)
//   STUB_CONNECT       ranks wait for each other within the first call outside a group
//   STUB_INIT_MS       how long making a communicator takes at least (0)
#ifndef MSCCLSH_TEST_STUB_H
#define MSCCLSH_TEST_STUB_H

#include <nccl.h>
#include <stdint.h>

extern "C" {

// stub_calls is how often a function was called since stub_forget, of this process. Its
// name is ncclX, whether ncclX or pncclX was called.
uint64_t stub_calls(const char *name);
void stub_forget(void);

// stub_fail makes the call number nth from now on (1: the next) of a function return how.
void stub_fail(const char *name, int nth, ncclResult_t how);

// stub_slow sets how long making a communicator and running an operation take at least.
void stub_slow(int init_ms, int operation_ms);

// stub_device is the device of communicators that this thread makes; -1: the rank's number.
void stub_device(int device);

// stub_idle makes functions that move data return at once and do nothing, so that what is
// around them can be measured.
void stub_idle(int on);

// stub_async makes a result the asynchronous error of a communicator.
void stub_async(ncclComm_t comm, ncclResult_t result);

// stub_misuses counts calls that NCCL does not allow: a communicator that is no more or
// not yet one, an end of a group that never began, creation and operations in one group.
uint64_t stub_misuses(void);

// stub_alive is how many communicators there are in this process.
int stub_alive(void);
}

#endif

// The table that the library carries within itself: a file of mscclsh_table.h, aligned to
// 16 bytes. Where none was made for it when it was built it has no bytes.
#ifndef MSCCLSH_NCCL_EMBEDDED_H
#define MSCCLSH_NCCL_EMBEDDED_H

extern "C" {
extern const unsigned char mscclsh_nccl_table[] __attribute__((visibility("hidden")));
extern const unsigned char mscclsh_nccl_table_end[] __attribute__((visibility("hidden")));
}

#endif

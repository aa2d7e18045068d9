/* ddtc_cuda.h - packing in the memory of NVIDIA GPUs, by kernels instead of one copy per block.
 *
 * The conventions of ddtc.h hold here too. The functions are exported by every build of the
 * library. The library does not link to CUDA: it loads NVIDIA's driver, libcuda.so.1, when
 * ddtc_cuda_open is called. Nothing in this header has run on a GPU yet; docs/GPU.md says how it is
 * tested.
 *
 * Memory   A buffer may be memory of the layout's device (cudaMalloc, cudaMallocAsync, mapped
 *          ranges) or pinned host memory. A null pointer, pageable memory, managed memory, and
 *          memory of another device or context are DDTC_ERR_BUFFER, before anything is submitted.
 *          The driver is asked only about the first byte of each buffer. If all instances are one
 *          run of bytes, they are moved by a copy function of the driver. Between two host buffers
 *          that function would make the caller wait, so for such a layout pinned host memory on
 *          both sides is DDTC_ERR_BUFFER.
 * Stream   A CUstream or cudaStream_t: a default stream (0, CU_STREAM_LEGACY,
 *          CU_STREAM_PER_THREAD, which mean what the driver API means), or a stream of the
 *          primary context of the layout's device, which is the context of the CUDA runtime. A
 *          stream of another context is DDTC_ERR_ARG. Functions that take a stream submit work to
 *          it, in its order, and return. They do not wait and allocate no memory, so that the
 *          stream may be captured. The buffers and the layout must stay until the stream has done
 *          the work.
 * Errors   of the work itself, such as a buffer that is too short, appear at the caller's own
 *          synchronization. Errors that the driver returns at once are DDTC_ERR_OTHER, or
 *          DDTC_ERR_NO_MEM if the device is full, and ddtc_error_string has the driver's text.
 *          Nothing is written by a call that returns an error, with one exception: a transfer may
 *          be split into several launches, for example if it has more than 512 MiB, or if it
 *          crosses the end of an instance, or of an iteration of a loop, that has more than 1 GiB.
 *          If the driver refuses a later launch, those before it write their bytes.
 *          The current context of the calling thread is the same before and after every call.
 * fork     A child process must not use a layout of its parent (DDTC_ERR_OTHER), since the driver
 *          does not work there. It may close it, which frees memory of the child only.
 */
#ifndef DDTC_CUDA_H
#define DDTC_CUDA_H

#include "ddtc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A committed type that is open on a device. */
typedef struct ddtc_cuda_layout ddtc_cuda_layout;

/* The type CUstream of the driver API and cudaStream_t of the runtime API. */
typedef struct CUstream_st *ddtc_cuda_stream;

/* Opens a committed type on the device with this number: chooses the kernels, and loads them into
 * the device's primary context, which the layout retains until it is closed. The driver compiles
 * up to twelve short kernels, unless they are in its cache. For lists of blocks and structures of
 * several runs, the call also copies a table to memory of the device, with 4 to 12 bytes for each
 * block or each piece of a block, and waits for this copy and so for earlier work of the default
 * stream. Open layouts while no stream of the context is captured: a capture in progress may be
 * lost.
 * DDTC_ERR_UNSUPPORTED_OPERATION if there is no driver that works or no device, if the driver
 * refuses a kernel, or if the layout is not supported: a list of more than 268435456 blocks, where
 * a block of more than 512 bytes counts once for every 512 bytes. DDTC_ERR_ARG for a device that
 * does not exist. DDTC_ERR_NO_MEM if the device is full, or if the system refuses the memory for
 * the list. */
int ddtc_cuda_open(const ddtc_committed *committed, int device, ddtc_cuda_layout **layout);

/* Waits for all work of the device's primary context, and frees the layout and its table. Faults of
 * that work are not reported here. Close layouts while no stream of the context is captured:
 * otherwise the call is DDTC_ERR_OTHER, the layout stays open, and the capture may be lost. A graph
 * that was captured with the layout must not be launched later. A program must close its layouts
 * before it resets the device (cudaDeviceReset). No other thread may use the layout during the
 * call. */
int ddtc_cuda_close(ddtc_cuda_layout *layout);

/* Sets `bytes` to the alignment at which a transfer moves the widest words that the layout allows:
 * 1, 2, 4, 8 or 16. The first byte of data in the user's buffer, the packed bytes and both ends of
 * the range must have this alignment. A transfer that is less aligned moves narrower words. */
int ddtc_cuda_unit(const ddtc_cuda_layout *layout, ddtc_count *bytes);

/* Packs or unpacks whole instances. The threads of a kernel write in no particular order. Therefore
 * ddtc_cuda_unpack, and ddtc_cuda_range when it unpacks, return DDTC_ERR_UNSUPPORTED_OPERATION
 * unless it is known that the instances write no byte twice. */
int ddtc_cuda_pack(const ddtc_cuda_layout *layout, const void *user, ddtc_count count, void *packed,
                   ddtc_cuda_stream stream);
int ddtc_cuda_unpack(const ddtc_cuda_layout *layout, const void *packed, void *user, ddtc_count count,
                     ddtc_cuda_stream stream);

/* Moves a range of the packed stream of `count` instances, as ddtc_committed_range does: the bytes
 * from `offset` on, to or from `packed`. At most `max_bytes` bytes are moved, and no more than are
 * left. Sets `bytes` to the number of bytes that are moved. */
int ddtc_cuda_range(const ddtc_cuda_layout *layout, int direction, void *user, ddtc_count count, ddtc_count offset,
                    void *packed, ddtc_count max_bytes, ddtc_count *bytes, ddtc_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif

/* Tests `yaksa_init` and `yaksa_finalize`, info objects and requests. Also tests which calls
 * succeed before the first `yaksa_init`, while the library runs, and after the last
 * `yaksa_finalize`. */
#include "interface.h"

int main(void)
{
    yinfo info, gpu, other;
    ytype t;
    uintptr_t n;
    int x = 7, y = 0, done, device = 3;
    /* Before the first call of yaksa_init, only the functions of info objects succeed. */
    FAILS(INTERNAL, yaksa_type_get_size(T_INT, &n));
    FAILS(INTERNAL, yaksa_type_create_contig(2, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_iov_len(1, T_INT, &n));
    FAILS(INTERNAL, yaksa_request_wait(0));
    FAILS(INTERNAL, yaksa_finalize());
    OK(yaksa_info_create(&info));
    OK(yaksa_info_keyval_append(info, "yaksa_gpu_driver", "nogpu", 6));
    OK(yaksa_info_create(&gpu));

    OK(yaksa_init(info));
    OK(yaksa_init(NULL));
    OK(yaksa_finalize());
    OK(yaksa_type_create_contig(3, T_INT, info, &t));
    OK(yaksa_type_get_size(t, &n));
    EQ(n, 12);
    OK(yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, info, OP_REPLACE));
    EQ(y, 7);

    /* A call fails if its info object has a hint that names a GPU driver. Other hints are accepted
     * if they are valid. */
    static const char *const drivers[] = {"cuda", "ze", "hip"};
    for (int i = 0; i < 3; i++) {
        OK(yaksa_info_keyval_append(gpu, "yaksa_gpu_driver", drivers[i], (unsigned)strlen(drivers[i]) + 1));
        OK(yaksa_info_keyval_append(gpu, "yaksa_cuda_inbuf_ptr_attr", &device, sizeof device));
        y = 0;
        yrequest request;
        FAILS(NOT_SUPPORTED, yaksa_init(gpu));
        FAILS(NOT_SUPPORTED, yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, gpu, OP_REPLACE));
        FAILS(NOT_SUPPORTED, yaksa_unpack(&x, 4, &y, 1, T_INT, 0, &n, gpu, OP_REPLACE));
        FAILS(NOT_SUPPORTED, yaksa_ipack(&x, 1, T_INT, 0, &y, 4, &n, gpu, OP_SUM, &request));
        FAILS(NOT_SUPPORTED, yaksa_iunpack(&x, 4, &y, 1, T_INT, 0, &n, gpu, OP_SUM, &request));
        FAILS(NOT_SUPPORTED, yaksa_pack_stream(&x, 1, T_INT, 0, &y, 4, &n, gpu, OP_REPLACE, NULL));
        FAILS(NOT_SUPPORTED, yaksa_unpack_stream(&x, 4, &y, 1, T_INT, 0, &n, gpu, OP_REPLACE, NULL));
        EQ(y, 0);
    }
    OK(yaksa_info_keyval_append(gpu, "yaksa_gpu_driver", "nogpu", 6));
    OK(yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, gpu, OP_REPLACE));
    OK(yaksa_info_keyval_append(info, "yaksa_mapped_device", &device, sizeof device));
    OK(yaksa_info_keyval_append(info, "what later releases know", NULL, 0));
    FAILS(INTERNAL, yaksa_info_keyval_append(info, "yaksa_mapped_device", &device, 2));
    FAILS(INTERNAL, yaksa_info_keyval_append(info, "yaksa_gpu_driver", "abacus", 7));
    FAILS(INTERNAL, yaksa_info_keyval_append(info, "yaksa_gpu_driver", "cuda", 0));
    FAILS(INTERNAL, yaksa_info_keyval_append(info, NULL, "x", 1));
    FAILS(INTERNAL, yaksa_info_keyval_append(info, "key", NULL, 1));
    FAILS(INTERNAL, yaksa_info_keyval_append(NULL, "key", "x", 1));
    FAILS(INTERNAL, yaksa_info_keyval_append((yinfo)&x, "key", "x", 1));
    FAILS(INTERNAL, yaksa_info_create(NULL));
    OK(yaksa_info_free(gpu));
    FAILS(INTERNAL, yaksa_info_free(gpu));
    FAILS(INTERNAL, yaksa_info_free(NULL));
    FAILS(INTERNAL, yaksa_info_free((yinfo)&x));
    FAILS(INTERNAL, yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, gpu, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(&x, 1, T_INT, 0, &y, 4, &n, (yinfo)&x, OP_REPLACE));
    OK(yaksa_info_create(&other));
    EQ(other == gpu, 0);

    OK(yaksa_request_test(0, &done));
    EQ(done, 1);
    FAILS(INTERNAL, yaksa_request_test(0, NULL));
    FAILS(INTERNAL, yaksa_request_test(1, &done));
    FAILS(INTERNAL, yaksa_request_wait(0xdeadbeef));

    /* This `yaksa_finalize` ends the library. It frees all types, but no info objects. */
    OK(yaksa_finalize());
    FAILS(INTERNAL, yaksa_type_get_size(t, &n));
    FAILS(INTERNAL, yaksa_finalize());
    OK(yaksa_info_free(info));
    OK(yaksa_init(NULL));
    FAILS(INTERNAL, yaksa_type_get_size(t, &n));
    FAILS(INTERNAL, yaksa_type_free(t));
    OK(yaksa_type_get_size(T_INT, &n));
    EQ(n, 4);
    OK(yaksa_finalize());
    OK(yaksa_info_free(other));
    return 0;
}

/* Checks of the C code in docs/EMBEDDING.md. The test puts that code before this file. */
int main(void)
{
    enum { ROWS = 700 };
    static double rows[4 * ROWS];
    static char packed[8 * 2 * ROWS];
    for (int i = 0; i < 4 * ROWS; i++) rows[i] = 0.5 * i;
    runtime_start();
    ddtc_config config = {.struct_size = sizeof config};
    OK(ddtc_config_get(&config));
    EQ(config.both_directions, 1);
    int flag;
    OK(ddtc_allocator_is_set(&flag));
    EQ(flag, 1);

    struct my_type t = {NULL, NULL, NULL};
    FAILS(DDTC_ERR_ARG, "struct_size", runtime_commit(&t));
    ddtc_datatype pair, row;
    OK(ddtc_type_vector(2, 1, 2, DDTC_TYPE_DOUBLE, &pair));
    OK(ddtc_type_create_resized(pair, 0, 32, &row));
    OK(ddtc_type_commit(&row));
    OK(ddtc_type_get_committed(row, &t.packing));

    /* A small message is packed at once. */
    OK(runtime_send(rows, 3, &t));
    EQ(used, 0);
    int position = 0;
    OK(ddtc_pack(rows, 3, row, packed, sizeof packed, &position));
    EQ(position, 48);
    BYTES(eager_slot, packed, 48);

    /* A large message is packed into several slots. The end of a slot lies inside of a double. */
    OK(runtime_send(rows, ROWS, &t));
    EQ(used, (16 * ROWS + SLOT - 1) / SLOT);
    position = 0;
    OK(ddtc_pack(rows, ROWS, row, packed, sizeof packed, &position));
    EQ(position, 16 * ROWS);
    BYTES(slots, packed, 16 * ROWS);

    /* In external32, the double 0.5 consists of the bytes 3f e0 and six zeros. */
    ddtc_count stream;
    unsigned char external[64];
    OK(runtime_open_external(&t));
    OK(ddtc_applied_size(t.external, 2, &stream));
    EQ(stream, 32);
    OK(ddtc_applied_range(t.external, DDTC_PACK, rows + 1, 1, 0, external, sizeof external, &stream));
    EQ(stream, 16);
    BYTES(external, ((unsigned char[]){0x3f, 0xe0, 0, 0, 0, 0, 0, 0, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}), 16);
    OK(ddtc_applied_release(t.external));

    /* Data arrive in two packets and are accumulated. The first packet ends inside of a double. */
    double window[4] = {100, 200, 300, 400};
    const double sums[2] = {0.25, 0.75};
    ddtc_count taken;
    OK(runtime_open_accumulate(&t, DDTC_SUM));
    OK(runtime_accumulate(&t, window, 1, 0, sums, 13, &taken));
    EQ(taken, 8);
    OK(runtime_accumulate(&t, window, 1, 8, sums + 1, 8, &taken));
    EQ(taken, 8);
    BYTES(window, ((double[]){100.25, 200, 300.75, 400}), 32);
    FAILS(DDTC_ERR_OP, "MPI_SUM", ddtc_applied_range(t.accumulate, DDTC_PACK, window, 1, 0, packed, 16, &taken));
    OK(ddtc_applied_release(t.accumulate));
    FAILS(DDTC_ERR_OP, "0 (MPI_DOUBLE at displacement 0)", runtime_open_accumulate(&t, DDTC_BXOR));

    /* A process sends rows to itself. The rows are copied to contiguous doubles. */
    static double dense[2 * ROWS + 1];
    struct my_type doubles = {NULL, NULL, NULL};
    ddtc_count copied;
    dense[2 * ROWS] = -1;
    OK(ddtc_type_get_committed(DDTC_TYPE_DOUBLE, &doubles.packing));
    OK(runtime_send_to_self(rows, ROWS, &t, dense, 2 * ROWS + 1, &doubles, &copied));
    EQ(copied, 16 * ROWS);
    BYTES(dense, packed, 16 * ROWS);
    EQ(dense[2 * ROWS], -1);
    FAILS(DDTC_ERR_TRUNCATE, "to_count", runtime_send_to_self(rows, ROWS, &t, dense, 2 * ROWS - 1, &doubles, &copied));
    OK(ddtc_committed_release(doubles.packing));

    /* Segments are sent without packing. A list has 64 segments of 8 bytes, but the network accepts
     * only 500 bytes per call. */
    ddtc_count at = 0;
    for (int calls = 1; at < 16 * ROWS; calls++) EQ(at = runtime_gather(&t, rows, ROWS, at), calls * 500 < 16 * ROWS ? calls * 500 : 16 * ROWS);
    BYTES(sent, packed, 16 * ROWS);

    /* Errors are returned to the caller. */
    FAILS(DDTC_ERR_COUNT, "count", runtime_send(rows, -1, &t));
    const ddtc_committed *held = t.packing;
    t.packing = NULL;
    FAILS(DDTC_ERR_ARG, "committed", runtime_send(rows, 1, &t));
    t.packing = held;

    /* A type that is described by its wire form packs the same bytes. A named type can be learned
     * from its wire form, too. Its handle is predefined, and not a new object that could be freed.
     */
    struct my_type learned = {NULL};
    void *wire;
    ddtc_count size;
    OK(runtime_describe(row, &wire, &size));
    OK(runtime_learn(wire, size, &learned));
    memset(eager_slot, 0, sizeof eager_slot);
    OK(runtime_send(rows, 3, &learned));
    BYTES(eager_slot, packed, 48);
    runtime_free(&learned);
    FAILS(DDTC_ERR_TRUNCATE, "byte", runtime_learn(wire, size - 1, &learned));
    free(wire);
    OK(runtime_describe(DDTC_TYPE_DOUBLE, &wire, &size));
    OK(runtime_learn(wire, size, &learned));
    runtime_free(&learned);
    free(wire);

    /* The signature that was sent is compared with three types of a receiver: doubles, integers and
     * bytes. */
    struct my_signature sent;
    int fits;
    OK(runtime_sign(3, row, &sent));
    EQ(sent.elements, 6);
    OK(runtime_check(7, DDTC_TYPE_DOUBLE, &sent, &fits));
    EQ(fits, 1);
    OK(runtime_check(7, DDTC_TYPE_INT, &sent, &fits));
    EQ(fits, 0);
    OK(runtime_check(48, DDTC_TYPE_BYTE, &sent, &fits));
    EQ(fits, 1);
    FAILS(DDTC_ERR_TRUNCATE, "elements", runtime_check(5, DDTC_TYPE_DOUBLE, &sent, &fits));

    runtime_free(&t);
    OK(ddtc_type_free(&row));
    OK(ddtc_type_free(&pair));
    return 0;
}

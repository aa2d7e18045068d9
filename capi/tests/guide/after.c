/* What is expected of the code of docs/EMBEDDING.md. */
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

    struct my_type t = {NULL};
    FAILS(DDTC_ERR_ARG, "struct_size", runtime_commit(&t));
    ddtc_datatype pair, row;
    OK(ddtc_type_vector(2, 1, 2, DDTC_TYPE_DOUBLE, &pair));
    OK(ddtc_type_create_resized(pair, 0, 32, &row));
    OK(ddtc_type_commit(&row));
    OK(ddtc_type_get_committed(row, &t.packing));

    /* Small: at once. */
    OK(runtime_send(rows, 3, &t));
    EQ(used, 0);
    int position = 0;
    OK(ddtc_pack(rows, 3, row, packed, sizeof packed, &position));
    EQ(position, 48);
    BYTES(eager_slot, packed, 48);

    /* Large: in slots that end inside doubles. */
    OK(runtime_send(rows, ROWS, &t));
    EQ(used, (16 * ROWS + SLOT - 1) / SLOT);
    position = 0;
    OK(ddtc_pack(rows, ROWS, row, packed, sizeof packed, &position));
    EQ(position, 16 * ROWS);
    BYTES(slots, packed, 16 * ROWS);

    /* Gathered: the network takes 500 bytes at a time, of lists of 64 segments of 8 bytes. */
    ddtc_count at = 0;
    for (int calls = 1; at < 16 * ROWS; calls++) EQ(at = runtime_gather(&t, rows, ROWS, at), calls * 500 < 16 * ROWS ? calls * 500 : 16 * ROWS);
    BYTES(sent, packed, 16 * ROWS);

    /* Errors come back. */
    FAILS(DDTC_ERR_COUNT, "count", runtime_send(rows, -1, &t));
    const ddtc_committed *held = t.packing;
    t.packing = NULL;
    FAILS(DDTC_ERR_ARG, "committed", runtime_send(rows, 1, &t));
    t.packing = held;

    runtime_free(&t);
    OK(ddtc_type_free(&row));
    OK(ddtc_type_free(&pair));
    return 0;
}

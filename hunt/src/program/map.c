
/* The type map in packing order, by the bounds that this library gives the parts of the datatype: displacement, bytes, and whether these are x87's
 * long doubles. */
struct entry {
    long at, bytes, padded;
    MPI_Datatype type;
};
static struct entry *map;
static long ENTRIES, SIZE, LOW, HIGH, OVERLAPS;
static long extents[BOUNDS];

static void bounds(int node, MPI_Datatype t)
{
    MPI_Aint lb, extent;
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    extents[node] = extent;
}

static void entry(long at, long bytes, long padded, MPI_Datatype type)
{
    if (!(ENTRIES & (ENTRIES + 1)))
        map = realloc(map, (2 * ENTRIES + 2) * sizeof *map);
    struct entry e = {at, bytes, padded, type};
    map[ENTRIES++] = e;
    SIZE += bytes;
    LOW = at < LOW ? at : LOW;
    HIGH = at + bytes > HIGH ? at + bytes : HIGH;
}

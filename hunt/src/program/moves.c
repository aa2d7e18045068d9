
#define ELEMENTS ENTRIES
#define INSTANCE (COUNT ? ENTRIES / COUNT : 0)
#define LENGTH (HIGH - LOW)

/* The map of n instances. */
static void instances(long n)
{
    map = NULL;
    ENTRIES = SIZE = LOW = HIGH = OVERLAPS = 0;
    for (long i = 0; i < n; i++)
        WALK(i * extents[BOUNDS - 1]);
    char *mapped = calloc(LENGTH + 1, 1);
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            OVERLAPS |= mapped[map[e].at - LOW + i]++ > 0;
    free(mapped);
}

/* Byte i of a pattern. */
static unsigned char pattern(unsigned long long seed, unsigned long long i)
{
    unsigned long long mixed = (i / 8 + 1 + (seed << 32)) * 0x9e3779b97f4a7c15ull;
    return (unsigned char)((mixed ^ (mixed >> 29)) >> (i % 8 * 8));
}

/* Memory from displacement LOW to HIGH, displacement 0 on a multiple of 16, with guards of 64 bytes. */
static unsigned char *memory(unsigned long long seed)
{
    unsigned char *all = malloc(LENGTH + 160);
    unsigned char *low = all + 64;
    while ((uintptr_t)(low - LOW) % 16)
        low++;
    memset(all, 0xa5, LENGTH + 160);
    for (long i = 0; i < LENGTH; i++)
        low[i] = pattern(seed, i);
    return low - LOW;
}

/* Whether byte i of an entry belongs to its value: x87's long double has ten of sixteen. */
static int is_value(long e, long i)
{
    return !map[e].padded || i % 16 < 10;
}

/* What a stream of the map holds, by its definition. */
static unsigned char *gathered(const unsigned char *user)
{
    unsigned char *stream = malloc(SIZE + 1);
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            stream[at++] = user[map[e].at + i];
    return stream;
}

/* The first n bytes of a stream into memory, by the definition. */
static void scatter(const unsigned char *stream, long n, unsigned char *user)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes && at < n; i++)
            user[map[e].at + i] = stream[at++];
}

static void same_stream(const char *what, const unsigned char *expected, const unsigned char *got)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++, at++)
            if (expected[at] != got[at] && is_value(e, i)) {
                printf("%s: byte %ld of the stream: expected %#04x, got %#04x\n", what, at, expected[at], got[at]);
                bad = 1;
                return;
            }
}

static void same_memory(const char *what, const unsigned char *expected, const unsigned char *got)
{
    unsigned char *matters = malloc(LENGTH + 1);
    memset(matters, 1, LENGTH + 1);
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            matters[map[e].at + i - LOW] = is_value(e, i);
    for (long i = LOW - 64; i < HIGH + 64; i++) {
        int inside = i >= LOW && i < HIGH;
        if ((inside && expected[i] != got[i] && matters[i - LOW]) || (!inside && got[i] != 0xa5)) {
            printf("%s: byte at displacement %ld: expected %#04x, got %#04x\n", what, i, inside ? expected[i] : 0xa5, got[i]);
            bad = 1;
            break;
        }
    }
    free(matters);
}

/* The first n elements of the map, one after the other. */
static MPI_Datatype flat(long n)
{
    int *lengths = malloc((n + 1) * sizeof *lengths), runs = 0;
    MPI_Aint *at = malloc((n + 1) * sizeof *at), next = 0;
    MPI_Datatype *types = malloc((n + 1) * sizeof *types), t;
    for (long e = 0; e < n; e++) {
        if (!runs || types[runs - 1] != map[e].type) {
            lengths[runs] = 0;
            at[runs] = next;
            types[runs++] = map[e].type;
        }
        lengths[runs - 1]++;
        next += map[e].bytes;
    }
    CALL(MPI_Type_create_struct(runs, lengths, at, types, &t));
    CALL(MPI_Type_commit(&t));
    return t;
}

static unsigned char *stream_of(unsigned long long seed)
{
    unsigned char *stream = malloc(SIZE + 64);
    for (long i = 0; i < SIZE; i++)
        stream[i] = pattern(seed, i);
    return stream;
}

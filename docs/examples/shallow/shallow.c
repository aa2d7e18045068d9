/* Computes waves in a basin: solves the shallow water equations on a grid of cells. It is an
 * example of an MPI program with derived datatypes, and has no code for ddtc.
 *
 *     mpicc -O2 -o shallow shallow.c -lm
 *     mpiexec -n 4 ./shallow [--cells N] [--steps N] [--every N] [--picture FILE]
 *
 * A cell is a structure. The basin is an array of cells, which is cut into rectangles, one per
 * rank. Each rank needs the cells at the edges of its neighbours' rectangles: of such a cell it
 * needs the water and what is dissolved in it, but not the ground. In each step, the ranks exchange
 * these members by MPI_Neighbor_alltoallw with derived types, so that nothing is copied by hand.
 * After every few steps, rank 0 gathers the depths of all cells. The options are:
 *   --cells     number of cells along one side of the rectangle of a rank [128]
 *   --steps     number of steps [400]
 *   --every     number of steps from one gather to the next [20]
 *   --picture   file into which the last depths are written as a grey picture (PGM)
 *
 * The program prints one line: the number of ranks, of cells along a side and of steps; the
 * microseconds per step, in total, for the exchanges and for the gathers, each of the slowest rank;
 * and a checksum over the bits of all gathered depths. Equal checksums mean that two runs have
 * computed equal results. */
#include <math.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double depth, east, north;  /* water: depth in metres, momentum towards east and north */
    double ground;              /* height of the ground above the deepest point, in metres */
    float salt, heat;           /* dissolved in the water: kg and kJ per square metre */
    double change[3];           /* changes of depth, east and north in this step */
    float dissolved[2];         /* changes of salt and heat in this step */
} cell;

enum { ROWS, COLUMNS };

static const double GRAVITY = 9.81, CELL = 1.0;

static void fail(const char *text) {
    fprintf(stderr, "shallow: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static long number(const char *name, const char *text, long least) {
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || end == text || n < least || n > 1 << 20) {
        fprintf(stderr, "shallow: %s %s: must be a number from %ld to %d\n", name, text, least, 1 << 20);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return n;
}

/* The rectangle of a rank: `side` x `side` cells, and around them one row or column of cells on
 * each side, for copies of the neighbours' cells. `wide` is the number of all cells along a
 * side. */
typedef struct {
    int side, wide;
    cell *cells;
} part;

static cell *at(const part *p, int row, int column) { return &p->cells[(size_t)row * p->wide + column]; }

/* Moves water, momentum, salt and heat between two neighbouring cells through the side that they
 * share. The amounts for the time step `dt` follow from Rusanov's flux. */
static void flow(cell *a, cell *b, int along, double dt) {
    double ua = (along == ROWS ? a->north : a->east) / a->depth, ub = (along == ROWS ? b->north : b->east) / b->depth;
    double ca = fabs(ua) + sqrt(GRAVITY * a->depth), cb = fabs(ub) + sqrt(GRAVITY * b->depth), c = ca > cb ? ca : cb;
    double head = GRAVITY * 0.5 * (a->depth + b->depth) * (b->depth + b->ground - a->depth - a->ground);
    double depth = 0.5 * (a->depth * ua + b->depth * ub - c * (b->depth + b->ground - a->depth - a->ground));
    double east = 0.5 * (a->east * ua + b->east * ub - c * (b->east - a->east));
    double north = 0.5 * (a->north * ua + b->north * ub - c * (b->north - a->north));
    double k = dt / CELL;
    a->change[0] -= k * depth, b->change[0] += k * depth;
    a->change[1] -= k * east, b->change[1] += k * east;
    a->change[2] -= k * north, b->change[2] += k * north;
    a->change[along == ROWS ? 2 : 1] -= k * 0.5 * head;
    b->change[along == ROWS ? 2 : 1] -= k * 0.5 * head;
    const cell *from = depth > 0 ? a : b;
    double salt = k * depth * from->salt / from->depth, heat = k * depth * from->heat / from->depth;
    a->dissolved[0] -= salt, b->dissolved[0] += salt;
    a->dissolved[1] -= heat, b->dissolved[1] += heat;
}

/* At a wall of the basin, fills the row or column of cells beyond the wall. Each of these cells
 * gets a copy of the cell before the wall, but with the water flowing in the opposite direction. */
static void walls(part *p, const int neighbours[4]) {
    int n = p->side;
    for (int i = 1; i <= n; i++) {
        cell *edge[4][2] = {{at(p, 0, i), at(p, 1, i)}, {at(p, n + 1, i), at(p, n, i)}, {at(p, i, 0), at(p, i, 1)}, {at(p, i, n + 1), at(p, i, n)}};
        for (int side = 0; side < 4; side++) {
            if (neighbours[side] != MPI_PROC_NULL) continue;
            *edge[side][0] = *edge[side][1];
            if (side < 2) edge[side][0]->north *= -1;
            else edge[side][0]->east *= -1;
        }
    }
}

static void step(part *p, double dt) {
    int n = p->side;
    for (int row = 0; row <= n; row++)
        for (int column = 1; column <= n; column++) flow(at(p, row, column), at(p, row + 1, column), ROWS, dt);
    for (int row = 1; row <= n; row++)
        for (int column = 0; column <= n; column++) flow(at(p, row, column), at(p, row, column + 1), COLUMNS, dt);
    for (int row = 0; row <= n + 1; row++)
        for (int column = 0; column <= n + 1; column++) {
            cell *c = at(p, row, column);
            c->depth += c->change[0], c->east += c->change[1], c->north += c->change[2];
            c->salt += c->dissolved[0], c->heat += c->dissolved[1];
            memset(c->change, 0, sizeof c->change);
            memset(c->dissolved, 0, sizeof c->dissolved);
        }
}

/* Returns the type of those members of one cell that neighbours need. The extent of the type is
 * that of a whole cell. */
static MPI_Datatype water(void) {
    int lengths[2] = {3, 2};
    MPI_Aint places[2] = {offsetof(cell, depth), offsetof(cell, salt)};
    MPI_Datatype members[2] = {MPI_DOUBLE, MPI_FLOAT}, bare, resized;
    MPI_Type_create_struct(2, lengths, places, members, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(cell), &resized);
    MPI_Type_free(&bare);
    return resized;
}

static MPI_Datatype of_part(const part *p, int rows, int columns, int row, int column, MPI_Datatype one) {
    int sizes[2] = {p->wide, p->wide}, taken[2] = {rows, columns}, first[2] = {row, column};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, taken, first, MPI_ORDER_C, one, &type);
    MPI_Type_commit(&type);
    return type;
}

static void picture(const char *path, const double *depths, int ranks, const int grid[2], int side) {
    FILE *file = fopen(path, "wb");
    if (!file) fail("the picture cannot be written");
    double low = INFINITY, high = -INFINITY;
    size_t cells = (size_t)ranks * side * side;
    for (size_t i = 0; i < cells; i++) low = fmin(low, depths[i]), high = fmax(high, depths[i]);
    fprintf(file, "P5 %d %d 255\n", grid[1] * side, grid[0] * side);
    for (int y = 0; y < grid[0] * side; y++)
        for (int x = 0; x < grid[1] * side; x++) {
            size_t rank = (size_t)(y / side) * grid[1] + x / side;
            double depth = depths[(rank * side + y % side) * side + x % side];
            fputc((int)(255 * (depth - low) / (high > low ? high - low : 1)), file);
        }
    if (fclose(file)) fail("the picture cannot be written");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long side = 128, steps = 400, every = 20;
    const char *path = NULL;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) fail("an argument needs a value: --cells N, --steps N, --every N, --picture FILE");
        if (!strcmp(argv[i], "--cells")) side = number(argv[i], argv[i + 1], 2);
        else if (!strcmp(argv[i], "--steps")) steps = number(argv[i], argv[i + 1], 1);
        else if (!strcmp(argv[i], "--every")) every = number(argv[i], argv[i + 1], 1);
        else if (!strcmp(argv[i], "--picture")) path = argv[i + 1];
        else fail("arguments are --cells N, --steps N, --every N, --picture FILE");
    }
    int ranks, rank, grid[2] = {0, 0}, here[2], walled[2] = {0, 0}, neighbours[4];
    MPI_Comm basin;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, walled, 0, &basin);
    MPI_Comm_rank(basin, &rank);
    MPI_Cart_coords(basin, rank, 2, here);
    MPI_Cart_shift(basin, 0, 1, &neighbours[0], &neighbours[1]);
    MPI_Cart_shift(basin, 1, 1, &neighbours[2], &neighbours[3]);

    part p = {(int)side, (int)side + 2, calloc((size_t)(side + 2) * (side + 2), sizeof(cell))};
    double *depths = rank == 0 ? malloc(sizeof(double) * ranks * side * side) : NULL;
    if (!p.cells || (rank == 0 && !depths)) fail("no memory for so many cells");
    double center[2] = {grid[0] * side * 0.4, grid[1] * side * 0.45}, radius = 0.1 * side * grid[0];
    for (int row = 0; row < p.wide; row++)
        for (int column = 0; column < p.wide; column++) {
            double y = here[0] * side + row - center[0], x = here[1] * side + column - center[1];
            cell *c = at(&p, row, column);
            c->ground = 1 + sin(0.05 * x) * cos(0.04 * y);
            c->depth = 10 - c->ground + 2 * exp(-(x * x + y * y) / (radius * radius));
            c->salt = (float)(35 * c->depth), c->heat = (float)(x > 0 ? c->depth : 0);
        }

    /* Make the types for the exchange: one to send and one to receive for each neighbour, in this
     * order: the neighbour above, the one below, the left one, the right one. A Cartesian communicator
     * has its neighbours in the same order. */
    int n = (int)side, ones[4] = {1, 1, 1, 1};
    MPI_Aint begin[4] = {0, 0, 0, 0};
    MPI_Datatype one = water(), height, sent[4], received[4], mine;
    sent[0] = of_part(&p, 1, n, 1, 1, one), received[0] = of_part(&p, 1, n, 0, 1, one);
    sent[1] = of_part(&p, 1, n, n, 1, one), received[1] = of_part(&p, 1, n, n + 1, 1, one);
    sent[2] = of_part(&p, n, 1, 1, 1, one), received[2] = of_part(&p, n, 1, 1, 0, one);
    sent[3] = of_part(&p, n, 1, 1, n, one), received[3] = of_part(&p, n, 1, 1, n + 1, one);
    MPI_Type_create_resized(MPI_DOUBLE, 0, sizeof(cell), &height);
    mine = of_part(&p, n, n, 1, 1, height);

    double dt = 0.2 * CELL / sqrt(GRAVITY * 14), spent[3] = {0, 0, 0}, slowest[3];
    uint64_t sum = 0;
    MPI_Barrier(basin);
    double start = MPI_Wtime();
    for (long i = 1; i <= steps; i++) {
        double before = MPI_Wtime();
        MPI_Neighbor_alltoallw(p.cells, ones, begin, sent, p.cells, ones, begin, received, basin);
        spent[1] += MPI_Wtime() - before;
        walls(&p, neighbours);
        step(&p, dt);
        if (i % every == 0 || i == steps) {
            before = MPI_Wtime();
            MPI_Gather(p.cells, 1, mine, depths, n * n, MPI_DOUBLE, 0, basin);
            spent[2] += MPI_Wtime() - before;
            for (size_t k = 0; rank == 0 && k < (size_t)ranks * n * n; k++) {
                uint64_t bits;
                memcpy(&bits, &depths[k], sizeof bits);
                sum = (sum ^ bits) * 0x100000001b3;
            }
        }
    }
    spent[0] = MPI_Wtime() - start;
    MPI_Reduce(spent, slowest, 3, MPI_DOUBLE, MPI_MAX, 0, basin);
    if (rank == 0) {
        printf("ranks %d cells %ld steps %ld step %.2f us exchange %.2f us gather %.2f us sum %016llx\n", ranks, side, steps, 1e6 * slowest[0] / steps,
               1e6 * slowest[1] / steps, 1e6 * slowest[2] / steps, (unsigned long long)sum);
        if (path) picture(path, depths, ranks, grid, n);
    }
    for (int k = 0; k < 4; k++) MPI_Type_free(&sent[k]), MPI_Type_free(&received[k]);
    MPI_Type_free(&one), MPI_Type_free(&height), MPI_Type_free(&mine);
    free(p.cells), free(depths);
    MPI_Comm_free(&basin);
    MPI_Finalize();
    return 0;
}

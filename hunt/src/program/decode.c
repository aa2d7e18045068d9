
static void check(MPI_Datatype t)
{
    LENGTH_TYPE n[4] = {0, 0, 0, 0};
    int combiner;
    ENVELOPE(t, n, &combiner);
    same("combiner", WANT_COMBINER, combiner);
    if (WANT_COMBINER == MPI_COMBINER_NAMED || bad)
        return;
    same("integers in the envelope", WANT_INTEGERS, n[0]);
    same("addresses in the envelope", WANT_ADDRESSES, n[1]);
    same("large counts in the envelope", WANT_COUNTS, n[2]);
    same("datatypes in the envelope", WANT_TYPES, n[3]);
    if (bad)
        return;
    int integers[WANT_INTEGERS + 1];
    MPI_Aint addresses[WANT_ADDRESSES + 1];
    MPI_Count counts[WANT_COUNTS + 1];
    MPI_Datatype types[WANT_TYPES + 1];
    CONTENTS(t, n, integers, addresses, counts, types);
    for (int i = 0; i < WANT_INTEGERS; i++)
        same("an integer of the contents", want_integers[i], integers[i]);
    for (int i = 0; i < WANT_ADDRESSES; i++)
        same("an address of the contents", want_addresses[i], addresses[i]);
    for (int i = 0; i < WANT_COUNTS; i++)
        same("a large count of the contents", want_counts[i], counts[i]);
    for (int i = 0; i < WANT_TYPES; i++) {
        LENGTH_TYPE m[4] = {0, 0, 0, 0};
        ENVELOPE(types[i], m, &combiner);
        same("combiner of a datatype of the contents", want_types[i][0], combiner);
        MPI_Count size;
        CALL(MPI_Type_size_x(types[i], &size));
        same("size of a datatype of the contents", want_types[i][1], size);
        MPI_Aint lb, extent;
        CALL(MPI_Type_get_extent(types[i], &lb, &extent));
        same("lower bound of a datatype of the contents", want_types[i][2], lb);
        same("extent of a datatype of the contents", want_types[i][3], extent);
        if (SYNONYMS && want_named[i] != MPI_DATATYPE_NULL)
            same("whether the named datatype is the one given", 1, types[i] == want_named[i]);
    }
}

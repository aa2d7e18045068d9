/* Two examples of MPI-2.0, section 8.6: the program that prints a datatype, and the sequence with
 * LARGE = 1000. The code is that of the standard. Only its placeholders "... else test for other
 * types ..." and "... other combiner values ..." are filled in. */
#include <stdio.h>
#include <stdlib.h>
#include "mpi.h"
int printdatatype( MPI_Datatype datatype ) 
{
    int *array_of_ints;
    MPI_Aint *array_of_adds;
    MPI_Datatype *array_of_dtypes;
    int num_ints, num_adds, num_dtypes, combiner;
    int i;

    MPI_Type_get_envelope( datatype, 
                           &num_ints, &num_adds, &num_dtypes, &combiner );
    switch (combiner) {
    case MPI_COMBINER_NAMED:
        printf( "Datatype is named:" );
        /* To print the specific type, we can match against the
           predefined forms. We can NOT use a switch statement here 
           We could also use MPI_TYPE_GET_NAME if we prefered to use
           names that the user may have changed.
         */
        if      (datatype == MPI_INT)    printf( "MPI_INT\n" );
        else if (datatype == MPI_DOUBLE) printf( "MPI_DOUBLE\n" );
        else if (datatype == MPI_CHAR)   printf( "MPI_CHAR\n" );
        return 0;
        break;
    case MPI_COMBINER_STRUCT:
    case MPI_COMBINER_STRUCT_INTEGER:
        printf( "Datatype is struct containing" );
        array_of_ints   = (int *)malloc( num_ints * sizeof(int) );
        array_of_adds   = 
                   (MPI_Aint *) malloc( num_adds * sizeof(MPI_Aint) );
        array_of_dtypes = (MPI_Datatype *)
            malloc( num_dtypes * sizeof(MPI_Datatype) );
        MPI_Type_get_contents( datatype, num_ints, num_adds, num_dtypes,
                         array_of_ints, array_of_adds, array_of_dtypes );
        printf( " %d datatypes:\n", array_of_ints[0] );
        for (i=0; i<array_of_ints[0]; i++) {
            printf( "blocklength %d, displacement %ld, type:\n", 
                    array_of_ints[i+1], array_of_adds[i] );
            if (printdatatype( array_of_dtypes[i] )) {
                /* Note that we free the type ONLY if it 
                   is not predefined */
                MPI_Type_free( &array_of_dtypes[i] );
            }
        }
        free( array_of_ints );
        free( array_of_adds );
        free( array_of_dtypes );
        break;
    case MPI_COMBINER_VECTOR: {
        int ints[3];
        MPI_Datatype old;
        MPI_Type_get_contents( datatype, 3, 0, 1, ints, NULL, &old );
        printf( "Datatype is vector: %d %d %d of\n", ints[0], ints[1], ints[2] );
        if (printdatatype( old )) MPI_Type_free( &old );
        break;
    }
    default:
        printf( "Unrecognized combiner type\n" );
    }
    return 1;
}

#define LARGE 1000
static void large( MPI_Datatype argument )
{
    int ni, na, nd, combiner, i[LARGE];
    MPI_Aint a[LARGE];
    MPI_Datatype type, d[LARGE];
    type = argument; /* construct datatype type (not shown) */
    MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    if ((ni > LARGE) || (na > LARGE) || (nd > LARGE)) {
      fprintf(stderr, "ni, na, or nd = %d %d %d returned by ", ni, na, nd);
      fprintf(stderr, "MPI_Type_get_envelope is larger than LARGE = %d\n", 
              LARGE);
      MPI_Abort(MPI_COMM_WORLD, 99);
    };
    MPI_Type_get_contents(type, ni, na, nd, i, a, d);
    printf( "large: %d %d %d %d, %d %d\n", ni, na, nd, combiner, i[0], i[1] );
}

int main( int argc, char **argv )
{
    MPI_Datatype vector, inner, outer, many;
    static int lengths[2000], places[2000];
    MPI_Init( &argc, &argv );
    MPI_Type_vector( 3, 1, 2, MPI_DOUBLE, &vector );
    {
        int blocklengths[2] = { 1, 4 };
        MPI_Aint displacements[2] = { 0, 8 };
        MPI_Datatype types[2];
        types[0] = MPI_INT;
        types[1] = vector;
        MPI_Type_create_struct( 2, blocklengths, displacements, types, &inner );
        types[0] = inner;
        types[1] = MPI_CHAR;
        displacements[1] = 1024;
        MPI_Type_create_struct( 2, blocklengths, displacements, types, &outer );
    }
    MPI_Type_free( &vector );
    MPI_Type_free( &inner );
    printdatatype( outer );
    printdatatype( MPI_INT );
    large( outer );
    {
        int k;
        for (k = 0; k < 2000; k++) lengths[k] = 1, places[k] = 2 * k;
    }
    MPI_Type_indexed( 499, lengths, places, MPI_INT, &many );
    { /* fits: 2 * 499 + 1 = 999 integers */
        large( many );
    }
    MPI_Type_free( &many );
    MPI_Type_free( &outer );
    if (argc > 1) {
        MPI_Type_indexed( 500, lengths, places, MPI_INT, &many );
        large( many );
    }
    MPI_Finalize();
    return 0;
}

/* Initializes MPI again and again by sessions, without MPI_Init. The types and communicators of
 * each session are used, and some types are never freed.
 *
 * Open MPI's wheel makes no communicators from groups, and crashes when MPI is initialized again.
 * So under Open MPI, the program calls MPI_Init first, and sessions come and go until
 * MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  (void)argc;
  int wrong = 0, user[1024], packed[1024];
  for (int i = 0; i < 1024; i++) user[i] = i + 1;
#ifdef OPEN_MPI
  MPI_Init(&argc, &argv);
#endif
  for (int round = 0; round < atoi(argv[1]); round++) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_SELF;
    (void)group;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 2;
#ifndef OPEN_MPI
    if (MPI_Group_from_session_pset(session, "mpi://SELF", &group)) return 3;
    if (MPI_Comm_create_from_group(group, "ddtc", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm)) return 4;
#endif
    /* Make types of new layouts and pack three times with each. Every second type is freed, and the
     * others are alive when the session ends. */
    for (int i = 0; i < 20; i++) {
      int n = 3 + round * 5 + i, s = 2 + (round + i) % 3;
      MPI_Datatype t;
      MPI_Type_vector(n, 1, s, MPI_INT, &t);
      MPI_Type_commit(&t);
      for (int k = 0; k < 3; k++) {
        int at = 0;
        memset(packed, 0, sizeof packed);
        MPI_Pack(user, 1, t, packed, sizeof packed, &at, comm);
        if (at != 4 * n) wrong++;
        for (int j = 0; j < n; j++) if (packed[j] != user[j * s]) { wrong++; break; }
      }
      if (i % 2) MPI_Type_free(&t);
    }
#ifndef OPEN_MPI
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
#endif
    MPI_Session_finalize(&session);
  }
#ifdef OPEN_MPI
  MPI_Finalize();
#endif
  printf("wrong %d\n", wrong);
  return wrong != 0;
}

! Makes receives through a Fortran binding (halves.c) that makes the requests by C functions with
! MPI_ names, but may start and complete them without calling such functions. No received data may
! stay in a staging buffer of the preload library.
program receiver
  implicit none
  integer :: from(300), into(300), t, world, request, status(20), ierror, i, round, wrong
  external :: mpi_irecv, mpi_recv_init, mpi_start, mpi_wait, mpi_request_free, mpi_send, begin, end
  call begin(t, world)
  wrong = 0
  do round = 1, 20
    from = [(1000 * round + i, i = 1, 300)]
    into = -1
    call mpi_irecv(into, 1, t, 0, 7, world, request, ierror)
    call mpi_send(from, 1, t, 0, 7, world, ierror)
    call mpi_wait(request, status, ierror)
    if (any(into(1:300:3) /= from(1:300:3)) .or. any(into(2:300:3) /= -1)) wrong = wrong + 1
    into = -1
    call mpi_recv_init(into, 1, t, 0, 8, world, request, ierror)
    do i = 1, 3
      call mpi_start(request, ierror)
      call mpi_send(from, 1, t, 0, 8, world, ierror)
      call mpi_wait(request, status, ierror)
    end do
    if (any(into(1:300:3) /= from(1:300:3)) .or. any(into(2:300:3) /= -1)) wrong = wrong + 1
    call mpi_request_free(request, ierror)
  end do
  call end()
  print '(a,i0)', 'wrong ', wrong
end program

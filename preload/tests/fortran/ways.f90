! Sends messages from this rank to itself through the MPI library's own binding of `mpif.h` and
! `use mpi`: nonblocking messages, which are completed by each function that the binding has for
! that, and persistent messages, which are completed by MPI_Waitall.
program ways_to_complete
  implicit none
  integer, parameter :: ways = 8, n = 6
  double precision :: from(300, n), into(300, n)
  integer :: t, basic, world, s(2 * n), statuses(20, 2 * n), indices(2 * n), ierror
  integer :: i, round, wrong, done, out, index
  logical :: flag
  external :: mpi_init, mpi_finalize, mpi_type_vector, mpi_type_commit, mpi_isend, mpi_irecv, mpi_send_init, mpi_recv_init
  external :: mpi_start, mpi_startall, mpi_wait, mpi_test, mpi_waitany, mpi_testany, mpi_waitall, mpi_testall, mpi_waitsome
  external :: mpi_testsome, mpi_request_free, mpi_request_get_status, host_handles
  call mpi_init(ierror)
  call host_handles(world, basic)
  call mpi_type_vector(100, 1, 3, basic, t, ierror)
  call mpi_type_commit(t, ierror)
  wrong = 0
  ! Each way to complete requests is used in three rounds. In each round the messages go once by
  ! nonblocking and once by persistent requests, and `check` compares the received data with the
  ! sent data.
  do round = 1, 3 * ways
    from = reshape([(1d4 * round + i, i = 1, 300 * n)], [300, n])
    into = -1
    do i = 1, n
      call mpi_irecv(into(1, i), 1, t, 0, i, world, s(i), ierror)
    end do
    do i = 1, n
      call mpi_isend(from(1, i), 1, t, 0, i, world, s(n + i), ierror)
    end do
    call complete(mod(round, ways))
    call check()
    into = -1
    do i = 1, n
      call mpi_recv_init(into(1, i), 1, t, 0, 50 + i, world, s(i), ierror)
      call mpi_send_init(from(1, i), 1, t, 0, 50 + i, world, s(n + i), ierror)
    end do
    call mpi_startall(n, s, ierror)
    do i = 1, n
      call mpi_start(s(n + i), ierror)
    end do
    if (mod(round, 3) == 1) then
      do i = 1, n
        flag = .false.
        do while (.not. flag)
          call mpi_request_get_status(s(i), flag, statuses, ierror)
        end do
      end do
      call check()
    end if
    call mpi_waitall(2 * n, s, statuses, ierror)
    call check()
    do i = 1, 2 * n
      call mpi_request_free(s(i), ierror)
    end do
  end do
  call mpi_finalize(ierror)
  print '(a,i0)', 'wrong ', wrong
contains
  subroutine check()
    if (any(into(1:300:3, :) /= from(1:300:3, :)) .or. any(into(2:300:3, :) /= -1)) wrong = wrong + 1
  end subroutine
  subroutine complete(way)
    integer, intent(in) :: way
    done = 0
    select case (way)
    case (0)
      do i = 2 * n, 1, -1
        call mpi_wait(s(i), statuses, ierror)
      end do
    case (1)
      do i = 1, 2 * n
        flag = .false.
        do while (.not. flag)
          call mpi_test(s(i), flag, statuses, ierror)
        end do
      end do
    case (2)
      do i = 1, 2 * n
        call mpi_waitany(2 * n, s, index, statuses, ierror)
      end do
    case (3)
      do while (done < 2 * n)
        call mpi_testany(2 * n, s, index, flag, statuses, ierror)
        if (flag) done = done + 1
      end do
    case (4)
      call mpi_waitall(2 * n, s, statuses, ierror)
    case (5)
      flag = .false.
      do while (.not. flag)
        call mpi_testall(2 * n, s, flag, statuses, ierror)
      end do
    case (6)
      do while (done < 2 * n)
        call mpi_waitsome(2 * n, s, out, indices, statuses, ierror)
        done = done + out
      end do
    case default
      do while (done < 2 * n)
        call mpi_testsome(2 * n, s, out, indices, statuses, ierror)
        done = done + out
      end do
    end select
  end subroutine
end program

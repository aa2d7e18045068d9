//! The preload library under real MPI libraries: MPICH, Intel MPI and Open MPI from pinned wheels, C, Fortran and Python.

mod clients;
mod corpus;
mod external;
mod faults;
mod hunt;
mod messages;
mod programs;
mod reduce;
mod setup;

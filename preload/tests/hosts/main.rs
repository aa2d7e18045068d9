//! The preload library under real MPI libraries: MPICH, Intel MPI and Open MPI from pinned wheels, C, Fortran and Python.

mod clients;
mod collectives;
mod corpus;
mod external;
mod faults;
mod messages;
mod programs;
mod reduce;
mod setup;

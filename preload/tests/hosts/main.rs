//! The preload library under real MPI libraries: MPICH, Intel MPI and Open MPI from pinned wheels, C, Fortran and Python.

mod applications;
mod bindings;
mod build;
mod clients;
mod collectives;
mod corpus;
mod demonstration;
mod doctor;
mod external;
mod faults;
mod files;
mod guide;
mod hunt;
mod install;
mod left;
mod messages;
mod planted;
mod programs;
mod published;
mod reduce;
mod scalapack;
mod setup;
mod suite;
mod truncation;
mod wheel;
mod windows;

//! Reading of contents: takes the arguments of a combiner out of the arrays, in the order in which
//! `put` writes them.

use std::sync::Arc;

use super::{CombinerKind as K, Constants};
use crate::datatype::{Combiner, Datatype, Distribution, Order};
use crate::error::{Error, ErrorClass, Result};

/// The parts of the arrays that have not been read yet.
pub(super) struct Take<'a> {
    pub(super) kind: K,
    pub(super) constants: &'a Constants,
    pub(super) large: bool,
    pub(super) integers: &'a [i32],
    pub(super) addresses: &'a [i64],
    pub(super) large_counts: &'a [i64],
    /// Datatypes that have not been read yet. They are taken from the front, one by one or all
    /// together. It is an error if some are left at the end.
    pub(super) datatypes: Vec<Datatype>,
}

impl Take<'_> {
    fn wrong(&self, argument: &'static str, value: impl std::fmt::Display, rule: &'static str) -> Error {
        Error::new(ErrorClass::Type, self.kind.mpi_name(), argument, value, rule)
    }

    fn short(&self, argument: &'static str) -> Error {
        self.wrong(argument, "too short", "must have the length that the combiner and its counts ask for")
    }

    fn integer(&mut self) -> Result<i64> {
        let (&first, rest) = self.integers.split_first().ok_or_else(|| self.short("array_of_integers"))?;
        self.integers = rest;
        Ok(i64::from(first))
    }

    fn integers(&mut self, n: usize) -> Result<Arc<[i64]>> {
        let (front, rest) =
            self.integers.split_at_checked(n).ok_or_else(|| self.short("array_of_integers"))?;
        self.integers = rest;
        Ok(front.iter().map(|&v| i64::from(v)).collect())
    }

    fn large_counts(&mut self, n: usize) -> Result<Arc<[i64]>> {
        let split = self.large_counts.split_at_checked(n);
        let (front, rest) = split.ok_or_else(|| self.short("array_of_large_counts"))?;
        self.large_counts = rest;
        Ok(front.into())
    }

    fn count(&mut self) -> Result<i64> {
        if !self.large {
            return self.integer();
        }
        let split = self.large_counts.split_first();
        let (&first, rest) = split.ok_or_else(|| self.short("array_of_large_counts"))?;
        self.large_counts = rest;
        Ok(first)
    }

    fn counts(&mut self, n: usize) -> Result<Arc<[i64]>> {
        if self.large { self.large_counts(n) } else { self.integers(n) }
    }

    fn addresses(&mut self, n: usize) -> Result<Arc<[i64]>> {
        if self.large {
            return self.large_counts(n);
        }
        let split = self.addresses.split_at_checked(n);
        let (front, rest) = split.ok_or_else(|| self.short("array_of_addresses"))?;
        self.addresses = rest;
        Ok(front.into())
    }

    fn address(&mut self) -> Result<i64> {
        Ok(self.addresses(1)?[0])
    }

    /// Converts a number of array entries to `usize`. The number must not be negative.
    fn length(&self, value: i64) -> Result<usize> {
        usize::try_from(value).map_err(|_| self.wrong("count", value, "must not be negative"))
    }

    fn datatype(&mut self) -> Result<Datatype> {
        if self.datatypes.is_empty() {
            return Err(self.short("array_of_datatypes"));
        }
        Ok(self.datatypes.remove(0))
    }

    fn order(&mut self) -> Result<Order> {
        match self.integer()? {
            v if v == i64::from(self.constants.order_c) => Ok(Order::C),
            v if v == i64::from(self.constants.order_fortran) => Ok(Order::Fortran),
            v => Err(self.wrong("order", v, "must be MPI_ORDER_C or MPI_ORDER_FORTRAN")),
        }
    }

    fn distribution(&mut self) -> Result<Distribution> {
        match self.integer()? {
            v if v == i64::from(self.constants.distribute_block) => Ok(Distribution::Block),
            v if v == i64::from(self.constants.distribute_cyclic) => Ok(Distribution::Cyclic),
            v if v == i64::from(self.constants.distribute_none) => Ok(Distribution::None),
            v => Err(self.wrong("array_of_distribs", v, "must be block, cyclic or none")),
        }
    }

    /// Reads a number. Returns `None` if it is the constant `absent`, which stands for an argument
    /// that was not given.
    fn optional(&mut self, absent: i32) -> Result<Option<i64>> {
        let value = self.integer()?;
        Ok((value != i64::from(absent)).then_some(value))
    }

    /// Reads the combiner from the arrays.
    pub(super) fn combiner(&mut self) -> Result<Combiner> {
        // The fields are evaluated in the order in which they are written here, which is the order
        // of the arrays.
        Ok(match self.kind {
            K::Named => return Err(self.wrong("combiner", "named", "a named type has no contents")),
            K::Dup => Combiner::Dup { oldtype: self.datatype()? },
            K::Contiguous => Combiner::Contiguous { count: self.count()?, oldtype: self.datatype()? },
            K::Vector => Combiner::Vector {
                count: self.count()?,
                blocklength: self.count()?,
                stride: self.count()?,
                oldtype: self.datatype()?,
            },
            K::Hvector | K::HvectorInteger => Combiner::Hvector {
                count: self.count()?,
                blocklength: self.count()?,
                stride: self.address()?,
                oldtype: self.datatype()?,
                legacy: self.kind == K::HvectorInteger,
            },
            K::Indexed => {
                let count = self.count()?;
                let n = self.length(count)?;
                Combiner::Indexed {
                    blocklengths: self.counts(n)?,
                    displacements: self.counts(n)?,
                    oldtype: self.datatype()?,
                }
            }
            K::Hindexed | K::HindexedInteger => {
                let count = self.count()?;
                let n = self.length(count)?;
                Combiner::Hindexed {
                    blocklengths: self.counts(n)?,
                    displacements: self.addresses(n)?,
                    oldtype: self.datatype()?,
                    legacy: self.kind == K::HindexedInteger,
                }
            }
            K::IndexedBlock | K::HindexedBlock => self.equal_blocks()?,
            K::Struct | K::StructInteger => self.structure()?,
            K::Subarray => self.subarray()?,
            K::Darray => self.darray()?,
            K::F90Real | K::F90Complex => {
                let undefined = self.constants.undefined;
                let (p, r) = (self.optional(undefined)?, self.optional(undefined)?);
                if self.kind == K::F90Real {
                    Combiner::F90Real { p, r }
                } else {
                    Combiner::F90Complex { p, r }
                }
            }
            K::F90Integer => Combiner::F90Integer { r: self.integer()? },
            K::Resized => {
                Combiner::Resized { lb: self.address()?, extent: self.address()?, oldtype: self.datatype()? }
            }
            K::ValueIndex => Combiner::ValueIndex { value: self.datatype()?, index: self.datatype()? },
        })
    }

    /// Reads an indexed_block or hindexed_block.
    fn equal_blocks(&mut self) -> Result<Combiner> {
        let (count, blocklength) = (self.count()?, self.count()?);
        let n = self.length(count)?;
        Ok(if self.kind == K::IndexedBlock {
            let displacements = self.counts(n)?;
            Combiner::IndexedBlock { blocklength, displacements, oldtype: self.datatype()? }
        } else {
            let displacements = self.addresses(n)?;
            Combiner::HindexedBlock { blocklength, displacements, oldtype: self.datatype()? }
        })
    }

    /// Reads a struct.
    fn structure(&mut self) -> Result<Combiner> {
        let count = self.count()?;
        let n = self.length(count)?;
        Ok(Combiner::Struct {
            blocklengths: self.counts(n)?,
            displacements: self.addresses(n)?,
            types: std::mem::take(&mut self.datatypes).into(),
            legacy: self.kind == K::StructInteger,
        })
    }

    /// Reads a subarray.
    fn subarray(&mut self) -> Result<Combiner> {
        let ndims = self.integer()?;
        let n = self.length(ndims)?;
        Ok(Combiner::Subarray {
            sizes: self.counts(n)?,
            subsizes: self.counts(n)?,
            starts: self.counts(n)?,
            order: self.order()?,
            oldtype: self.datatype()?,
        })
    }

    /// Reads a darray.
    fn darray(&mut self) -> Result<Combiner> {
        let (size, rank, ndims) = (self.integer()?, self.integer()?, self.integer()?);
        let n = self.length(ndims)?;
        let gsizes = self.counts(n)?;
        if self.integers.len() < n {
            return Err(self.short("array_of_integers"));
        }
        let default = self.constants.distribute_dflt_darg;
        Ok(Combiner::Darray {
            size,
            rank,
            gsizes,
            distribs: (0..n).map(|_| self.distribution()).collect::<Result<_>>()?,
            dargs: (0..n).map(|_| self.optional(default)).collect::<Result<_>>()?,
            psizes: self.integers(n)?,
            order: self.order()?,
            oldtype: self.datatype()?,
        })
    }

    /// Checks that nothing is left in the arrays.
    pub(super) fn finish(&self) -> Result<()> {
        for (argument, left) in [
            ("array_of_integers", self.integers.len()),
            ("array_of_addresses", self.addresses.len()),
            ("array_of_large_counts", self.large_counts.len()),
            ("array_of_datatypes", self.datatypes.len()),
        ] {
            if left > 0 {
                return Err(self.wrong(
                    argument,
                    format!("{left} entries too many"),
                    "must have exactly the combiner's length",
                ));
            }
        }
        Ok(())
    }
}

//! The constructors of MPI (MPI 5.0, sections 5.1.2 to 5.1.4, 5.1.7 and 5.1.10) as functions.

use super::{Combiner, Datatype, Distribution, Order, Scalar};
use crate::error::Result;

impl Datatype {
    /// Returns the basic type of a number type of Rust ([`Scalar`] lists them).
    ///
    /// ```
    /// let double = ddtc::Datatype::of::<f64>();
    /// assert_eq!((double.size(), double.to_string()), (8, "double".to_owned()));
    /// ```
    pub fn of<T: Scalar>() -> Datatype {
        Datatype::named(T::NAMED)
    }

    /// Returns `count` copies of `oldtype`, one extent apart (`MPI_Type_contiguous`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let triple = Datatype::contiguous(3, &Datatype::of::<f64>())?;
    /// assert_eq!((triple.size(), triple.extent()), (24, 24));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an argument breaks a rule of MPI, or if the size or a displacement would not fit in 64
    /// bits. The error names the constructor, the argument, its value and the rule.
    pub fn contiguous(count: i64, oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Contiguous { count, oldtype: oldtype.clone() })
    }

    /// Returns `count` blocks of `blocklength` elements, whose starts are `stride` elements apart (`MPI_Type_vector`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // A column of a matrix with 8 columns: every 8th element, 4 times.
    /// let column = Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?;
    /// assert_eq!((column.size(), column.extent()), (32, (3 * 8 + 1) * 8));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`].
    pub fn vector(count: i64, blocklength: i64, stride: i64, oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Vector { count, blocklength, stride, oldtype: oldtype.clone() })
    }

    /// Returns `count` blocks of `blocklength` elements, whose starts are `stride` bytes apart (`MPI_Type_create_hvector`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // The first column of an image of 3-byte pixels whose rows begin 1024 bytes apart.
    /// let pixel = Datatype::contiguous(3, &Datatype::of::<u8>())?;
    /// let column = Datatype::hvector(480, 1, 1024, &pixel)?;
    /// assert_eq!(column.size(), 480 * 3);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`].
    pub fn hvector(count: i64, blocklength: i64, stride: i64, oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Hvector {
            count,
            blocklength,
            stride,
            oldtype: oldtype.clone(),
            legacy: false,
        })
    }

    /// Returns blocks of `blocklengths[i]` elements at element `displacements[i]` (`MPI_Type_indexed`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // Elements 0 and 1, and elements 5 to 7.
    /// let parts = Datatype::indexed(&[2, 3], &[0, 5], &Datatype::of::<i32>())?;
    /// assert_eq!((parts.size(), parts.extent()), (20, 32));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`]; also if the slices differ in length.
    pub fn indexed(blocklengths: &[i64], displacements: &[i64], oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Indexed {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
            oldtype: oldtype.clone(),
        })
    }

    /// Returns blocks of `blocklengths[i]` elements at byte `displacements[i]` (`MPI_Type_create_hindexed`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // Two elements at byte 4, and one at byte 32.
    /// let parts = Datatype::hindexed(&[2, 1], &[4, 32], &Datatype::of::<i32>())?;
    /// assert_eq!((parts.size(), parts.lb(), parts.ub()), (12, 4, 36));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`]; also if the slices differ in length.
    pub fn hindexed(blocklengths: &[i64], displacements: &[i64], oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Hindexed {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
            oldtype: oldtype.clone(),
            legacy: false,
        })
    }

    /// Returns blocks of `blocklength` elements at element `displacements[i]` (`MPI_Type_create_indexed_block`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // Pairs of elements at elements 0, 6 and 4, which are packed in this order.
    /// let pairs = Datatype::indexed_block(2, &[0, 6, 4], &Datatype::of::<f32>())?;
    /// assert_eq!((pairs.size(), pairs.extent()), (24, 32));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`].
    pub fn indexed_block(blocklength: i64, displacements: &[i64], oldtype: &Datatype) -> Result<Datatype> {
        let displacements = displacements.into();
        Datatype::new(Combiner::IndexedBlock { blocklength, displacements, oldtype: oldtype.clone() })
    }

    /// Returns blocks of `blocklength` elements at byte `displacements[i]` (`MPI_Type_create_hindexed_block`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let pairs = Datatype::hindexed_block(2, &[0, 24, 16], &Datatype::of::<f32>())?;
    /// assert_eq!((pairs.size(), pairs.extent()), (24, 32));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`].
    pub fn hindexed_block(blocklength: i64, displacements: &[i64], oldtype: &Datatype) -> Result<Datatype> {
        let displacements = displacements.into();
        Datatype::new(Combiner::HindexedBlock { blocklength, displacements, oldtype: oldtype.clone() })
    }

    /// Returns blocks of `blocklengths[i]` copies of `types[i]` at byte `displacements[i]` (`MPI_Type_create_struct`).
    ///
    /// ```
    /// use std::mem::offset_of;
    ///
    /// use ddtc::Datatype;
    ///
    /// #[repr(C)]
    /// struct Particle {
    ///     mass: f64,
    ///     kind: i32,
    ///     place: [f32; 3],
    /// }
    ///
    /// // The mass and the place, without the kind.
    /// let displacements = [offset_of!(Particle, mass) as i64, offset_of!(Particle, place) as i64];
    /// let members = [Datatype::of::<f64>(), Datatype::of::<f32>()];
    /// let particle = Datatype::structure(&[1, 3], &displacements, &members)?;
    /// // An array of particles has them as far apart as the compiler puts them.
    /// let particle = Datatype::resized(0, size_of::<Particle>() as i64, &particle)?;
    /// assert_eq!((particle.size(), particle.extent()), (20, 24));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`]; also if the slices differ in length.
    pub fn structure(blocklengths: &[i64], displacements: &[i64], types: &[Datatype]) -> Result<Datatype> {
        Datatype::new(Combiner::Struct {
            blocklengths: blocklengths.into(),
            displacements: displacements.into(),
            types: types.into(),
            legacy: false,
        })
    }

    /// Returns the part of an array of `sizes` elements that begins at `starts` and has `subsizes`
    /// elements in each dimension (`MPI_Type_create_subarray`). Its displacements are counted from
    /// the first element of the whole array, and its extent is that of the whole array. With
    /// [`Order::C`], the first dimension counts the rows of a matrix.
    ///
    /// ```
    /// use ddtc::{Datatype, Order};
    ///
    /// // Rows 1 and 2, columns 2 to 4 of an array of 4 x 8 doubles.
    /// let part = Datatype::subarray(&[4, 8], &[2, 3], &[1, 2], Order::C, &Datatype::of::<f64>())?;
    /// assert_eq!((part.size(), part.extent()), (2 * 3 * 8, 4 * 8 * 8));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`]; also if the slices differ in length, or the part does not
    /// lie inside the array.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        oldtype: &Datatype,
    ) -> Result<Datatype> {
        Datatype::new(Combiner::Subarray {
            sizes: sizes.into(),
            subsizes: subsizes.into(),
            starts: starts.into(),
            order,
            oldtype: oldtype.clone(),
        })
    }

    /// Returns the part that process `rank` of `size` owns of a distributed array of `gsizes`
    /// elements (`MPI_Type_create_darray`).
    ///
    /// Dimension `i` is distributed over `psizes[i]` processes as `distribs[i]` says. The processes
    /// form a grid in row-major order. The argument `dargs[i]` is the block size, or `None` for the
    /// default (`MPI_DISTRIBUTE_DFLT_DARG`).
    ///
    /// ```
    /// use ddtc::{Datatype, Distribution, Order};
    ///
    /// // What process 1 of 4 owns of 10 elements that are distributed in blocks: elements 3 to 5.
    /// let own = Datatype::darray(4, 1, &[10], &[Distribution::Block], &[None], &[4], Order::C, &Datatype::of::<f64>())?;
    /// assert_eq!((own.size(), own.true_lb()), (3 * 8, 3 * 8));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`]; also if the slices differ in length, the grid does not have
    /// `size` processes, or the blocks do not cover a dimension.
    #[allow(clippy::too_many_arguments, reason = "MPI's own argument list")]
    pub fn darray(
        size: i64,
        rank: i64,
        gsizes: &[i64],
        distribs: &[Distribution],
        dargs: &[Option<i64>],
        psizes: &[i64],
        order: Order,
        oldtype: &Datatype,
    ) -> Result<Datatype> {
        Datatype::new(Combiner::Darray {
            size,
            rank,
            gsizes: gsizes.into(),
            distribs: distribs.into(),
            dargs: dargs.into(),
            psizes: psizes.into(),
            order,
            oldtype: oldtype.clone(),
        })
    }

    /// Returns a datatype with the same type map, the lower bound `lb` and the upper bound `lb +
    /// extent`, in bytes (`MPI_Type_create_resized`).
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// // A column of a matrix with 8 columns, so that the next instance is the next column.
    /// let double = Datatype::of::<f64>();
    /// let column = Datatype::resized(0, 8, &Datatype::vector(4, 1, 8, &double)?)?;
    /// assert_eq!((column.size(), column.extent()), (32, 8));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Datatype::contiguous`].
    pub fn resized(lb: i64, extent: i64, oldtype: &Datatype) -> Result<Datatype> {
        Datatype::new(Combiner::Resized { lb, extent, oldtype: oldtype.clone() })
    }
}

//! Scalar types of Rust as MPI datatypes.

use super::Named;

mod sealed {
    use super::Named;

    /// Keeps other crates from implementing [`super::Scalar`] for more types than this module does.
    pub trait Sealed {
        /// Named datatype that has the size, alignment and class of the Rust type.
        const NAMED: Named;
    }
}

/// A type of Rust that is one of MPI's basic types: an argument of [`Datatype::of`](super::Datatype::of).
///
/// | Rust | MPI |
/// |---|---|
/// | `i8`, `i16`, `i32`, `i64` | `MPI_INT8_T`, `MPI_INT16_T`, `MPI_INT32_T`, `MPI_INT64_T` |
/// | `u8`, `u16`, `u32`, `u64` | `MPI_UINT8_T`, `MPI_UINT16_T`, `MPI_UINT32_T`, `MPI_UINT64_T` |
/// | `f32`, `f64` | `MPI_FLOAT`, `MPI_DOUBLE` |
/// | `bool` | `MPI_C_BOOL` |
///
/// For other basic types, parse their names, as in `"byte".parse::<Datatype>()`.
///
/// ```
/// use ddtc::Datatype;
///
/// assert_eq!(Datatype::of::<f64>(), "double".parse()?);
/// assert_eq!(Datatype::of::<u16>().size(), 2);
/// # Ok::<(), ddtc::Error>(())
/// ```
pub trait Scalar: sealed::Sealed {}

macro_rules! scalars {
    ($($of:ty => $named:ident;)*) => {
        $(
            impl sealed::Sealed for $of {
                const NAMED: Named = Named::$named;
            }

            impl Scalar for $of {}
        )*
    };
}

scalars! {
    i8 => Int8;
    i16 => Int16;
    i32 => Int32;
    i64 => Int64;
    u8 => Uint8;
    u16 => Uint16;
    u32 => Uint32;
    u64 => Uint64;
    f32 => Float;
    f64 => Double;
    bool => CBool;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;

    /// Checks that the named datatype of `T` has the size and alignment of `T`.
    fn agrees<T: Scalar>() {
        let t = Datatype::of::<T>();
        assert_eq!((t.size(), t.alignment()), (size_of::<T>() as i64, align_of::<T>() as i64), "{t}");
    }

    #[test]
    fn scalars_have_the_size_and_alignment_of_their_types() {
        agrees::<i8>();
        agrees::<i16>();
        agrees::<i32>();
        agrees::<i64>();
        agrees::<u8>();
        agrees::<u16>();
        agrees::<u32>();
        agrees::<u64>();
        agrees::<f32>();
        agrees::<f64>();
        agrees::<bool>();
    }
}

//! Methods of public types for the other crates of the workspace, as sealed traits.
//!
//! These methods are not part of the public interface. In the types themselves they are
//! `pub(crate)`, so the documentation of a type does not list them among its public methods. Other
//! crates of the workspace call them through the traits of this module. The line
//! `use ddtc::internal::methods::*;` brings all of the traits into scope.
//!
//! Each function and method of the traits that this module declares calls the one of the same name
//! that the type has inside the library, and each constant has the value of the type's constant of
//! the same name. These items of the types have the documentation. The module also re-exports the
//! traits for raw calls, such as [`RawCalls`], which are documented where they are declared.
#![allow(
    clippy::new_ret_no_self,
    clippy::wrong_self_convention,
    reason = "the names are those of the types' own methods"
)]

use std::borrow::Cow;
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use crate::code::kernel::Kernel;
use crate::committed::{ByFunction, Committed, CommittedOperation, LayoutCopy};
pub use crate::committed::{RawCalls, RawCopyCalls, RawOperationCalls};
use crate::datatype::{
    Combiner, CombinerKind, Constants, Contents, Datatype, Envelope, Named, Signature, TypeMap,
};
use crate::decode::Introspect;
use crate::engine::{Counters, Engine, Explanation, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::{Direction, Kind, Op, Operation};
use crate::nest::{LoopNest, Normal, Value};
use crate::segments::{Cursor, Runs, Segment, Segments};
use crate::target::Target;

mod sealed {
    /// Supertrait that seals the traits of the parent module. The module `sealed` is private, so
    /// only this library can implement `Sealed`, and with it those traits.
    pub trait Sealed: Sized {}
}

use sealed::Sealed;

/// Declares a sealed trait, and implements it and `Sealed` for one type.
///
/// The type must have the constants, functions and methods that the trait lists, because the
/// implementation takes the values of the constants from the type, and calls its functions and
/// methods. `fn` declares a function without a receiver, `ref fn` a method that takes
/// `&self`, and `move fn` a method that takes `self` by value.
macro_rules! forward {
    ($(#[$attribute:meta])* $name:ident for $of:ident {
        $(const $constant:ident: $constant_type:ty;)*
        $(fn $function:ident($($function_argument:ident: $function_type:ty),*) -> $function_result:ty;)*
        $(ref fn $method:ident $(<$generic:ident: $bound:path>)? ($($argument:ident: $type:ty),*) -> $result:ty;)*
        $(move fn $taking:ident($($taking_argument:ident: $taking_type:ty),*) -> $taking_result:ty;)*
    }) => {
        impl Sealed for $of {}

        $(#[$attribute])*
        pub trait $name: Sealed {
            $(const $constant: $constant_type;)*
            $(fn $function($($function_argument: $function_type),*) -> $function_result;)*
            $(fn $method $(<$generic: $bound>)? (&self, $($argument: $type),*) -> $result;)*
            $(fn $taking(self, $($taking_argument: $taking_type),*) -> $taking_result;)*
        }

        impl $name for $of {
            $(const $constant: $constant_type = $of::$constant;)*
            $(
                #[inline]
                fn $function($($function_argument: $function_type),*) -> $function_result {
                    $of::$function($($function_argument),*)
                }
            )*
            $(
                #[inline]
                fn $method $(<$generic: $bound>)? (&self, $($argument: $type),*) -> $result {
                    $of::$method(self, $($argument),*)
                }
            )*
            $(
                #[inline]
                fn $taking(self, $($taking_argument: $taking_type),*) -> $taking_result {
                    $of::$taking(self, $($taking_argument),*)
                }
            )*
        }
    };
}

forward! {
    /// Methods of [`Datatype`] for the other crates of the workspace.
    ///
    /// They make datatypes, for example from a combiner or from contents. They also read the tree
    /// of constructors, its contents, its hash and its type map, convert between numbers of bytes
    /// and of basic elements, and check whether a reduction is defined for all elements.
    DatatypeMethods for Datatype {
        fn new(combiner: Combiner) -> Result<Datatype>;
        fn named(named: Named) -> Datatype;
        fn bounds(lb: i64, extent: i64, t: &Datatype) -> Result<Datatype>;
        fn f90_real(p: Option<i64>, r: Option<i64>) -> Result<Datatype>;
        fn f90_complex(p: Option<i64>, r: Option<i64>) -> Result<Datatype>;
        fn f90_integer(r: i64) -> Result<Datatype>;
        fn value_index(value: &Datatype, index: &Datatype) -> Result<Datatype>;
        fn from_contents(kind: CombinerKind, contents: Contents<Datatype>, constants: &Constants) -> Result<Datatype>;
        ref fn is_large_count() -> bool;
        ref fn combiner() -> &Combiner;
        ref fn expansion() -> Option<&Datatype>;
        ref fn true_extent() -> i64;
        ref fn alignment() -> i64;
        ref fn signature() -> Signature;
        ref fn structural_hash() -> u128;
        ref fn id() -> usize;
        ref fn arguments() -> u64;
        ref fn depth() -> u32;
        ref fn nodes() -> impl Iterator<Item = &Datatype>;
        ref fn constructed() -> &Datatype;
        ref fn envelope() -> Envelope;
        ref fn contents_into(constants: &Constants, integers: &mut [i32], addresses: &mut [i64], large_counts: &mut [i64]) -> Result<()>;
        ref fn contents_into_uninit(constants: &Constants, integers: &mut [MaybeUninit<i32>], addresses: &mut [MaybeUninit<i64>], large_counts: &mut [MaybeUninit<i64>]) -> Result<()>;
        ref fn contents(constants: &Constants) -> Result<Contents<Datatype>>;
        ref fn elements_before(bytes: i64) -> Option<i64>;
        ref fn whole_elements(bytes: i64) -> i64;
        ref fn bytes_before(elements: i64) -> Option<i64>;
        ref fn value_index_parts() -> Option<(Named, (Named, i64))>;
        ref fn check_reduction(op: Op) -> Result<()>;
        ref fn check_basic(operation: &'static str, named: Named) -> Result<()>;
        ref fn only_basic(operation: &'static str) -> Result<Option<Named>>;
        ref fn type_map() -> TypeMap<'_>;
        ref fn basic() -> Option<Named>;
        ref fn wire_size() -> Result<usize>;
        move fn with_large_count() -> Datatype;
    }
}

forward! {
    /// Methods of [`Engine`] for the other crates of the workspace. They read counters, decode the
    /// handles of an MPI library, and explain a compilation by the result of each stage.
    EngineMethods for Engine {
        ref fn holders() -> usize;
        ref fn is_same(other: &Engine) -> bool;
        ref fn counters() -> Counters;
        ref fn decode<I: Introspect>(host: &mut I, handle: &I::Handle) -> Result<Datatype>;
        ref fn target() -> Target;
        ref fn explain(t: &Datatype, kind: impl Into<Kind>, target: Target) -> Result<Explanation>;
        ref fn explain_copy(from: &Datatype, to: &Datatype, target: Target) -> Result<Explanation>;
    }
}

forward! {
    /// Methods of [`Committed`] for the other crates of the workspace. They give access to the
    /// layout, to its hashes and to its kernels, and say how calls are served.
    CommittedMethods for Committed {
        ref fn again() -> Committed;
        ref fn nest() -> &LoopNest<Normal>;
        ref fn layout_hash() -> u64;
        ref fn near_hash() -> u64;
        ref fn origin() -> isize;
        ref fn kernel(direction: Direction) -> Option<&Arc<Kernel>>;
        ref fn settled(direction: Direction, bytes: u64) -> bool;
        ref fn schedule(direction: Direction) -> String;
        ref fn shares_layout(other: &Committed) -> bool;
        ref fn plain_size(buffer: usize, count: u64) -> Option<u64>;
        ref fn make_ranges(direction: Direction) -> ();
        ref fn by_function() -> Result<Option<ByFunction>>;
    }
}

forward! {
    /// Methods of [`CommittedOperation`] for the other crates of the workspace. They give access to
    /// the layout and to its kernels, say how calls are served, and check the arguments of calls.
    CommittedOperationMethods for CommittedOperation {
        ref fn nest() -> &LoopNest<Normal, Value>;
        ref fn kernel(direction: Direction) -> Option<&Arc<Kernel>>;
        ref fn schedule(direction: Direction) -> String;
        ref fn check_direction(direction: Direction) -> Result<()>;
        ref fn whole_values(count: u64, offset: u64, max_bytes: u64) -> Result<Range<u64>>;
    }
}

forward! {
    /// Methods of [`LayoutCopy`] for the other crates of the workspace. They compile the kernel for
    /// the copy if the mode compiles at all, return the operation that combines the values, and say
    /// how calls are served.
    LayoutCopyMethods for LayoutCopy {
        ref fn make() -> bool;
        ref fn operation() -> Option<Op>;
        ref fn period() -> Option<u64>;
        ref fn schedule() -> String;
    }
}

forward! {
    /// Functions and a method of [`Error`] for the other crates of the workspace. They make errors,
    /// and replace the name of the argument that an error is about.
    ErrorMethods for Error {
        fn new(class: ErrorClass, operation: impl Into<Cow<'static, str>>, argument: impl Into<Cow<'static, str>>, value: impl Display, rule: impl Into<Cow<'static, str>>) -> Error;
        fn internal(stage: &'static str, what: impl Into<Cow<'static, str>>) -> Error;
        move fn about(argument: &'static str) -> Error;
    }
}

forward! {
    /// List of all modes, and the name of each [`Mode`], for the other crates of the workspace.
    ModeMethods for Mode {
        const ALL: [Mode; Mode::ALL.len()];
        move fn name() -> &'static str;
    }
}

forward! {
    /// Lists of operations, and the name of each [`Operation`], for the other crates of the
    /// workspace. `all` lists all operations, and `PLAIN` all except the reductions.
    OperationMethods for Operation {
        const PLAIN: [Operation; Operation::PLAIN.len()];
        fn all() -> impl Iterator<Item = Operation>;
        move fn name() -> &'static str;
    }
}

forward! {
    /// List of all values of [`Op`], and its methods for the other crates of the workspace. They
    /// return the names of an operation, convert between an operation and the value of its handle
    /// in MPI's standard ABI, and say whether an operation is defined for a named type and whether
    /// its operands are pairs of a value and an index.
    OpMethods for Op {
        const ALL: [Op; Op::ALL.len()];
        fn from_abi(value: u64) -> Option<Op>;
        move fn takes(named: Named) -> bool;
        move fn name() -> &'static str;
        move fn mpi_name() -> String;
        move fn abi_value() -> u32;
        move fn is_location() -> bool;
    }
}

impl Sealed for Segments<'_> {}

/// Methods of [`Segments`] for the other crates of the workspace. They list the segments in other
/// ways than the public methods: into memory that need not be initialized, from a packed byte on,
/// or by a cursor.
///
/// The macro `forward` cannot declare this trait, because the trait has a lifetime parameter.
pub trait SegmentsMethods<'l>: Sealed {
    fn new(nest: &'l LoopNest<Normal>, runs: &'l Runs, count: u64, origin: i64) -> Result<Segments<'l>>;
    fn runs(&self) -> &'l Runs;
    fn fill_uninit<'o>(&self, index: u64, out: &'o mut [MaybeUninit<Segment>]) -> Result<&'o mut [Segment]>;
    fn fill_from(&self, offset: u64, out: &mut [Segment]) -> Result<usize>;
    fn fill_from_uninit<'o>(
        &self,
        offset: u64,
        out: &'o mut [MaybeUninit<Segment>],
    ) -> Result<&'o mut [Segment]>;
    fn start(&self, index: u64) -> Result<u64>;
    fn cursor(&self, index: u64) -> Cursor<'l>;
}

impl<'l> SegmentsMethods<'l> for Segments<'l> {
    #[inline]
    fn new(nest: &'l LoopNest<Normal>, runs: &'l Runs, count: u64, origin: i64) -> Result<Segments<'l>> {
        Segments::new(nest, runs, count, origin)
    }

    #[inline]
    fn runs(&self) -> &'l Runs {
        Segments::runs(self)
    }

    #[inline]
    fn fill_uninit<'o>(&self, index: u64, out: &'o mut [MaybeUninit<Segment>]) -> Result<&'o mut [Segment]> {
        Segments::fill_uninit(self, index, out)
    }

    #[inline]
    fn fill_from(&self, offset: u64, out: &mut [Segment]) -> Result<usize> {
        Segments::fill_from(self, offset, out)
    }

    #[inline]
    fn fill_from_uninit<'o>(
        &self,
        offset: u64,
        out: &'o mut [MaybeUninit<Segment>],
    ) -> Result<&'o mut [Segment]> {
        Segments::fill_from_uninit(self, offset, out)
    }

    #[inline]
    fn start(&self, index: u64) -> Result<u64> {
        Segments::start(self, index)
    }

    #[inline]
    fn cursor(&self, index: u64) -> Cursor<'l> {
        Segments::cursor(self, index)
    }
}

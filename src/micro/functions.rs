//! Functions of a family of micro-kernels: one for each instruction set, made from a body that is
//! written once for all instruction sets.
//!
//! A function with enabled target features cannot be generic over these features, so a macro makes
//! one function for each instruction set. A family states only the signature of its functions; each
//! body is a type that implements the trait `Body`.

/// Declares the type of the functions of a family of micro-kernels, and two traits. A type that
/// implements `Body` is the code of a function, generic over the instruction set. Every instruction
/// set implements `Functions`, which returns the function that runs a body with this instruction
/// set.
macro_rules! functions {
    // Implements `Functions` for one instruction set.
    (@of ($isa:ty) ($(#[$feature:meta])?) unsafe $(extern $abi:literal)? fn($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        impl Functions for $isa {
            #[inline(always)]
            fn function<B: Body>() -> Function {
                use $crate::micro::isa::Isa;
                if const { matches!(B::ONE_LENGTH, Some(blocks) if !blocks.has_code(&<$isa>::MADE_FOR)) } {
                    return <$isa>::below::<B>();
                }
                /// Runs the body `B`, compiled for this instruction set.
                ///
                /// # Safety
                /// The caller must fulfil the conditions of [`Body::run`], and the machine must
                /// have the instruction set.
                $(#[$feature])?
                unsafe $(extern $abi)? fn entry<B: Body>($($argument: $type),*) $(-> $result)? {
                    // SAFETY: the caller promises the conditions of `Body::run`, and the machine
                    // has the instructions of `$isa`.
                    unsafe { B::run::<$isa>($($argument),*) }
                }
                entry::<B>
            }

            #[inline(always)]
            fn below<B: Body>() -> Function {
                <<$isa as $crate::micro::isa::Isa>::Below as Functions>::function::<B>()
            }
        }
    };
    ($(#[$doc:meta])* pub type Function = unsafe $(extern $abi:literal)? fn($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;) => {
        $(#[$doc])*
        pub type Function = unsafe $(extern $abi)? fn($($type),*) $(-> $result)?;

        /// Code of a function of this family, written once and generic over the instruction set.
        trait Body {
            /// If the body is made for blocks of one length only, this length and the arrangement
            /// of the blocks; otherwise `None`.
            const ONE_LENGTH: Option<$crate::micro::isa::OneLength> = None;

            /// Moves the blocks that the arguments describe.
            ///
            /// # Safety
            /// The arguments must fulfil the conditions of the family's scalar reference. If this
            /// implementation is made for one length or for one kind of values, the blocks of the
            /// arguments must have this length or these values. The machine must have the
            /// instructions of `I`.
            #[allow(clippy::too_many_arguments, reason = "the signature is the family's")]
            unsafe fn run<I: Functions>($($argument: $type),*) $(-> $result)?;
        }

        /// The functions of one family of micro-kernels that are compiled for one instruction set.
        trait Functions: $crate::micro::isa::Code {
            /// Returns the function that runs the body `B` with this instruction set. If this
            /// instruction set has no code of its own for the blocks of `B`, the function of the
            /// next lower instruction set is returned.
            fn function<B: Body>() -> Function;
            /// Returns the function that runs the body `B` with the next lower instruction set,
            /// such as AVX2 below AVX-512.
            fn below<B: Body>() -> Function;
        }

        $crate::micro::isa::for_each_code!(
            functions(unsafe $(extern $abi)? fn($($argument: $type),*) $(-> $result)?)
        );
    };
}

pub(super) use functions;

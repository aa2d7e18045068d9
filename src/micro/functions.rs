//! Functions of a family: one for each instruction set, made from a body that is written once for
//! all instruction sets.
//!
//! A function with enabled target features cannot be generic over them, so a macro makes one
//! function for each instruction set. A family states only the signature; its bodies are types.

/// Declares the type of a family's functions and two traits. `Body` is what a function does, for
/// any instruction set. `Functions` is implemented by every instruction set, and returns its
/// function for a body.
macro_rules! functions {
    // Implements `Functions` for one instruction set.
    (@of ($isa:ty) ($(#[$feature:meta])?) unsafe $(extern $abi:literal)? fn($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        impl Functions for $isa {
            #[inline(always)]
            fn of<B: Body>() -> Function {
                use $crate::micro::isa::Isa;
                if const { matches!(B::ONE_LENGTH, Some(blocks) if !blocks.has_code(&<$isa>::MADE_FOR)) } {
                    return <$isa>::below::<B>();
                }
                /// Runs the body `B` with this instruction set.
                ///
                /// # Safety
                /// The conditions of [`Body::run`], on a machine that has this instruction set.
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
                <<$isa as $crate::micro::isa::Isa>::Below as Functions>::of::<B>()
            }
        }
    };
    ($(#[$doc:meta])* pub type Function = unsafe $(extern $abi:literal)? fn($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;) => {
        $(#[$doc])*
        pub type Function = unsafe $(extern $abi)? fn($($type),*) $(-> $result)?;

        /// What a function does, written for any instruction set.
        trait Body {
            /// The length and arrangement of the blocks for which the body is made, if it is made
            /// for one length.
            const ONE_LENGTH: Option<$crate::micro::isa::OneLength> = None;

            /// Moves the bytes.
            ///
            /// # Safety
            /// The conditions of the family's scalar reference, for blocks for which the body is
            /// made. The machine must have the instructions of `I`.
            #[allow(clippy::too_many_arguments, reason = "the signature is the family's")]
            unsafe fn run<I: Functions>($($argument: $type),*) $(-> $result)?;
        }

        /// The functions of an instruction set.
        trait Functions: $crate::micro::isa::Code {
            /// Returns the function for body `B`. If this instruction set has no code of its own
            /// for the blocks of `B`, it is the function of the instruction set below.
            fn of<B: Body>() -> Function;
            /// Returns the function for body `B` of the instruction set below this one.
            fn below<B: Body>() -> Function;
        }

        $crate::micro::isa::for_each_code!(
            functions(unsafe $(extern $abi)? fn($($argument: $type),*) $(-> $result)?)
        );
    };
}

pub(super) use functions;

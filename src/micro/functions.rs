//! The functions of a family: for every instruction set one, made of a body that is written once over all of them.
//!
//! A function whose instructions are enabled cannot be generic over them, so a macro makes each; a family states the signature alone, and its bodies
//! are types.

/// Declares the type of a family's functions and, beside it, `Body`, what one does over any instruction set, and `Functions`, by which an instruction
/// set has the function of a body.
macro_rules! functions {
    // One instruction set.
    (@of ($isa:ty) ($(#[$feature:meta])?) unsafe $(extern $abi:literal)? fn($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        impl Functions for $isa {
            #[inline(always)]
            fn of<B: Body>() -> Function {
                use $crate::micro::isa::Isa;
                if const { matches!(B::ONE_LENGTH, Some(blocks) if !blocks.has_code(&<$isa>::MADE_FOR)) } {
                    return <$isa>::below::<B>();
                }
                /// # Safety
                /// As [`Body::run`], on a machine of this instruction set.
                $(#[$feature])?
                unsafe $(extern $abi)? fn entry<B: Body>($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as promised by the caller.
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

        /// What a function does, over any instruction set.
        trait Body {
            /// The blocks of one length that it is made for, where it is made for one.
            const ONE_LENGTH: Option<$crate::micro::isa::OneLength> = None;

            /// Moves the bytes.
            ///
            /// # Safety
            /// As the family's twin, for the blocks that the body is made for; the machine has the instructions of `I`.
            #[allow(clippy::too_many_arguments, reason = "the signature is the family's")]
            unsafe fn run<I: Functions>($($argument: $type),*) $(-> $result)?;
        }

        /// The functions of an instruction set.
        trait Functions: $crate::micro::isa::Code {
            /// Returns the function of a body, or that of the instruction set below where this one has no code for the blocks.
            fn of<B: Body>() -> Function;
            /// Returns that of the instruction set below.
            fn below<B: Body>() -> Function;
        }

        $crate::micro::isa::for_each_code!(
            functions(unsafe $(extern $abi)? fn($($argument: $type),*) $(-> $result)?)
        );
    };
}

pub(super) use functions;

//! Errors of constructor calls: which argument broke which rule.

use crate::error::{Error, ErrorClass, Result};

/// A constructor call, represented by the name that its errors show.
pub(crate) struct ConstructorCall(pub(crate) &'static str);

impl ConstructorCall {
    /// Checks that an argument is not negative. If it is, the error has the class `class`.
    pub(crate) fn not_negative(&self, class: ErrorClass, argument: &'static str, value: i64) -> Result<()> {
        if value < 0 {
            Err(Error::new(class, self.0, argument, value, "must not be negative"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn negative_entry(&self, argument: &str, index: usize, value: i64) -> Error {
        Error::new(ErrorClass::Arg, self.0, format!("{argument}[{index}]"), value, "must not be negative")
    }

    /// Checks that the array `argument`, which has `len` entries, has as many as the array named
    /// `first`, which has `expected`.
    pub(crate) fn same_length(
        &self,
        argument: &'static str,
        len: usize,
        first: &str,
        expected: usize,
    ) -> Result<()> {
        if len != expected {
            let rule = format!("must have as many entries as {first}, which has {expected}");
            return Err(Error::new(ErrorClass::Arg, self.0, argument, format!("{len} entries"), rule));
        }
        Ok(())
    }

    pub(crate) fn overflow(&self, argument: impl Into<std::borrow::Cow<'static, str>>, value: i64) -> Error {
        Error::new(
            ErrorClass::ValueTooLarge,
            self.0,
            argument,
            value,
            "a displacement, size or bound of the type would not fit in 64 bits",
        )
    }
}

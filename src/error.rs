//! Errors: which operation was called, which argument broke which rule, and with what value.
//!
//! Every error has an MPI error class (MPI 5.0, section 9.4), so that the C interfaces can return
//! the class unchanged. A call that fails has no effect, unless its documentation says otherwise:
//! no object is half built and no buffer is partly written.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// `std::result::Result` with ddtc's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// MPI error classes that ddtc raises. Values are those of the MPI 5.0 standard ABI.
///
/// ```
/// use ddtc::{Datatype, ErrorClass};
///
/// let refused = Datatype::contiguous(-1, &Datatype::of::<f64>()).unwrap_err();
/// assert_eq!((refused.class(), refused.class() as i32), (ErrorClass::Count, 2));
/// ```
// Some classes concern things that only ddtc's C libraries offer to programs, such as info objects,
// attributes and the tool interface. They are hidden from the documentation of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Invalid buffer pointer.
    Buffer = 1,
    /// Invalid count argument.
    Count = 2,
    /// Invalid datatype argument.
    Type = 3,
    /// Invalid reduction operation.
    Op = 10,
    /// Invalid argument of some other kind.
    Arg = 13,
    /// Data was longer than the space for it.
    Truncate = 15,
    /// Error that none of the other classes describes.
    Other = 16,
    /// Internal error: always a fault of ddtc.
    Intern = 17,
    /// A value cannot be represented on the other side of a conversion.
    Conversion = 25,
    /// Invalid info key.
    #[doc(hidden)]
    InfoKey = 31,
    /// No such info key.
    #[doc(hidden)]
    InfoNoKey = 32,
    /// Invalid info value.
    #[doc(hidden)]
    InfoValue = 33,
    /// Invalid info object.
    #[doc(hidden)]
    Info = 34,
    /// Invalid attribute key.
    #[doc(hidden)]
    Keyval = 36,
    /// Out of memory.
    NoMem = 39,
    /// Data representation that is not known.
    #[doc(hidden)]
    UnsupportedDatarep = 54,
    /// Operation that this build does not offer.
    Unsupported = 55,
    /// A value does not fit the type of the argument that must carry it.
    ValueTooLarge = 59,
    /// Invalid error handler.
    #[doc(hidden)]
    Errhandler = 61,
    /// Tool interface: a resource is not available now.
    #[doc(hidden)]
    ToolNotAccessible = 1002,
    /// Tool interface: not initialized.
    #[doc(hidden)]
    ToolNotInitialized = 1003,
    /// Tool interface: not offered.
    #[doc(hidden)]
    ToolNotSupported = 1004,
    /// Tool interface: invalid argument.
    #[doc(hidden)]
    ToolInvalid = 1006,
    /// Tool interface: no such index.
    #[doc(hidden)]
    ToolInvalidIndex = 1007,
    /// Tool interface: no such session.
    #[doc(hidden)]
    ToolInvalidSession = 1009,
    /// Tool interface: no such handle.
    #[doc(hidden)]
    ToolInvalidHandle = 1010,
    /// Tool interface: no such name.
    #[doc(hidden)]
    ToolInvalidName = 1011,
    /// Tool interface: the variable cannot be written or reset.
    #[doc(hidden)]
    ToolNoWrite = 1016,
    /// Tool interface: the variable cannot be started or stopped.
    #[doc(hidden)]
    ToolNoStartStop = 1017,
}

/// The reason why a call failed: the operation, the argument, its value, and the rule that it
/// breaks.
///
/// Each part has a method. `Display` writes the operation, the argument with its value, and the
/// rule as one sentence. It leaves out the class and, if no single argument was wrong, argument and
/// value. An error leaves nothing behind: no object is half built and no buffer is partly written,
/// unless the method that returned it says otherwise.
///
/// ```
/// use ddtc::{Datatype, ErrorClass};
///
/// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<f64>())?)?;
/// let refused = column.pack(&[0; 100], 0, 1, &mut [0; 32]).unwrap_err();
/// assert_eq!(refused.class(), ErrorClass::Buffer);
/// assert_eq!((refused.operation(), refused.argument(), refused.value()), ("pack", "src.len()", "100"));
/// # Ok::<(), ddtc::Error>(())
/// ```
// The parts are boxed so that a `Result` stays small, which matters for calls that succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    class: ErrorClass,
    operation: Cow<'static, str>,
    argument: Cow<'static, str>,
    value: Cow<'static, str>,
    rule: Cow<'static, str>,
    source: Option<Source>,
}

/// Error that caused one of ours. Two sources are equal if their messages are equal.
#[derive(Clone, Debug)]
struct Source(Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Source {}

impl Error {
    /// Returns an error of `class`: `operation` was called, `argument` had `value`, and `rule` says
    /// what must hold.
    pub(crate) fn new(
        class: ErrorClass,
        operation: impl Into<Cow<'static, str>>,
        argument: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        rule: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Parts {
            class,
            operation: operation.into(),
            argument: argument.into(),
            value: Cow::Owned(value.to_string()),
            rule: rule.into(),
            source: None,
        }))
    }

    /// Attaches the error that caused this one, which [`std::error::Error::source`] returns.
    #[must_use]
    pub(crate) fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Source(Arc::new(source)));
        self
    }

    /// Returns an error of class `Intern`, for a fault of ddtc itself that a check in `stage`
    /// found.
    pub(crate) fn internal(stage: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorClass::Intern, stage, "", "", what)
    }

    /// Replaces the name of the refused argument by `argument`, for a call that has two arguments
    /// of the same kind.
    #[must_use]
    pub(crate) fn about(mut self, argument: &'static str) -> Self {
        self.0.argument = Cow::Borrowed(argument);
        self
    }

    /// Returns the MPI error class.
    ///
    /// ```
    /// use ddtc::{Datatype, ErrorClass};
    ///
    /// let refused = Datatype::vector(-1, 2, 4, &Datatype::of::<f64>()).unwrap_err();
    /// assert_eq!(refused.class(), ErrorClass::Count);
    /// ```
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Returns the name of the constructor or call that failed.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let refused = Datatype::vector(-1, 2, 4, &Datatype::of::<f64>()).unwrap_err();
    /// assert_eq!(refused.operation(), "vector");
    /// ```
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// Returns the name of the argument that breaks the rule; empty if no single argument does.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let refused = Datatype::vector(-1, 2, 4, &Datatype::of::<f64>()).unwrap_err();
    /// assert_eq!(refused.argument(), "count");
    /// ```
    pub fn argument(&self) -> &str {
        &self.0.argument
    }

    /// Returns the offending value as text.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let refused = Datatype::vector(-1, 2, 4, &Datatype::of::<f64>()).unwrap_err();
    /// assert_eq!(refused.value(), "-1");
    /// ```
    pub fn value(&self) -> &str {
        &self.0.value
    }

    /// Returns the rule that the value breaks.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let refused = Datatype::vector(-1, 2, 4, &Datatype::of::<f64>()).unwrap_err();
    /// assert!(!refused.rule().is_empty());
    /// assert!(refused.to_string().ends_with(refused.rule()));
    /// ```
    pub fn rule(&self) -> &str {
        &self.0.rule
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.0.operation)?;
        if !self.0.argument.is_empty() {
            write!(f, "{} = {}: ", self.0.argument, self.0.value)?;
        }
        f.write_str(&self.0.rule)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &*source.0 as &(dyn std::error::Error + 'static))
    }
}

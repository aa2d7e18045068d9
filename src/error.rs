//! Errors: what was called, which argument broke which rule, and with what value.
//!
//! Every error maps to an MPI error class (MPI 5.0, section 9.4) so that the C surfaces can hand it on unchanged. An error
//! leaves nothing behind: no object is half built and no buffer partly written.

use std::borrow::Cow;
use std::fmt;

/// `std::result::Result` with ddtc's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// MPI error classes that ddtc raises. Values are those of the MPI 5.0 standard ABI.
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
    /// Known error not in this list.
    Other = 16,
    /// Internal error: always a fault of ddtc.
    Intern = 17,
    /// A value cannot be represented on the other side of a conversion.
    Conversion = 25,
    /// Invalid info key.
    InfoKey = 31,
    /// No such info key.
    InfoNoKey = 32,
    /// Invalid info value.
    InfoValue = 33,
    /// Invalid info object.
    Info = 34,
    /// Invalid attribute key.
    Keyval = 36,
    /// Out of memory.
    NoMem = 39,
    /// Data representation that is not known.
    UnsupportedDatarep = 54,
    /// Operation that this build does not offer.
    Unsupported = 55,
    /// A value does not fit the type of the argument that must carry it.
    ValueTooLarge = 59,
    /// Invalid error handler.
    Errhandler = 61,
    /// Tool interface: a resource cannot be had now.
    ToolNotAccessible = 1002,
    /// Tool interface: not initialized.
    ToolNotInitialized = 1003,
    /// Tool interface: not offered.
    ToolNotSupported = 1004,
    /// Tool interface: invalid argument.
    ToolInvalid = 1006,
    /// Tool interface: no such index.
    ToolInvalidIndex = 1007,
    /// Tool interface: no such session.
    ToolInvalidSession = 1009,
    /// Tool interface: no such handle.
    ToolInvalidHandle = 1010,
    /// Tool interface: no such name.
    ToolInvalidName = 1011,
    /// Tool interface: the variable cannot be written or reset.
    ToolNoWrite = 1016,
    /// Tool interface: the variable cannot be started or stopped.
    ToolNoStartStop = 1017,
}

/// One broken rule. A pointer, so that results stay small where nothing fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    class: ErrorClass,
    operation: Cow<'static, str>,
    argument: Cow<'static, str>,
    value: Cow<'static, str>,
    rule: Cow<'static, str>,
}

impl Error {
    /// Returns an error of `class`: `operation` was called, `argument` had `value`, and `rule` says what must hold.
    pub fn new(
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
        }))
    }

    /// Returns a fault of ddtc itself, found by one of its own checks in `stage`.
    pub fn internal(stage: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorClass::Intern, stage, "", "", what)
    }

    /// Names `argument` as the refused one: for a call that has two of its kind.
    #[must_use]
    pub fn about(mut self, argument: &'static str) -> Self {
        self.0.argument = Cow::Borrowed(argument);
        self
    }

    /// Returns the MPI error class.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Returns the constructor or call that refused.
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// Returns the argument that broke the rule; empty where no single argument did.
    pub fn argument(&self) -> &str {
        &self.0.argument
    }

    /// Returns the offending value as text.
    pub fn value(&self) -> &str {
        &self.0.value
    }

    /// Returns the rule that must hold.
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

impl std::error::Error for Error {}

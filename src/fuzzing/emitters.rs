//! Choice of the emitters that generate code for plans in a check.

use crate::code::emit::Emitter;

/// Emitters with which a check generates code.
#[derive(Clone, Copy)]
pub(super) enum Emitters<'a> {
    /// No emitter: plans are only evaluated.
    None,
    /// The template emitter if the target has one, and the general emitter, which is Cranelift's,
    /// if it is given.
    All(Option<&'a dyn Emitter>),
}

impl<'a> Emitters<'a> {
    /// Returns the emitters for a target, given its template emitter if it has one.
    pub(super) fn with_templates(
        self,
        templates: Option<&'a dyn Emitter>,
    ) -> impl Iterator<Item = &'a dyn Emitter> {
        let (templates, general) = match self {
            Emitters::None => (None, None),
            Emitters::All(general) => (templates, general),
        };
        templates.into_iter().chain(general)
    }
}

//! By which emitters code is made of plans that were evaluated.

use crate::code::emit::Emitter;

/// Emitters of a check.
#[derive(Clone, Copy)]
pub(super) enum Emitters<'a> {
    /// None: plans are evaluated alone.
    None,
    /// Templates where the target has them, and the general one where it is compiled in.
    All(Option<&'a dyn Emitter>),
}

impl<'a> Emitters<'a> {
    /// Returns those for a target whose templates these are.
    pub(super) fn of(self, templates: Option<&'a dyn Emitter>) -> impl Iterator<Item = &'a dyn Emitter> {
        let (templates, general) = match self {
            Emitters::None => (None, None),
            Emitters::All(general) => (templates, general),
        };
        templates.into_iter().chain(general)
    }
}

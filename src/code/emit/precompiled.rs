//! Which plans have precompiled code: a lone call, or a counted loop around one.

use crate::code::kernel::{Code, Counted, Form};
use crate::kind::Direction;
use crate::micro::{Argument, Role, strided};
use crate::nest::Quantity;
use crate::plan::{Body, Legal, Moving, Offsets, Op, Plan};

/// Returns the precompiled code for `plan`, whose target this machine runs.
pub(super) fn code(plan: &Plan<Legal>) -> Option<Code> {
    let [Op::Call { call, .. }, outer @ ..] = plan.ops() else { return None };
    let parameters = call.callee().parameters();
    if !(5..=6).contains(&parameters.len()) || parameters[2..].iter().any(|role| role.is_address()) {
        return None;
    }
    let only = |start| Body { start, len: 1 };
    let packed_first = parameters[0] == Role::Packed;
    let counted = parameters.iter().position(|&role| call.carries_count(role));
    let form = match (outer, counted) {
        ([], Some(at)) if plan.root() == only(0) && (at == 2 || at == 5) => {
            let one = Some(Argument::Number(Quantity::fixed(1)));
            if at == 5 && *call.callee().family() == strided::FAMILY && call.argument(Role::Iterations) == one
            {
                let (pack, level) = (plan.direction() == Direction::Pack, call.callee().level());
                Form::Contiguous { pack, level }
            } else {
                let counted = match (parameters.len(), at) {
                    (5, _) => Counted::ThirdOfFive,
                    (_, 2) => Counted::ThirdOfSix,
                    _ => Counted::SixthOfSix,
                };
                Form::Lone { packed_first, counted }
            }
        }
        ([Op::Loop { at: Offsets::ZERO, trip: Quantity { per_count: true, k }, step, body, .. }], None)
            if parameters.len() == 6
                && *body == only(0)
                && plan.root() == only(1)
                && Moving::from_step(*step) == Some(Moving::Packed) =>
        {
            Form::Repeated { packed_first, single: *k == 1 }
        }
        _ => return None,
    };
    Some(form.code())
}

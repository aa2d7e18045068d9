//! Selection of the plans that have precompiled code: some that are one call, or one counted loop
//! around a call.

use crate::code::kernel::{Code, Counted, Form};
use crate::kind::Direction;
use crate::micro::{Argument, Role, strided};
use crate::nest::Quantity;
use crate::plan::{Body, Legal, Moving, Offsets, Op, Plan};

/// Returns the precompiled code for `plan`, or none if there is none. This machine must run the
/// target of the plan.
pub(super) fn code(plan: &Plan<Legal>) -> Option<Code> {
    // The plan must begin with a call. Precompiled code passes five or six arguments, of which only
    // the first two are addresses.
    let [Op::Call { call, .. }, outer @ ..] = plan.ops() else { return None };
    let parameters = call.callee().parameters();
    if !(5..=6).contains(&parameters.len()) || parameters[2..].iter().any(|role| role.is_address()) {
        return None;
    }
    let only = |start| Body { start, len: 1 };
    // Without a loop, precompiled code exists if an argument carries the count and the first such
    // argument is the third or the sixth. A single block whose length carries the count is copied
    // without a call. With a loop around a call of six parameters, the trip of the loop must carry
    // the count and no argument may. The loop must be at offset zero and advance on the packed
    // side.
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

//! Selection of the plans for which there is precompiled code. They are some of the plans that
//! consist of one call of a micro-kernel, or of one counted loop around such a call.

use crate::code::kernel::{Code, Counted, Form};
use crate::kind::Direction;
use crate::micro::{Argument, Role, strided};
use crate::nest::Quantity;
use crate::plan::{Body, Legal, Moving, Offsets, Plan, PlanOp};

/// Returns the precompiled code for `plan`, or none if there is none. This machine must run the
/// target of the plan.
pub(super) fn code(plan: &Plan<Legal>) -> Option<Code> {
    // The first operation of the plan must be a call with five or six arguments, of which only the
    // first two are addresses. Precompiled code passes no other arguments.
    let [PlanOp::Call { call, .. }, outer @ ..] = plan.ops() else { return None };
    let parameters = call.callee().parameters();
    if !(5..=6).contains(&parameters.len()) || parameters[2..].iter().any(|role| role.is_address()) {
        return None;
    }
    let only = |start| Body { start, len: 1 };
    // A number carries the count if it is multiplied by the instance count. For a call without a
    // loop, there is precompiled code if at least one argument carries the count and the first such
    // argument is the third or the sixth. If the call copies a single block whose length carries
    // the count, the precompiled code copies the block itself, without a call.
    //
    // For a loop around a call, the call must have six parameters. The trip of the loop must carry
    // the count, and no argument may. The loop must be at offset zero and advance on the packed
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
        (
            [PlanOp::Loop { at: Offsets::ZERO, trip: Quantity { per_count: true, k }, step, body, .. }],
            None,
        ) if parameters.len() == 6
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

//! Emission of permutations with AVX-512. A permutation moves 64 packed bytes, as words of 4 or 8
//! bytes. In user memory, these words lie in one or two windows of 64 bytes.
//!
//! If all words lie within 64 bytes of user memory, one window suffices. When packing, the first
//! window begins with the lowest word and the second ends with the highest word, so nothing before
//! the lowest or after the highest word is read. When unpacking, the second window directly follows
//! the first. Stores under masks leave all places unchanged at which there is no word.
//!
//! The indices and masks of a permutation are loaded from constants in the code. They depend on the
//! places of the words. A *form* is a set of such places ([`Words`]); the indices and masks of up
//! to three forms stay in registers, also across the turns of a loop.

use super::inst::{Inst, Mask, Mem, Piece, Reg, Vector, Width};
use super::{Access, Function, Pointers};
use crate::kind::Direction;
use crate::plan::{Body, PlanOp, Words};

/// Vector register that receives the words of one window when unpacking, before they are stored.
const WINDOW: Vector = Vector(7);

/// Contents of the registers for constants: the indices and masks of both windows, for up to three
/// forms. A form is the places of the words of one permutation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Constants {
    forms: [Option<Words>; 3],
    /// Index of the form whose registers are overwritten next, when a form is needed that is not in
    /// registers.
    oldest: u8,
}

impl Constants {
    /// Returns the registers that hold the constants of the form with index `form`. A form is the
    /// set of places of the words that a permutation moves. These words lie in one or two windows,
    /// which are areas of 64 bytes of user memory. The result has, for each of the two windows, the
    /// vector register with the indices of the words and the mask register.
    fn registers(form: usize) -> [(Vector, Mask); 2] {
        [1, 2].map(|window| 2 * form as u8 + window).map(|number| (Vector(number), Mask(number)))
    }
}

/// Number of bytes of a window.
const BYTES: u32 = Words::BYTES;

/// Indices of words, one for each word of a window of 64 bytes. If the words have 8 bytes, only the
/// first eight indices are used.
pub(super) type Indices = [u8; 16];

/// Returns, for packing, which word each packed word is taken from: its index among the words of
/// both windows, where the words of the first window come first.
pub(super) fn gathered(words: &Words) -> Indices {
    let each = (BYTES / words.unit()) as u8;
    let second = (words.span() / words.unit()) as u8 - each;
    let mut indices = Indices::default();
    for (index, &place) in indices.iter_mut().zip(words.places()) {
        *index = if place < each { place } else { place - second + each };
    }
    indices
}

/// Returns, for unpacking into window `window` of user memory, the index of the packed word that
/// each place of the window receives, and a mask of the places that receive a word.
pub(super) fn scattered(words: &Words, window: u8) -> (Indices, u16) {
    let each = (BYTES / words.unit()) as u8;
    let (mut indices, mut mask) = (Indices::default(), 0);
    for (packed, &place) in words.places().iter().enumerate() {
        if place / each == window {
            indices[usize::from(place % each)] = packed as u8;
            mask |= 1 << (place % each);
        }
    }
    (indices, mask)
}

fn width(words: &Words) -> Width {
    if words.unit() == 4 { Width::W4 } else { Width::W8 }
}

impl Function<'_> {
    /// Emits one permutation of `words`. The argument `at` has the offsets of the lowest word and
    /// of the packed bytes.
    pub(super) fn permute(&mut self, base: Pointers, at: Access<'_>, words: &Words) {
        self.wide = true;
        let [first, second] = self.constants(*words);
        let (width, two) = (width(words), words.span() > BYTES);
        let mut user = self.placed(base.user, at.user, Reg::R10);
        if user.disp.checked_add(BYTES as i32).is_none() {
            self.code.push(Inst::Address(Reg::R10, user));
            user = Mem { base: Reg::R10, disp: 0 };
        }
        let packed = self.reach(base.packed, at.packed, Reg::R11);
        let window = |bytes: u32| Mem { disp: user.disp + bytes as i32, ..user };
        match self.plan.direction() {
            Direction::Pack => {
                self.code.push(Inst::Take(Piece::B64, user));
                self.code.push(match two {
                    true => Inst::PickTwo(width, first.0, window(words.span() - BYTES)),
                    false => Inst::Pick(width, Vector(0), first.0),
                });
                self.code.push(Inst::Put(Piece::B64, packed));
            }
            Direction::Unpack => {
                self.code.push(Inst::Take(Piece::B64, packed));
                for (at, (indices, mask)) in
                    [(0, first), (BYTES, second)].into_iter().take(1 + usize::from(two))
                {
                    self.code.push(Inst::Pick(width, WINDOW, indices));
                    self.code.push(Inst::PutMasked(width, window(at), mask, WINDOW));
                }
            }
        }
    }

    /// Prepares the constants for a loop over `body`. If there are enough registers for the
    /// constants of all its permutations, the constants are loaded before the loop and stay in
    /// registers. Otherwise the contents of these registers count as unknown at the start of an
    /// iteration, because an earlier iteration may have changed them.
    pub(super) fn constants_of(&mut self, body: Body) {
        match self.forms(body) {
            Some(forms) => {
                if !forms.iter().all(|form| self.known.forms.contains(&Some(*form))) {
                    self.known = Constants::default();
                }
                forms.iter().for_each(|form| _ = self.constants(*form));
            }
            None => self.known = Constants::default(),
        }
    }

    /// Returns the forms (places of the words) of all permutations in `body` and in the bodies
    /// inside it. The result is `None` if there are not enough registers for so many forms, or if
    /// there is a call, because a call may overwrite these registers.
    fn forms(&self, body: Body) -> Option<Vec<Words>> {
        let (mut bodies, mut forms) = (vec![body], Vec::new());
        while let Some(body) = bodies.pop() {
            for op in self.plan.body(body) {
                match op {
                    PlanOp::Call { .. } => return None,
                    PlanOp::Permute { words, .. } if !forms.contains(words) => forms.push(*words),
                    PlanOp::Guard { then, otherwise, .. } => bodies.extend([*then, *otherwise]),
                    PlanOp::Loop { .. }
                    | PlanOp::Table { .. }
                    | PlanOp::Move { .. }
                    | PlanOp::Permute { .. } => {
                        bodies.extend(op.body());
                    }
                }
            }
        }
        (forms.len() <= self.known.forms.len()).then_some(forms)
    }

    /// Returns the registers with the indices and masks of `words`. If no registers hold these yet,
    /// code is emitted that loads them, by way of `rax`.
    fn constants(&mut self, words: Words) -> [(Vector, Mask); 2] {
        if let Some(form) = self.known.forms.iter().position(|known| *known == Some(words)) {
            return Constants::registers(form);
        }
        let form = usize::from(self.known.oldest);
        self.known.forms[form] = Some(words);
        self.known.oldest = (self.known.oldest + 1) % self.known.forms.len() as u8;
        let (registers, width) = (Constants::registers(form), width(&words));
        if self.plan.direction() == Direction::Pack {
            self.indices(gathered(&words), width, registers[0].0);
            return registers;
        }
        for (window, (vector, mask)) in
            registers.into_iter().enumerate().take(1 + usize::from(words.span() > BYTES))
        {
            let (indices, bits) = scattered(&words, window as u8);
            self.indices(indices, width, vector);
            self.code.extend([Inst::Set(Reg::RAX, bits.into()), Inst::SetMask(mask)]);
        }
        registers
    }

    /// Emits code that loads `indices` into the vector register `to`, each index as a word of
    /// `width`.
    fn indices(&mut self, indices: Indices, width: Width, to: Vector) {
        let [low, high] = [0, 8].map(|from| {
            let half = std::array::from_fn(|i| indices[from + i]);
            Inst::Set(Reg::RAX, i64::from_le_bytes(half))
        });
        self.code.extend([low, Inst::SetLow(to)]);
        if width == Width::W4 {
            self.code.extend([high, Inst::SetHigh(to)]);
        }
        self.code.push(Inst::Spread(width, to));
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, gathered, scattered};
    use crate::plan::Words;

    /// Returns words of `unit` bytes at pseudo-random places, which are all different, or `None` if
    /// [`Words::new`] refuses them. The words have 64 bytes in total.
    fn words(unit: u32, seed: u64) -> Option<Words> {
        let (each, most) = ((BYTES / unit) as usize, u64::from(Words::MAX_SPAN / unit));
        let mut left: Vec<i64> = (0..most as i64).map(|place| place * i64::from(unit)).collect();
        let mut state = seed;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize
        };
        let offsets: Vec<i64> = (0..each).map(|_| left.swap_remove(draw(left.len() as u64))).collect();
        Words::new(unit, &offsets).map(|(_, words)| words)
    }

    #[test]
    fn windows_have_all_words_and_nothing_else() {
        for (unit, seed) in [4, 8].into_iter().flat_map(|unit| (0..200).map(move |seed| (unit, seed))) {
            let words = words(unit, seed).unwrap();
            let (each, span) = (BYTES / unit, words.span() / unit);
            // Returns the place in user memory of the word that has the given index in the two
            // windows.
            let window = |index: u32| if index < each { index } else { span - each + (index - each) };
            let indices = gathered(&words);
            let packed: Vec<u32> = indices[..each as usize].iter().map(|&i| window(i.into())).collect();
            assert_eq!(packed, words.places().iter().map(|&p| p.into()).collect::<Vec<u32>>());
            assert!(indices.iter().all(|&i| window(i.into()) < span));
            let mut user = vec![None; 2 * each as usize];
            for window in [0, 1] {
                let (indices, mask) = scattered(&words, window as u8);
                assert_eq!(u32::from(mask) >> each, 0);
                for lane in (0..each).filter(|lane| mask & 1 << lane != 0) {
                    user[(window * each + lane) as usize] = Some(indices[lane as usize]);
                }
            }
            for (place, from) in user.into_iter().enumerate() {
                let packed = words.places().iter().position(|&p| usize::from(p) == place);
                assert_eq!(from.map(usize::from), packed, "{words:?}, place {place}");
            }
        }
    }
}

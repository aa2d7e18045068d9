//! Generated lists: a compact notation for the long argument arrays of a corpus.
//!
//! `@form(arguments)` may stand wherever the text notation of datatypes takes a list of integers,
//! and means the list itself. Without it, 10^5 random displacements would take megabytes of text.
//! What a form means depends on its text alone, and is the same on every machine and in every
//! release: it uses SplitMix64 and integer arithmetic only, and a test fixes its results.
//!
//! | form | elements |
//! |---|---|
//! | `@fill(n, value)` | `value`, n times |
//! | `@range(n, start, step)` | `start + i*step` |
//! | `@uniform(n, low, high, seed)` | random in `low..=high` |
//! | `@sample(n, of, seed)` | n distinct random numbers of `0..of`, in random order |
//! | `@scale(list, factor)` | `factor` times each element |
//! | `@sum(list, ...)` | element i: sum of the elements before i of all lists; element 0 is 0 |
//!
//! Where a form takes a list, the list is a literal such as `[1,2,3]` or another form.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::syntax::NOTATION;
use crate::error::{Error, Result};
use crate::lexer::Lexer;

/// Maximum number of elements that a form may make. A corpus file is untrusted input like any
/// other.
const MAX_LENGTH: i64 = 1 << 24;
/// Maximum nesting depth of forms.
const MAX_DEPTH: u32 = 16;

/// Random number generator SplitMix64 by Sebastiano Vigna: one chain of multiplications, exclusive
/// ors and shifts per number.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Returns a generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number of `0..bound`, by a multiplication and a shift, with a bias of less
    /// than bound / 2^64. `bound` must not be 0: the result would be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

/// Returns the elements of the list `text`, which is a form or a literal list.
///
/// # Errors
/// Class `Arg` if `text` is not a list, if a number is out of range, if a form would make more than
/// 2^24 elements, or if forms are nested more than 16 deep.
pub fn list(text: &str) -> Result<Vec<i64>> {
    let mut lists = Lists(Lexer::new(&NOTATION, text, 0));
    let list = lists.list(0)?;
    lists.0.end()?;
    Ok(list)
}

/// Returns `text` with every form replaced by its literal list. A text without a form is returned
/// as it is.
///
/// # Errors
/// As [`list`].
pub fn expand(text: &str) -> Result<Cow<'_, str>> {
    if !text.contains('@') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::new();
    let mut done = 0;
    while let Some(offset) = text[done..].find('@') {
        out.push_str(&text[done..done + offset]);
        let mut lists = Lists(Lexer::new(&NOTATION, text, done + offset));
        let list = lists.list(0)?;
        done = lists.0.after();
        out.push('[');
        for (i, value) in list.into_iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(out, "{comma}{value}");
        }
        out.push(']');
    }
    out.push_str(&text[done..]);
    Ok(Cow::Owned(out))
}

/// Returns the name and the integer arguments of a form that stands for a whole type, such as
/// `@dag(40)`, or `None` if `text` is something else.
pub(super) fn whole_form(text: &str) -> Option<(&str, Vec<i64>)> {
    let (name, rest) = text.trim().strip_prefix('@')?.split_once('(')?;
    let arguments = rest.strip_suffix(')')?;
    let numbers: Option<Vec<i64>> = arguments.split(',').map(|a| a.trim().parse().ok()).collect();
    Some((name, numbers?))
}

/// Parser of lists and forms.
struct Lists<'a>(Lexer<'a>);

impl Lists<'_> {
    fn fault(&self, rule: &'static str) -> Error {
        self.0.fault(self.0.start(), rule)
    }

    fn comma_number(&mut self) -> Result<i64> {
        self.0.expect(",")?;
        self.0.signed()
    }

    fn length(&mut self) -> Result<usize> {
        let start = self.0.start();
        let n = self.0.signed()?;
        if !(0..=MAX_LENGTH).contains(&n) {
            return Err(self.0.fault(start, "a list has 0 to 2^24 elements"));
        }
        Ok(n as usize)
    }

    fn seed(&mut self) -> Result<SplitMix64> {
        Ok(SplitMix64::new(self.comma_number()? as u64))
    }

    fn list(&mut self, depth: u32) -> Result<Vec<i64>> {
        if self.0.eat("[") {
            return self.literal();
        }
        if !self.0.eat("@") {
            return self.0.wanted("a list `[..]` or a form `@name(..)`");
        }
        if depth == MAX_DEPTH {
            return Err(self.fault("forms nest at most 16 deep"));
        }
        let start = self.0.start();
        let name = self.0.take().text();
        self.0.expect("(")?;
        let list = match name {
            "fill" => {
                let n = self.length()?;
                vec![self.comma_number()?; n]
            }
            "range" => {
                let n = self.length()?;
                let (first, step) = (self.comma_number()?, self.comma_number()?);
                let value = |i: usize| step.checked_mul(i as i64)?.checked_add(first);
                self.checked((0..n).map(value))?
            }
            "uniform" => self.uniform()?,
            "sample" => self.sample()?,
            "scale" => {
                let list = self.list(depth + 1)?;
                let factor = self.comma_number()?;
                self.checked(list.into_iter().map(|v| v.checked_mul(factor)))?
            }
            "sum" => self.sum(depth)?,
            _ => {
                let rule = "expected `fill`, `range`, `uniform`, `sample`, `scale` or `sum`";
                return Err(self.0.fault(start, rule));
            }
        };
        self.0.expect(")")?;
        Ok(list)
    }

    fn literal(&mut self) -> Result<Vec<i64>> {
        let mut list = Vec::new();
        if self.0.eat("]") {
            return Ok(list);
        }
        loop {
            list.push(self.0.signed()?);
            if self.0.eat("]") {
                return Ok(list);
            }
            if !self.0.eat(",") {
                return self.0.wanted("`,` or `]`");
            }
        }
    }

    fn checked(&self, values: impl Iterator<Item = Option<i64>>) -> Result<Vec<i64>> {
        values.collect::<Option<_>>().ok_or_else(|| self.fault("must fit 64 bits"))
    }

    fn uniform(&mut self) -> Result<Vec<i64>> {
        let n = self.length()?;
        let (low, high) = (self.comma_number()?, self.comma_number()?);
        let width = high.checked_sub(low).and_then(|w| w.checked_add(1)).filter(|&w| w > 0);
        let width = width.ok_or_else(|| self.fault("must be at least low"))? as u64;
        let mut random = self.seed()?;
        Ok((0..n).map(|_| low + random.below(width) as i64).collect())
    }

    /// Returns the first n elements of a Fisher-Yates shuffle of `0..of`.
    fn sample(&mut self) -> Result<Vec<i64>> {
        let n = self.length()?;
        self.0.expect(",")?;
        let of = self.length()?;
        if n > of {
            return Err(self.fault("must be at least n"));
        }
        let mut random = self.seed()?;
        let mut list: Vec<i64> = (0..of as i64).collect();
        for i in 0..n {
            let j = i + random.below((of - i) as u64) as usize;
            list.swap(i, j);
        }
        list.truncate(n);
        Ok(list)
    }

    fn sum(&mut self, depth: u32) -> Result<Vec<i64>> {
        let mut total = self.list(depth + 1)?;
        while self.0.eat(",") {
            let list = self.list(depth + 1)?;
            if list.len() != total.len() {
                return Err(self.fault("all lists must be of one length"));
            }
            total = self.checked(total.iter().zip(list).map(|(a, b)| a.checked_add(b)))?;
        }
        let mut before = 0i64;
        for value in &mut total {
            let next = before.checked_add(*value).ok_or_else(|| self.fault("must fit 64 bits"))?;
            *value = std::mem::replace(&mut before, next);
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_is_the_published_generator() {
        // First three numbers for seed 1234567, from a test vector of the author of SplitMix64.
        let mut random = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected, std::array::from_fn(|_| random.draw()));
    }

    #[test]
    fn forms_by_hand() {
        assert_eq!(list("[]").unwrap(), [0i64; 0]);
        assert_eq!(list(" [1, -2 ,3] ").unwrap(), [1, -2, 3]);
        assert_eq!(list("@fill(3, 7)").unwrap(), [7, 7, 7]);
        assert_eq!(list("@range(4, 10, -5)").unwrap(), [10, 5, 0, -5]);
        assert_eq!(list("@scale([1,2,3], 4)").unwrap(), [4, 8, 12]);
        assert_eq!(list("@sum([1,2,3])").unwrap(), [0, 1, 3]);
        assert_eq!(list("@sum([1,2,3], @fill(3,10))").unwrap(), [0, 11, 23]);
        assert_eq!(expand("f([1], @range(2,0,1), @fill(1,9))").unwrap(), "f([1], [0,1], [9])");
    }

    #[test]
    fn random_forms_are_pinned() {
        // These numbers were computed by a second implementation.
        assert_eq!(list("@uniform(8, 2, 6, 1)").unwrap(), [4, 5, 6, 4, 4, 5, 6, 4]);
        assert_eq!(list("@sample(6, 10, 1)").unwrap(), [5, 7, 9, 6, 3, 8]);
        let sample = list("@sample(11797, 834917, 45)").unwrap();
        assert_eq!((sample[0], sample[1], sample[2], sample[11_796]), (808_544, 819_862, 443_502, 714_570));
        assert_eq!(sample.iter().zip(0..).map(|(v, i)| v * i).sum::<i64>() % 1_000_003, 629_791);
        let sums = list("@sum(@uniform(100000, 1, 8, 65), @uniform(100000, 1, 8, 66))").unwrap();
        assert_eq!(sums[99_999], 897_907);
    }

    #[test]
    fn samples_are_distinct() {
        let mut sample = list("@sample(1000, 1000, 3)").unwrap();
        sample.sort_unstable();
        assert!(sample.iter().copied().eq(0..1000));
    }

    #[test]
    fn bad_forms_are_errors() {
        for text in [
            "",
            "1",
            "[1",
            "[1,]",
            "[99999999999999999999]",
            "@",
            "@fill",
            "@fill(",
            "@fill(3)",
            "@fill(-1,0)",
            "@none(1)",
            "@fill(99999999,0)",
            "@uniform(3,5,4,1)",
            "@sample(4,3,1)",
            "@range(3,9223372036854775807,1)",
            "@sum([1],[1,2])",
            "@scale([9223372036854775807],2)",
            "@fill(1,2) x",
            "[1] [2]",
        ] {
            assert!(list(text).is_err(), "{text}");
        }
        let nested = |forms| list(&format!("{}[1]{}", "@sum(".repeat(forms), ")".repeat(forms)));
        assert_eq!(nested(16).unwrap(), [0]);
        assert!(nested(17).unwrap_err().to_string().contains("at most 16 deep"));
        let deep = format!("{}[1]{}", "@sum(".repeat(10_000), ")".repeat(10_000));
        assert!(list(&deep).is_err());
    }
}

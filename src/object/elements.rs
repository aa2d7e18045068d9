//! Basic elements and their packed bytes (MPI 5.0, sections 3.2.5 and 13.3).

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};

/// Returns the number of basic elements in the first `bytes` packed bytes of instances of `t`. The
/// result is none if the bytes end inside an element, if `bytes` is not 0 but `t` has no data, or
/// if `bytes` does not fit in 63 bits.
pub fn elements(t: &Datatype, bytes: u64) -> Option<i64> {
    t.elements_before(i64::try_from(bytes).ok()?)
}

/// Returns the number of packed bytes of the first `count` basic elements of instances of `t`. A
/// status must contain this number for `MPI_Get_elements` to return `count`.
///
/// # Errors
/// Class `Count` if `count` is negative, or is not 0 for a type without data; class `ValueTooLarge`
/// if the number of bytes does not fit in a signed number of 64 bits.
pub fn elements_size(t: &Datatype, count: i64) -> Result<i64> {
    let refuse = |class, rule: &'static str| Error::new(class, "elements_size", "count", count, rule);
    if count < 0 {
        return Err(refuse(ErrorClass::Count, "must not be negative"));
    }
    if count > 0 && t.size() == 0 {
        return Err(refuse(ErrorClass::Count, "must be 0 for a datatype without data"));
    }
    t.bytes_before(count).ok_or_else(|| {
        refuse(ErrorClass::ValueTooLarge, "elements must have no more bytes than 64 bits count")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, Option<i64>)]) {
        let t: Datatype = text.parse().unwrap();
        for &(bytes, count) in expected {
            assert_eq!(elements(&t, bytes), count, "{text}, {bytes} bytes");
            if let Some(count) = count {
                assert_eq!(elements_size(&t, count), Ok(bytes as i64), "{text}, {count} elements");
            }
        }
    }

    #[test]
    fn by_hand() {
        check("int", &[(0, Some(0)), (4, Some(1)), (12, Some(3)), (6, None)]);
        check("double_int", &[(8, Some(1)), (12, Some(2)), (20, Some(3)), (9, None)]);
        check("vector(3, 2, 5, int)", &[(4, Some(1)), (24, Some(6)), (28, Some(7)), (26, None)]);
        let t = "struct([1, 1, 3], [0, 8, 16], [int, double, float])";
        check(t, &[(4, Some(1)), (12, Some(2)), (16, Some(3)), (24, Some(5)), (28, Some(6)), (8, None)]);
        check("subarray([4, 8], [1, 3], [2, 1], C, double)", &[(8, Some(1)), (32, Some(4))]);
        check("struct([], [], [])", &[(0, Some(0)), (1, None)]);
        check("struct([0, 2], [0, 0], [double, contiguous(2, char)])", &[(3, Some(3)), (4, Some(4))]);
    }

    #[test]
    fn any_number_of_elements_has_its_bytes() {
        for text in [
            "short_int",
            "contiguous(10, int)",
            "vector(3, 2, 5, struct([1, 0, 2], [0, 9, 16], [char, double, double_int]))",
            "struct([1, 3], [0, 8], [resized(-4, 40, 2int), hindexed([2, 0, 1], [64, 0, 8], contiguous(2, float))])",
            "darray(4, 1, [10], [cyclic], [3], [4], C, long_double_int)",
            "dup(f90_real(15, 300))",
        ] {
            let t: Datatype = text.parse().unwrap();
            for n in 0..100 {
                let bytes = elements_size(&t, n).unwrap();
                assert_eq!(elements(&t, bytes as u64), Some(n), "{text}, {n} elements, {bytes} bytes");
            }
        }
    }

    #[test]
    fn elements_that_are_none_are_refused() {
        let class = |text: &str, n| elements_size(&text.parse().unwrap(), n).unwrap_err().class();
        assert_eq!(class("int", -1), ErrorClass::Count);
        assert_eq!(class("struct([], [], [])", 1), ErrorClass::Count);
        assert_eq!(class("int", i64::MAX / 4 + 1), ErrorClass::ValueTooLarge);
        assert_eq!(class("double_int", i64::MAX), ErrorClass::ValueTooLarge);
        assert_eq!(
            class("struct([1, 1], [0, 8], [char, double])", i64::MAX / 9 * 2 + 2),
            ErrorClass::ValueTooLarge
        );
        assert_eq!(elements_size(&"int".parse().unwrap(), i64::MAX / 4), Ok(i64::MAX - 3));
        assert_eq!(elements_size(&"struct([], [], [])".parse().unwrap(), 0), Ok(0));
    }
}

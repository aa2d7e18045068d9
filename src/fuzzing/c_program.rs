//! Writes a failure as a C program, which builds the datatype by calls of MPI and compares
//! `MPI_Pack` and `MPI_Unpack` with the type map.
//!
//! With it, any MPI library can give a third opinion, besides the compiler and the reference
//! interpreter. The program needs only `mpi.h`. It prints the first difference and ends with status
//! 1 if there is one.

use std::fmt::Write;

use super::case::seeds;
use crate::datatype::Datatype;
use crate::datatype::c::{self, HostBounds};
use crate::exec::interp;

const HEAD: &str = r#"#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char pattern(unsigned long long seed, unsigned long long i)
{
    unsigned long long mixed = (i / 8 + 1 + (seed << 32)) * 0x9e3779b97f4a7c15ull;
    return (unsigned char)((mixed ^ (mixed >> 29)) >> (i % 8 * 8));
}

static int differs(const char *what, long at, int got, int want)
{
    if (got != want)
        printf("%s %ld is %#04x, must be %#04x\n", what, at, got, want);
    return got != want;
}

"#;

const TAIL: &str = r#"    MPI_Type_commit(&t);
    /* The first and the last mapped byte decide the buffer. */
    long low = entries ? map[0][0] : 0, high = entries ? map[0][0] + map[0][1] : 0, size = 0, at = 0;
    for (long e = 0; e < entries; e++) {
        if (map[e][0] < low)
            low = map[e][0];
        if (map[e][0] + map[e][1] > high)
            high = map[e][0] + map[e][1];
        size += map[e][1];
    }
    long first = low < 0 ? low : 0, span = (high > 0 ? high : 0) - first;
    unsigned char *user = malloc(span + 1), *want = malloc(span + 1), *packed = malloc(size + 1);
    for (long i = 0; i < span; i++)
        user[i] = pattern(USER, i);
    int position = 0, bad = 0;
    MPI_Pack(user - first, COUNT, t, packed, (int)size, &position, MPI_COMM_SELF);
    bad |= differs("packed size", 0, position, (int)size);
    for (long e = 0; e < entries && !bad; e++)
        for (long i = 0; i < map[e][1] && !bad; i++, at++)
            bad |= differs("packed byte", at, packed[at], user[map[e][0] + i - first]);
    for (long i = 0; i < span; i++)
        user[i] = want[i] = pattern(BEFORE, i);
    for (long i = 0; i < size; i++)
        packed[i] = pattern(PACKED, i);
    at = 0;
    for (long e = 0; e < entries; e++)
        for (long i = 0; i < map[e][1]; i++)
            want[map[e][0] + i - first] = packed[at++];
    position = 0;
    MPI_Unpack(packed, (int)size, &position, user - first, COUNT, t, MPI_COMM_SELF);
    for (long i = 0; i < span && !bad; i++)
        bad |= differs("unpacked: displacement", first + i, user[i], want[i]);
    puts(bad ? "wrong" : "right");
    MPI_Finalize();
    return bad;
}
"#;

/// Returns the C program that checks an MPI library with `count` instances of `t`. If the type map
/// cannot be listed, the program says why in a comment and has an empty type map.
pub fn c_program(t: &Datatype, count: u64) -> String {
    let mut out = format!("/* {count} of {t} */\n{HEAD}");
    // Consecutive entries that are also contiguous in user memory become one row of the program's
    // table.
    let mut map: Vec<(i64, i64)> = Vec::new();
    let listed = interp::for_each(t, count, &mut |at, len, _| match map.last_mut() {
        Some(last) if last.0 + last.1 == at => last.1 += len as i64,
        _ => map.push((at, len as i64)),
    });
    if let Err(e) = listed {
        let _ = writeln!(out, "/* no type map: {e} */");
    }
    let _ = writeln!(out, "#define USER {}\n#define PACKED {}", seeds::USER, seeds::PACKED);
    let _ = writeln!(out, "#define BEFORE {}\n#define COUNT {count}", seeds::BEFORE);
    let _ = writeln!(out, "/* Displacement and length in packing order. */");
    let _ = writeln!(out, "static const long entries = {};", map.len());
    out += "static const long map[][2] = {";
    for (i, (at, len)) in map.iter().enumerate() {
        out += if i % 8 == 0 { "\n    " } else { " " };
        let _ = write!(out, "{{{}, {len}}},", c::literal(*at));
    }
    if map.is_empty() {
        out += "{0, 0}";
    }
    out += "\n};\n\nint main(int argc, char **argv)\n{\n    MPI_Init(&argc, &argv);\n";
    let root = c::constructors(t, HostBounds::Resized, &mut out);
    let _ = writeln!(out, "    MPI_Datatype t;\n    MPI_Type_dup({root}, &t);");
    out + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_in_order_with_mpis_arguments() {
        let t: Datatype =
            "struct([1,2],[0,40],[vector(2,1,3,int),dup(resized(0,16,double))])".parse().unwrap();
        let program = c_program(&t, 2);
        let at = |text: &str| program.find(text).unwrap_or_else(|| panic!("no {text} in\n{program}"));
        assert!(at("MPI_Type_vector(2, 1, 3, MPI_INT, &") < at("MPI_Type_create_struct(2, (int[]){1, 2}"));
        assert!(at("MPI_Type_create_resized(MPI_DOUBLE, 0, 16, &") < at("MPI_Type_dup("));
        at(
            "static const long map[][2] = {\n    {0, 4}, {12, 4}, {40, 8}, {56, 8}, {32, 4}, {44, 4}, {72, 8}, {88, 8},",
        );
        at("#define COUNT 2");
    }
}

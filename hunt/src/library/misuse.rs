//! Calls with arguments that MPI forbids. They are made to see whether the library returns an
//! error. MPI does not require a library to detect such arguments.

use std::ffi::c_int;

use ddtc::internal::datatype::Named;

use super::{Answer, Handle, Library, absent};

/// A forbidden call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misuse {
    /// Name of the call in fingerprints.
    pub(crate) name: &'static str,
    /// The call as a C expression with the call's error code as its value. `t` is the datatype that
    /// the call makes.
    pub(crate) call: &'static str,
    /// Section of MPI 5.0, and the rule that the call breaks, as a full sentence.
    pub(crate) section: &'static str,
    pub(crate) rule: &'static str,
    run: fn(&Library) -> Answer<()>,
}

// Returns the handle of `MPI_INT` as a word, or 0 if the library does not have that type.
fn named(library: &Library) -> u64 {
    library.named(Named::Int).map_or(0, |Handle(word)| word)
}

/// Calls that a library may refuse. If a library accepts such a call, all memory that it accesses
/// is within the buffers and arrays of the call.
pub(crate) static MISUSES: [Misuse; 8] = [
    Misuse {
        name: "contiguous-negative-count",
        call: "MPI_Type_contiguous(-1, MPI_INT, &t)",
        section: "5.1.2",
        rule: "The count of a constructor is a non-negative integer.",
        run: |l| {
            made(
                l,
                |new| l.f.contiguous.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: `f` is the library's function with its C type. The handle is that of
                    // a named type, and `new` has room for a handle. Here and in the entries below,
                    // an argument that MPI forbids is intended: the library may refuse it or take
                    // it, and a crash ends only this worker.
                    unsafe { f(-1, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "contiguous-null-type",
        call: "MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t)",
        section: "5.1.2",
        rule: "The old datatype of a constructor is a valid datatype, which MPI_DATATYPE_NULL is not.",
        run: |l| {
            made(
                l,
                |new| l.f.contiguous.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: as above: `new` has room for a handle, and the null handle is the
                    // forbidden argument.
                    unsafe { f(1, l.type_null, new) }
                },
            )
        },
    },
    Misuse {
        name: "vector-negative-blocklength",
        call: "MPI_Type_vector(2, -1, 3, MPI_INT, &t)",
        section: "5.1.2",
        rule: "A block length is a non-negative integer.",
        run: |l| {
            made(
                l,
                |new| l.f.vector.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: as above: a named type, room for a handle, and the negative block
                    // length as the forbidden argument.
                    unsafe { f(2, -1, 3, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "subarray-start-outside",
        call: "MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){3}, MPI_ORDER_C, MPI_INT, &t)",
        section: "5.1.3",
        rule: "The start in a dimension is at most the size minus the subsize.",
        run: |l| {
            made(
                l,
                |new| l.f.subarray.map(|f| (f, new)),
                |(f, new)| {
                    let (size, part, start): (c_int, c_int, c_int) = (4, 2, 3);
                    let order = l.abi.constants.order_c;
                    // SAFETY: as above: arrays of one entry for one dimension, a named type, room
                    // for a handle, and the start as the forbidden argument.
                    unsafe { f(1, &raw const size, &raw const part, &raw const start, order, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "subarray-subsize-zero",
        call: "MPI_Type_create_subarray(1, (int[]){4}, (int[]){0}, (int[]){0}, MPI_ORDER_C, MPI_INT, &t)",
        section: "5.1.3",
        rule: "The subsize in a dimension is at least 1.",
        run: |l| {
            made(
                l,
                |new| l.f.subarray.map(|f| (f, new)),
                |(f, new)| {
                    let (size, zero): (c_int, c_int) = (4, 0);
                    let order = l.abi.constants.order_c;
                    // SAFETY: as above: arrays of one entry for one dimension, a named type, room
                    // for a handle, and the subsize as the forbidden argument.
                    unsafe { f(1, &raw const size, &raw const zero, &raw const zero, order, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "darray-rank-outside",
        call: "MPI_Type_create_darray(2, 2, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2}, \
               MPI_ORDER_C, MPI_INT, &t)",
        section: "5.1.4",
        rule: "The rank is less than the size of the process group.",
        run: |l| {
            made(
                l,
                |new| l.f.darray.map(|f| (f, new)),
                |(f, new)| {
                    let c = &l.abi.constants;
                    let (size, grid): (c_int, c_int) = (4, 2);
                    let (kind, arg) = (c.distribute_block, c.distribute_dflt_darg);
                    // SAFETY: as above: arrays of one entry for one dimension, a named type, room
                    // for a handle, and the rank as the forbidden argument.
                    unsafe {
                        f(
                            2,
                            2,
                            1,
                            &raw const size,
                            &raw const kind,
                            &raw const arg,
                            &raw const grid,
                            c.order_c,
                            named(l),
                            new,
                        )
                    }
                },
            )
        },
    },
    Misuse {
        name: "pack-short-buffer",
        call: "(position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF))",
        section: "5.2",
        rule: "The position after the call is at most the size of the output buffer.",
        run: |l| {
            let pack = l.f.pack.ok_or(absent("MPI_Pack"))?;
            let (memory, mut stream, mut at) = ([0 as c_int; 4], [0u64; 8], 0);
            let (from, to) = (memory.as_ptr().cast(), stream.as_mut_ptr().cast());
            // SAFETY: `pack` is the library's function with its C type. `from` has 4 integers, of
            // which the call reads 2. `to` has 64 bytes, which is more than the 7 that the call is
            // told and than the 8 that two integers need.
            l.done("MPI_Pack", unsafe { pack(from, 2, named(l), to, 7, &raw mut at, l.myself) })
        },
    },
    Misuse {
        name: "pack-uncommitted",
        call: "(position = 0, MPI_Type_contiguous(1, MPI_INT, &t), MPI_Pack(memory, 1, t, stream, 64, &position, MPI_COMM_SELF))",
        section: "5.1.9",
        rule: "A datatype must be committed before it is used in communication or packing.",
        run: |l| {
            let pack = l.f.pack.ok_or(absent("MPI_Pack"))?;
            let contiguous = l.f.contiguous.ok_or(absent("MPI_Type_contiguous"))?;
            let (memory, mut stream, mut at, mut new) = ([0 as c_int; 4], [0u64; 8], 0, 0u64);
            let (from, to) = (memory.as_ptr().cast(), stream.as_mut_ptr().cast());
            // SAFETY: both are the library's functions with their C types. `new` has room for a
            // handle, `from` has 4 integers, of which the call reads 1, and `to` has the 64 bytes
            // that the call is told. The type `t` is freed once. That it is not committed is the
            // forbidden argument.
            unsafe {
                l.done("MPI_Type_contiguous", contiguous(1, named(l), (&raw mut new).cast()))?;
                let t = Handle(new & l.abi.handle_mask);
                let packed = l.done("MPI_Pack", pack(from, 1, t.0, to, 64, &raw mut at, l.myself));
                l.free(t)?;
                packed
            }
        },
    },
];

/// Calls a constructor of datatypes, and frees the new datatype if the library accepts the call.
fn made<F>(
    library: &Library,
    with: impl Fn(*mut std::ffi::c_void) -> Option<F>,
    call: impl Fn(F) -> c_int,
) -> Answer<()> {
    let mut new = 0u64;
    let Some(with) = with((&raw mut new).cast()) else { return Err(absent("a constructor")) };
    let result = library.done("the constructor", call(with));
    if result.is_ok() {
        let _ = library.free(Handle(new & library.abi.handle_mask));
    }
    result
}

impl Misuse {
    /// Returns true if the library accepted the call without an error.
    pub(crate) fn is_taken(&self, library: &Library) -> bool {
        (self.run)(library).is_ok()
    }
}

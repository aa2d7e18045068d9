//! Calls with arguments that MPI forbids: whether the library says so, and by which class. Detection is not required.

use std::ffi::c_int;

use ddtc::internal::datatype::Named;

use super::{Answer, Handle, Library, absent};

/// A forbidden call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misuse {
    /// Stands in fingerprints.
    pub(crate) name: &'static str,
    /// The call as C, with `t` for what it makes; returns an error code.
    pub(crate) call: &'static str,
    /// Section of MPI 5.0, and its rule.
    pub(crate) section: &'static str,
    pub(crate) rule: &'static str,
    run: fn(&Library) -> Answer<()>,
}

fn named(library: &Library) -> u64 {
    library.named(Named::Int).map_or(0, |Handle(word)| word)
}

/// Calls that a library may refuse. None makes it touch memory that is not there.
pub(crate) static MISUSES: [Misuse; 8] = [
    Misuse {
        name: "contiguous-negative-count",
        call: "MPI_Type_contiguous(-1, MPI_INT, &t)",
        section: "5.1.2",
        rule: "the count of a constructor is a non-negative integer",
        run: |l| {
            made(
                l,
                |new| l.f.contiguous.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: a named type and room for a handle; here and below, an argument that MPI forbids is what is asked.
                    unsafe { f(-1, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "contiguous-null-type",
        call: "MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t)",
        section: "5.1.2",
        rule: "MPI_DATATYPE_NULL is no datatype that a constructor takes",
        run: |l| {
            made(
                l,
                |new| l.f.contiguous.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: as above.
                    unsafe { f(1, l.type_null, new) }
                },
            )
        },
    },
    Misuse {
        name: "vector-negative-blocklength",
        call: "MPI_Type_vector(2, -1, 3, MPI_INT, &t)",
        section: "5.1.2",
        rule: "a block length is a non-negative integer",
        run: |l| {
            made(
                l,
                |new| l.f.vector.map(|f| (f, new)),
                |(f, new)| {
                    // SAFETY: as above.
                    unsafe { f(2, -1, 3, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "subarray-start-outside",
        call: "MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){3}, MPI_ORDER_C, MPI_INT, &t)",
        section: "5.1.3",
        rule: "a start is at most size - subsize",
        run: |l| {
            made(
                l,
                |new| l.f.subarray.map(|f| (f, new)),
                |(f, new)| {
                    let (size, part, start): (c_int, c_int, c_int) = (4, 2, 3);
                    let order = l.abi.constants.order_c;
                    // SAFETY: as above.
                    unsafe { f(1, &raw const size, &raw const part, &raw const start, order, named(l), new) }
                },
            )
        },
    },
    Misuse {
        name: "subarray-subsize-zero",
        call: "MPI_Type_create_subarray(1, (int[]){4}, (int[]){0}, (int[]){0}, MPI_ORDER_C, MPI_INT, &t)",
        section: "5.1.3",
        rule: "a subsize is at least 1",
        run: |l| {
            made(
                l,
                |new| l.f.subarray.map(|f| (f, new)),
                |(f, new)| {
                    let (size, zero): (c_int, c_int) = (4, 0);
                    let order = l.abi.constants.order_c;
                    // SAFETY: as above.
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
        rule: "rank is less than size",
        run: |l| {
            made(
                l,
                |new| l.f.darray.map(|f| (f, new)),
                |(f, new)| {
                    let c = &l.abi.constants;
                    let (size, grid): (c_int, c_int) = (4, 2);
                    let (kind, arg) = (c.distribute_block, c.distribute_dflt_darg);
                    // SAFETY: as above.
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
        rule: "outsize is at least the position after the call",
        run: |l| {
            let pack = l.f.pack.ok_or(absent("MPI_Pack"))?;
            let (memory, mut stream, mut at) = ([0 as c_int; 4], [0u64; 8], 0);
            let (from, to) = (memory.as_ptr().cast(), stream.as_mut_ptr().cast());
            // SAFETY: as above; there is more room than the call is told.
            l.done("MPI_Pack", unsafe { pack(from, 2, named(l), to, 7, &raw mut at, l.myself) })
        },
    },
    Misuse {
        name: "pack-uncommitted",
        call: "(position = 0, MPI_Type_contiguous(1, MPI_INT, &t), MPI_Pack(memory, 1, t, stream, 64, &position, MPI_COMM_SELF))",
        section: "5.1.9",
        rule: "a datatype must be committed before it is used in packing",
        run: |l| {
            let pack = l.f.pack.ok_or(absent("MPI_Pack"))?;
            let contiguous = l.f.contiguous.ok_or(absent("MPI_Type_contiguous"))?;
            let (memory, mut stream, mut at, mut new) = ([0 as c_int; 4], [0u64; 8], 0, 0u64);
            let (from, to) = (memory.as_ptr().cast(), stream.as_mut_ptr().cast());
            // SAFETY: as above.
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

/// Calls a constructor; what it makes is freed.
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
    /// Says whether the library took the call.
    pub(crate) fn is_taken(&self, library: &Library) -> bool {
        (self.run)(library).is_ok()
    }
}

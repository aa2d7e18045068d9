//! Datatypes as objects: they are made, committed, duplicated and freed, and have attributes and
//! names.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use ddtc::internal::datatype::{Combiner, Distribution, Order};

use super::{Answer, Handle, Library, absent};

/// Numbers of calls of the attribute callbacks. `strange` counts calls with arguments that no
/// attribute of the fuzzer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallbackCounts {
    pub(crate) copies: u32,
    pub(crate) deletes: u32,
    pub(crate) strange: u32,
}

static COPIES: AtomicU32 = AtomicU32::new(0);
static DELETES: AtomicU32 = AtomicU32::new(0);
static STRANGE: AtomicU32 = AtomicU32::new(0);
/// Numbers that MPI gets in place of pointers, so neither is the address of an object. `EXTRA` is
/// the extra state of every keyval of the fuzzer. `VALUE` is added to the value of each attribute,
/// so a callback that gets a smaller value got a wrong one.
const EXTRA: usize = 0x5eed;
const VALUE: usize = 0x1000;

// The copy callback of all keyvals. It increments `COPIES`, and for unexpected arguments also
// `STRANGE`. If the value of the attribute is even, the duplicate gets the attribute with a value
// that is higher by 16. If it is odd, the duplicate does not get the attribute.
unsafe extern "C" fn copy(
    _: u64,
    _: c_int,
    extra: *mut c_void,
    value: *mut c_void,
    out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    COPIES.fetch_add(1, Ordering::Relaxed);
    if extra.addr() != EXTRA || value.addr() < VALUE {
        STRANGE.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: MPI passes the address of a place for the new value in `out`, and that of an integer
    // for the flag (MPI 5.0, section 7.7.3). An odd value is not passed on.
    unsafe {
        out.cast::<usize>().write(value.addr() + 0x10);
        *flag = c_int::from(value.addr().is_multiple_of(2));
    }
    0
}

// The delete callback of all keyvals. It only increments `DELETES`, and for unexpected arguments
// also `STRANGE`.
unsafe extern "C" fn delete(_: u64, _: c_int, value: *mut c_void, extra: *mut c_void) -> c_int {
    DELETES.fetch_add(1, Ordering::Relaxed);
    if extra.addr() != EXTRA || value.addr() < VALUE {
        STRANGE.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// Calls a constructor of the library and returns the new handle.
macro_rules! made {
    ($self:ident, $call:literal, $function:ident($($arg:expr),*)) => {{
        let function = $self.f.$function.ok_or(absent($call))?;
        let mut new = 0u64;
        // SAFETY: `function` is the library's function of that name, with its C type. The callers
        // of this macro pass datatypes of this library and pointers to arrays of the lengths that
        // the other arguments say, which live until the call returns. `new` has room for a handle.
        $self.done($call, unsafe { function($($arg,)* (&raw mut new).cast()) })?;
        // If a constructor returns MPI_DATATYPE_NULL, the type counts as one that the library
        // lacks. `MPI_Type_get_value_index` may return this handle (MPI 5.0, section 6.9.4).
        let new = new & $self.abi.handle_mask;
        if new == $self.type_null { Err(absent($call)) } else { Ok(Handle(new)) }
    }};
}

fn ints(values: &[i64]) -> Vec<c_int> {
    values.iter().map(|&v| v as c_int).collect()
}

fn sizes(values: &[i64]) -> Vec<isize> {
    values.iter().map(|&v| v as isize).collect()
}

impl Library {
    /// Calls the constructor of `combiner` with the handles `children`. If `large` is true, calls
    /// the large-count variant of the constructor.
    pub(crate) fn construct(&self, combiner: &Combiner, large: bool, children: &[Handle]) -> Answer<Handle> {
        let old = children.first().map_or(0, |h| h.0);
        match combiner {
            Combiner::Named(n) => self.named(*n).ok_or(absent("a named type")),
            Combiner::Dup { .. } => made!(self, "MPI_Type_dup", dup(old)),
            Combiner::Bounds { lb, extent, .. } | Combiner::Resized { lb, extent, .. } => {
                if large {
                    return made!(self, "MPI_Type_create_resized_c", resized_c(old, *lb, *extent));
                }
                made!(self, "MPI_Type_create_resized", resized(old, *lb as isize, *extent as isize))
            }
            Combiner::Contiguous { count, .. } if large => {
                made!(self, "MPI_Type_contiguous_c", contiguous_c(*count, old))
            }
            Combiner::Contiguous { count, .. } => {
                made!(self, "MPI_Type_contiguous", contiguous(*count as c_int, old))
            }
            Combiner::Vector { count, blocklength, stride, .. } if large => {
                made!(self, "MPI_Type_vector_c", vector_c(*count, *blocklength, *stride, old))
            }
            Combiner::Vector { count, blocklength, stride, .. } => made!(
                self,
                "MPI_Type_vector",
                vector(*count as c_int, *blocklength as c_int, *stride as c_int, old)
            ),
            Combiner::Hvector { count, blocklength, stride, .. } if large => {
                made!(self, "MPI_Type_create_hvector_c", hvector_c(*count, *blocklength, *stride, old))
            }
            Combiner::Hvector { count, blocklength, stride, .. } => made!(
                self,
                "MPI_Type_create_hvector",
                hvector(*count as c_int, *blocklength as c_int, *stride as isize, old)
            ),
            Combiner::Indexed { .. } | Combiner::Hindexed { .. } => self.lists(combiner, large, old),
            Combiner::IndexedBlock { .. } | Combiner::HindexedBlock { .. } => {
                self.blocks(combiner, large, old)
            }
            Combiner::Struct { blocklengths, displacements, .. } => {
                let n = displacements.len();
                let types = self.array(children);
                let types = types.as_ptr().cast::<c_void>();
                if large {
                    let (lengths, at) = (blocklengths.as_ptr(), displacements.as_ptr());
                    return made!(
                        self,
                        "MPI_Type_create_struct_c",
                        structure_c(n as i64, lengths, at, types)
                    );
                }
                let (lengths, at) = (ints(blocklengths), sizes(displacements));
                let (lengths, at) = (lengths.as_ptr(), at.as_ptr());
                made!(self, "MPI_Type_create_struct", structure(n as c_int, lengths, at, types))
            }
            Combiner::Subarray { .. } | Combiner::Darray { .. } => self.array_part(combiner, large, old),
            Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. } => {
                // The existing kinds depend on the Fortran compiler, so a refused kind counts as
                // one that the library lacks.
                self.kind(combiner).map_err(|refusal| absent(refusal.call))
            }
            Combiner::ValueIndex { .. } => {
                made!(self, "MPI_Type_get_value_index", value_index(old, children[1].0))
            }
        }
    }

    /// Calls a constructor of blocks, each of which has its own length.
    fn lists(&self, combiner: &Combiner, large: bool, old: u64) -> Answer<Handle> {
        match combiner {
            Combiner::Indexed { blocklengths, displacements, .. } => {
                let n = displacements.len();
                if large {
                    let (lengths, at) = (blocklengths.as_ptr(), displacements.as_ptr());
                    return made!(self, "MPI_Type_indexed_c", indexed_c(n as i64, lengths, at, old));
                }
                let (lengths, at) = (ints(blocklengths), ints(displacements));
                made!(self, "MPI_Type_indexed", indexed(n as c_int, lengths.as_ptr(), at.as_ptr(), old))
            }
            Combiner::Hindexed { blocklengths, displacements, .. } => {
                let n = displacements.len();
                if large {
                    let (lengths, at) = (blocklengths.as_ptr(), displacements.as_ptr());
                    return made!(self, "MPI_Type_create_hindexed_c", hindexed_c(n as i64, lengths, at, old));
                }
                let (lengths, at) = (ints(blocklengths), sizes(displacements));
                let (lengths, at) = (lengths.as_ptr(), at.as_ptr());
                made!(self, "MPI_Type_create_hindexed", hindexed(n as c_int, lengths, at, old))
            }
            _ => Err(absent("a constructor of lists")),
        }
    }

    /// Calls a constructor of blocks that all have the same length.
    fn blocks(&self, combiner: &Combiner, large: bool, old: u64) -> Answer<Handle> {
        match combiner {
            Combiner::IndexedBlock { blocklength, displacements, .. } => {
                let n = displacements.len();
                if large {
                    let at = displacements.as_ptr();
                    let call = "MPI_Type_create_indexed_block_c";
                    return self.block_c(call, self.f.indexed_block_c, n, *blocklength, at, old);
                }
                let at = ints(displacements);
                made!(
                    self,
                    "MPI_Type_create_indexed_block",
                    indexed_block(n as c_int, *blocklength as c_int, at.as_ptr(), old)
                )
            }
            Combiner::HindexedBlock { blocklength, displacements, .. } => {
                let n = displacements.len();
                if large {
                    let at = displacements.as_ptr();
                    let call = "MPI_Type_create_hindexed_block_c";
                    return self.block_c(call, self.f.hindexed_block_c, n, *blocklength, at, old);
                }
                let at = sizes(displacements);
                made!(
                    self,
                    "MPI_Type_create_hindexed_block",
                    hindexed_block(n as c_int, *blocklength as c_int, at.as_ptr(), old)
                )
            }
            _ => Err(absent("a constructor of blocks")),
        }
    }

    /// Calls the constructor of a subarray or of a part of a distributed array.
    fn array_part(&self, combiner: &Combiner, large: bool, old: u64) -> Answer<Handle> {
        let c = &self.abi.constants;
        let order = |order: &Order| match order {
            Order::C => c.order_c,
            Order::Fortran => c.order_fortran,
        };
        match combiner {
            Combiner::Subarray { sizes, subsizes, starts, order: o, .. } => {
                let n = sizes.len() as c_int;
                if large {
                    let (a, b, s) = (sizes.as_ptr(), subsizes.as_ptr(), starts.as_ptr());
                    return made!(self, "MPI_Type_create_subarray_c", subarray_c(n, a, b, s, order(o), old));
                }
                let (a, b, s) = (ints(sizes), ints(subsizes), ints(starts));
                let (a, b, s) = (a.as_ptr(), b.as_ptr(), s.as_ptr());
                made!(self, "MPI_Type_create_subarray", subarray(n, a, b, s, order(o), old))
            }
            Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order: o, .. } => {
                let kinds: Vec<c_int> = distribs
                    .iter()
                    .map(|d| match d {
                        Distribution::Block => c.distribute_block,
                        Distribution::Cyclic => c.distribute_cyclic,
                        Distribution::None => c.distribute_none,
                    })
                    .collect();
                let args: Vec<c_int> =
                    dargs.iter().map(|d| d.map_or(c.distribute_dflt_darg, |d| d as c_int)).collect();
                let (n, grid) = (gsizes.len() as c_int, ints(psizes));
                let (size, rank) = (*size as c_int, *rank as c_int);
                let (kinds, args, grid, o) = (kinds.as_ptr(), args.as_ptr(), grid.as_ptr(), order(o));
                if large {
                    let g = gsizes.as_ptr();
                    let call = self.f.darray_c.ok_or(absent("MPI_Type_create_darray_c"))?;
                    let mut new = 0u64;
                    // SAFETY: `call` is the library's function with its C type. The arrays have `n`
                    // entries each and live until the call returns, `old` is a datatype of this
                    // library, and `new` has room for a handle.
                    let code =
                        unsafe { call(size, rank, n, g, kinds, args, grid, o, old, (&raw mut new).cast()) };
                    self.done("MPI_Type_create_darray_c", code)?;
                    return Ok(Handle(new & self.abi.handle_mask));
                }
                let g = ints(gsizes);
                let g = g.as_ptr();
                made!(self, "MPI_Type_create_darray", darray(size, rank, n, g, kinds, args, grid, o, old))
            }
            _ => Err(absent("a constructor of arrays")),
        }
    }

    // Calls the constructor of a Fortran kind. A precision or range that is not given is
    // `MPI_UNDEFINED`.
    fn kind(&self, combiner: &Combiner) -> Answer<Handle> {
        match combiner {
            Combiner::F90Real { p, r } => {
                made!(self, "MPI_Type_create_f90_real", f90_real(self.digits(*p), self.digits(*r)))
            }
            Combiner::F90Complex { p, r } => {
                made!(self, "MPI_Type_create_f90_complex", f90_complex(self.digits(*p), self.digits(*r)))
            }
            Combiner::F90Integer { r } => {
                made!(self, "MPI_Type_create_f90_integer", f90_integer(*r as c_int))
            }
            _ => Err(absent("no kind")),
        }
    }

    fn digits(&self, n: Option<i64>) -> c_int {
        n.map_or(self.abi.constants.undefined, |n| n as c_int)
    }

    /// Calls one of the two large-count constructors of blocks that all have the same length. Both
    /// constructors have the same C type.
    fn block_c(
        &self,
        call: &'static str,
        function: Option<unsafe extern "C" fn(i64, i64, *const i64, u64, *mut c_void) -> c_int>,
        n: usize,
        blocklength: i64,
        displacements: *const i64,
        old: u64,
    ) -> Answer<Handle> {
        let function = function.ok_or(absent(call))?;
        let mut new = 0u64;
        // SAFETY: `function` is one of the library's two constructors of this C type.
        // `displacements` points to `n` numbers, `old` is a datatype of this library, and `new` has
        // room for a handle.
        let code = unsafe { function(n as i64, blocklength, displacements, old, (&raw mut new).cast()) };
        self.done(call, code)?;
        Ok(Handle(new & self.abi.handle_mask))
    }

    /// Returns `handles` as an array in the form in which C functions of the library take it. If
    /// the ABI has handles of 4 bytes, each word of the result holds two of them.
    pub(super) fn array(&self, handles: &[Handle]) -> Vec<u64> {
        if self.abi.handle_bytes == 8 {
            return handles.iter().map(|h| h.0).collect();
        }
        let pair = |pair: &[Handle]| pair[0].0 | pair.get(1).map_or(0, |h| h.0 << 32);
        handles.chunks(2).map(pair).collect()
    }

    /// Calls `MPI_Type_commit`.
    pub(crate) fn commit(&self, t: Handle) -> Answer<()> {
        let commit = self.f.commit.ok_or(absent("MPI_Type_commit"))?;
        let mut word = t.0;
        // SAFETY: `commit` is the library's function with its C type, and `word` holds the handle
        // of a datatype of this library and has room for any handle.
        self.done("MPI_Type_commit", unsafe { commit((&raw mut word).cast()) })
    }

    /// Calls `MPI_Type_free`.
    pub(crate) fn free(&self, t: Handle) -> Answer<()> {
        let free = self.f.free.ok_or(absent("MPI_Type_free"))?;
        let mut word = t.0;
        // SAFETY: `free` is the library's function with its C type, and `word` holds the handle of
        // a datatype of this library and has room for any handle. The callers free each datatype
        // once.
        self.done("MPI_Type_free", unsafe { free((&raw mut word).cast()) })
    }

    /// Calls `MPI_Type_dup`.
    pub(crate) fn dup(&self, t: Handle) -> Answer<Handle> {
        made!(self, "MPI_Type_dup", dup(t.0))
    }

    /// Returns a new keyval whose callbacks count their calls. Its copy callback copies an even
    /// value increased by 16, and does not copy an odd value.
    pub(crate) fn keyval(&self) -> Answer<c_int> {
        let create = self.f.create_keyval.ok_or(absent("MPI_Type_create_keyval"))?;
        let mut keyval: c_int = 0;
        let extra = std::ptr::without_provenance_mut(EXTRA);
        // SAFETY: `create` is the library's function with its C type. `copy` and `delete` have the
        // C types of MPI's callbacks, `keyval` is an integer to which the call may write, and the
        // callbacks never read through the extra state.
        self.done("MPI_Type_create_keyval", unsafe { create(copy, delete, &raw mut keyval, extra) })?;
        Ok(keyval)
    }

    /// Calls `MPI_Type_free_keyval`.
    pub(crate) fn free_keyval(&self, keyval: c_int) -> Answer<()> {
        let free = self.f.free_keyval.ok_or(absent("MPI_Type_free_keyval"))?;
        let mut keyval = keyval;
        // SAFETY: `free` is the library's function with its C type, and `keyval` was made by
        // `Library::keyval`.
        self.done("MPI_Type_free_keyval", unsafe { free(&raw mut keyval) })
    }

    /// Sets the attribute of `keyval` on `t` to the number `value`.
    pub(crate) fn set_attribute(&self, t: Handle, keyval: c_int, value: usize) -> Answer<()> {
        let set = self.f.set_attr.ok_or(absent("MPI_Type_set_attr"))?;
        let value = std::ptr::without_provenance_mut(VALUE + value);
        // SAFETY: `set` is the library's function with its C type, `t` is a datatype of this
        // library, and `keyval` was made by `Library::keyval`. The value is not an address, and
        // nothing reads through it.
        self.done("MPI_Type_set_attr", unsafe { set(t.0, keyval, value) })
    }

    /// Returns the value of the attribute of `keyval` on `t`, or none if the attribute is not set.
    pub(crate) fn attribute(&self, t: Handle, keyval: c_int) -> Answer<Option<usize>> {
        let get = self.f.get_attr.ok_or(absent("MPI_Type_get_attr"))?;
        let (mut value, mut flag) = (0usize, 0);
        // SAFETY: `get` is the library's function with its C type, `t` is a datatype of this
        // library, and `keyval` was made by `Library::keyval`. There is room for a value and a
        // flag.
        self.done("MPI_Type_get_attr", unsafe { get(t.0, keyval, (&raw mut value).cast(), &raw mut flag) })?;
        Ok((flag != 0).then(|| value.wrapping_sub(VALUE)))
    }

    /// Calls `MPI_Type_delete_attr`.
    pub(crate) fn delete_attribute(&self, t: Handle, keyval: c_int) -> Answer<()> {
        let delete = self.f.delete_attr.ok_or(absent("MPI_Type_delete_attr"))?;
        // SAFETY: `delete` is the library's function with its C type, `t` is a datatype of this
        // library, and `keyval` was made by `Library::keyval`.
        self.done("MPI_Type_delete_attr", unsafe { delete(t.0, keyval) })
    }

    /// Returns how often the attribute callbacks were called since the last call of this method,
    /// and sets these counts to 0.
    pub(crate) fn callbacks(&self) -> CallbackCounts {
        CallbackCounts {
            copies: COPIES.swap(0, Ordering::Relaxed),
            deletes: DELETES.swap(0, Ordering::Relaxed),
            strange: STRANGE.swap(0, Ordering::Relaxed),
        }
    }

    /// Calls `MPI_Type_set_name`.
    pub(crate) fn set_name(&self, t: Handle, name: &std::ffi::CStr) -> Answer<()> {
        let set = self.f.set_name.ok_or(absent("MPI_Type_set_name"))?;
        // SAFETY: `set` is the library's function with its C type, `t` is a datatype of this
        // library, and `name` is a C string.
        self.done("MPI_Type_set_name", unsafe { set(t.0, name.as_ptr()) })
    }

    /// Returns the name that `MPI_Type_get_name` gives.
    pub(crate) fn name(&self, t: Handle) -> Answer<String> {
        let get = self.f.get_name.ok_or(absent("MPI_Type_get_name"))?;
        let (mut text, mut len) = ([0u8; 1024], 0);
        // SAFETY: `get` is the library's function with its C type, and `t` is a datatype of this
        // library. The text has room for 1024 bytes, which is more than any library's
        // MPI_MAX_OBJECT_NAME (256 at most), and `len` is an integer to which the call may write.
        self.done("MPI_Type_get_name", unsafe {
            get(t.0, text.as_mut_ptr().cast::<c_char>(), &raw mut len)
        })?;
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }
}

//! Functions for tests of libyaksa.so.0. [`Yaksa`] loads the library and calls its functions.
//! [`Mirror`] makes each type twice: with the library's constructors, and as an equivalent
//! `Datatype` of ddtc with which the test compares it.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::mem::transmute_copy;

use ddtc::internal::datatype::{Combiner, Datatype, Named, Order};
use ddtc::internal::methods::*;
use libc::iovec;

use crate::library::installed;

/// Loaded libyaksa.so.0, with a method for each function that the tests call.
pub(crate) struct Yaksa {
    handle: *mut c_void,
}

/// Calls the function `$name` of the library, whose parameters have the types `$type`. The value is
/// the result code of the function.
macro_rules! call {
    ($yaksa:expr, $name:literal, ($($type:ty),*), $($argument:expr),*) => {{
        type Function = unsafe extern "C" fn($($type),*) -> c_int;
        let address = $yaksa.symbol($name);
        // SAFETY: the address is not null, and the library's function of that name has this type
        // according to include/yaksa.h, up to the signs of integers and the types that pointers
        // point to.
        let function: Function = unsafe { transmute_copy(&address) };
        // SAFETY: each pointer that the callers pass is null, or points to memory of the caller
        // that is as long as the other arguments say.
        unsafe { function($($argument),*) }
    }};
}

type Info = *mut c_void;
const INFO: Info = std::ptr::null_mut();

impl Yaksa {
    pub(crate) fn open() -> Yaksa {
        let path = CString::new(installed().join("libyaksa.so.0").to_str().unwrap()).unwrap();
        // SAFETY: `path` is a C string, and the library has no constructors of its own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?}");
        let yaksa = Yaksa { handle };
        assert_eq!(call!(yaksa, "yaksa_init", (Info), INFO), 0);
        yaksa
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: `handle` is that of a library that is never closed, and `name` is a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        address
    }

    pub(crate) fn pack(
        &self,
        number: u64,
        user: *mut u8,
        count: u64,
        offset: usize,
        packed: &mut [u8],
        op: u64,
    ) -> Result<usize, c_int> {
        let mut n = 0;
        let (to, max) = (packed.as_mut_ptr(), packed.len());
        let code = call!(
            self,
            "yaksa_pack",
            (*const u8, usize, u64, usize, *mut u8, usize, *mut usize, Info, u64),
            user,
            count as usize,
            number,
            offset,
            to,
            max,
            &raw mut n,
            INFO,
            op
        );
        if code == 0 { Ok(n) } else { Err(code) }
    }

    pub(crate) fn unpack(
        &self,
        number: u64,
        packed: &[u8],
        user: *mut u8,
        count: u64,
        offset: usize,
        op: u64,
    ) -> Result<usize, c_int> {
        let mut n = 0;
        let code = call!(
            self,
            "yaksa_unpack",
            (*const u8, usize, *mut u8, usize, u64, usize, *mut usize, Info, u64),
            packed.as_ptr(),
            packed.len(),
            user,
            count as usize,
            number,
            offset,
            &raw mut n,
            INFO,
            op
        );
        if code == 0 { Ok(n) } else { Err(code) }
    }

    pub(crate) fn iov_len(&self, number: u64, count: u64) -> usize {
        let mut n = 0;
        let code = call!(self, "yaksa_iov_len", (usize, u64, *mut usize), count as usize, number, &raw mut n);
        assert_eq!(code, 0);
        n
    }

    pub(crate) fn iov_len_max(&self, number: u64, count: u64, bytes: usize) -> (usize, usize) {
        let (mut n, mut used) = (0, 0);
        let code = call!(
            self,
            "yaksa_iov_len_max",
            (usize, u64, usize, *mut usize, *mut usize),
            count as usize,
            number,
            bytes,
            &raw mut n,
            &raw mut used
        );
        assert_eq!(code, 0);
        (n, used)
    }

    pub(crate) fn iov(&self, number: u64, user: *mut u8, count: u64, from: usize, max: usize) -> Vec<iovec> {
        let mut list = vec![iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; max];
        let mut n = 0;
        let code = call!(
            self,
            "yaksa_iov",
            (*const u8, usize, u64, usize, *mut iovec, usize, *mut usize),
            user,
            count as usize,
            number,
            from,
            list.as_mut_ptr(),
            max,
            &raw mut n
        );
        assert_eq!(code, 0);
        list.truncate(n);
        list
    }

    pub(crate) fn flatten(&self, number: u64) -> Vec<u8> {
        let mut n = 0;
        assert_eq!(call!(self, "yaksa_flatten_size", (u64, *mut usize), number, &raw mut n), 0);
        let mut form = vec![0; n];
        assert_eq!(call!(self, "yaksa_flatten", (u64, *mut u8), number, form.as_mut_ptr()), 0);
        form
    }

    pub(crate) fn unflatten(&self, form: &[u8]) -> u64 {
        let mut number = 0;
        assert_eq!(call!(self, "yaksa_unflatten", (*mut u64, *const u8), &raw mut number, form.as_ptr()), 0);
        number
    }

    pub(crate) fn free(&self, number: u64) {
        assert_eq!(call!(self, "yaksa_type_free", (u64), number), 0);
    }

    fn pair(&self, name: &str, number: u64) -> (i64, i64) {
        let (mut lb, mut extent) = (0, 0);
        let code = match name {
            "extent" => call!(
                self,
                "yaksa_type_get_extent",
                (u64, *mut i64, *mut i64),
                number,
                &raw mut lb,
                &raw mut extent
            ),
            _ => call!(
                self,
                "yaksa_type_get_true_extent",
                (u64, *mut i64, *mut i64),
                number,
                &raw mut lb,
                &raw mut extent
            ),
        };
        assert_eq!(code, 0);
        (lb, extent)
    }

    /// Asserts that the library returns the same size and bounds for the type handle `number` as
    /// ddtc does for `t`.
    pub(crate) fn agrees(&self, number: u64, t: &Datatype) {
        let mut size = 0;
        assert_eq!(call!(self, "yaksa_type_get_size", (u64, *mut i64), number, &raw mut size), 0);
        let reported = (size, self.pair("extent", number), self.pair("true extent", number));
        assert_eq!(reported, (t.size(), (t.lb(), t.extent()), (t.true_lb(), t.true_extent())), "{t}");
    }
}

/// Types that are made twice: by the library's constructors, and as `Datatype`s of ddtc.
pub(crate) struct Mirror<'y> {
    yaksa: &'y Yaksa,
    made: HashMap<usize, (u64, Datatype)>,
    numbers: Vec<u64>,
    /// Datatypes whose addresses are keys of `made`. They are stored here so that they stay alive
    /// and no other datatype gets the same address.
    keep: Vec<Datatype>,
}

/// Decides whether the library must pad a struct whose members have the types `types`. The library
/// pads a struct if its members have different types. Returns `Some(true)` if the sizes or bounds
/// of the members differ, because their types are then certainly different. Otherwise returns
/// `None`: the members may have the same type or different types in the library, and the test
/// cannot know which.
fn several(types: &[Datatype]) -> Option<bool> {
    let seen = |t: &Datatype| (t.size(), t.lb(), t.extent(), t.true_lb(), t.true_extent());
    if types.windows(2).all(|t| seen(&t[0]) == seen(&t[1])) { None } else { Some(true) }
}

impl<'y> Mirror<'y> {
    pub(crate) fn new(yaksa: &'y Yaksa) -> Mirror<'y> {
        Mirror { yaksa, made: HashMap::new(), numbers: Vec::new(), keep: Vec::new() }
    }

    /// Makes the type `t` with the library's constructors. Returns the handle of the type that the
    /// library has made, and a `Datatype` with the elements and bounds that this type must have.
    /// They may differ from those of `t`, because other types are used for some predefined types
    /// ([`Mirror::named`]), and because the library has rules of its own for bounds.
    pub(crate) fn make(&mut self, t: &Datatype) -> (u64, Datatype) {
        if let Some(made) = self.made.get(&t.id()) {
            return made.clone();
        }
        let made = match t.expansion() {
            Some(expansion) if !matches!(t.combiner(), Combiner::Subarray { .. }) => {
                self.make(&expansion.clone())
            }
            _ => self.constructed(t),
        };
        self.keep.push(t.clone());
        self.made.insert(t.id(), made.clone());
        made
    }

    pub(crate) fn free(self) {
        for number in self.numbers {
            self.yaksa.free(number);
        }
    }

    /// Returns the handle of the library's predefined type that is used for `named`, and an equal
    /// predefined type as a `Datatype`. It may differ from `named` for two reasons: the library
    /// distinguishes integer types of C only by size and sign, and the type of a byte is used for
    /// all types that the `match` below does not list.
    fn named(&mut self, named: Named) -> (u64, Datatype) {
        let number = match named {
            Named::CBool => 1,
            Named::Char => 2,
            Named::Wchar => 5,
            Named::Int8 => 6,
            Named::Short | Named::Int16 => 16,
            Named::Int | Named::Int32 => 14,
            Named::Unsigned | Named::Uint32 => 15,
            Named::UnsignedShort => 17,
            Named::Long | Named::Int64 | Named::LongLong => 18,
            Named::UnsignedLong | Named::Uint64 => 13,
            Named::Float => 45,
            Named::Double => 46,
            Named::LongDouble => 47,
            Named::CFloatComplex => 48,
            Named::CDoubleComplex | Named::DoubleComplex => 49,
            Named::FloatInt => 51,
            Named::DoubleInt => 52,
            Named::LongInt => 53,
            Named::TwoInt => 54,
            Named::ShortInt => 55,
            Named::LongDoubleInt => 56,
            _ => 38,
        };
        // The library distinguishes integer types of C only by size and sign. All predefined types
        // that the `match` above does not list are replaced by the type of a byte (handle 38).
        let seen = match number {
            16 => Named::Int16,
            14 => Named::Int32,
            15 => Named::Uint32,
            17 => Named::Uint16,
            18 => Named::Int64,
            13 => Named::Uint64,
            49 => Named::CDoubleComplex,
            38 => Named::Uint8,
            _ => named,
        };
        (number, Datatype::named(seen))
    }

    /// Makes the children of `t`, and then `t` itself by one constructor of the library. Returns
    /// the handle of the type that the library has made, and a `Datatype` with the elements and
    /// bounds that this type must have. They may differ from those of `t`, because other types are
    /// used for some predefined types ([`Mirror::named`]), and because the library has rules of its
    /// own for bounds.
    fn constructed(&mut self, t: &Datatype) -> (u64, Datatype) {
        if let Some(named) = t.basic() {
            return self.named(named);
        }
        let below: Vec<(u64, Datatype)> = t.combiner().children().map(|child| self.make(child)).collect();
        let (number, old) = below.first().cloned().unwrap_or_else(|| (0, nothing()));
        let yaksa = self.yaksa;
        let mut made = 0u64;
        let place = &raw mut made;
        let (combiner, code) = match t.combiner().clone() {
            Combiner::Dup { .. } => {
                let code = call!(yaksa, "yaksa_type_create_dup", (u64, Info, *mut u64), number, INFO, place);
                (Combiner::Dup { oldtype: old.clone() }, code)
            }
            Combiner::Contiguous { count, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_contig",
                    (i64, u64, Info, *mut u64),
                    count,
                    number,
                    INFO,
                    place
                );
                (Combiner::Contiguous { count, oldtype: old.clone() }, code)
            }
            Combiner::Vector { count, blocklength, stride, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_vector",
                    (i64, i64, i64, u64, Info, *mut u64),
                    count,
                    blocklength,
                    stride,
                    number,
                    INFO,
                    place
                );
                (Combiner::Vector { count, blocklength, stride, oldtype: old.clone() }, code)
            }
            Combiner::Hvector { count, blocklength, stride, legacy, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_hvector",
                    (i64, i64, i64, u64, Info, *mut u64),
                    count,
                    blocklength,
                    stride,
                    number,
                    INFO,
                    place
                );
                (Combiner::Hvector { count, blocklength, stride, oldtype: old.clone(), legacy }, code)
            }
            Combiner::Indexed { blocklengths, displacements, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_indexed",
                    (i64, *const i64, *const i64, u64, Info, *mut u64),
                    displacements.len() as i64,
                    blocklengths.as_ptr(),
                    displacements.as_ptr(),
                    number,
                    INFO,
                    place
                );
                (Combiner::Indexed { blocklengths, displacements, oldtype: old.clone() }, code)
            }
            Combiner::Hindexed { blocklengths, displacements, legacy, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_hindexed",
                    (i64, *const i64, *const i64, u64, Info, *mut u64),
                    displacements.len() as i64,
                    blocklengths.as_ptr(),
                    displacements.as_ptr(),
                    number,
                    INFO,
                    place
                );
                (Combiner::Hindexed { blocklengths, displacements, oldtype: old.clone(), legacy }, code)
            }
            Combiner::IndexedBlock { blocklength, displacements, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_indexed_block",
                    (i64, i64, *const i64, u64, Info, *mut u64),
                    displacements.len() as i64,
                    blocklength,
                    displacements.as_ptr(),
                    number,
                    INFO,
                    place
                );
                (Combiner::IndexedBlock { blocklength, displacements, oldtype: old.clone() }, code)
            }
            Combiner::HindexedBlock { blocklength, displacements, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_hindexed_block",
                    (i64, i64, *const i64, u64, Info, *mut u64),
                    displacements.len() as i64,
                    blocklength,
                    displacements.as_ptr(),
                    number,
                    INFO,
                    place
                );
                (Combiner::HindexedBlock { blocklength, displacements, oldtype: old.clone() }, code)
            }
            Combiner::Struct { blocklengths, displacements, legacy, .. } => {
                let numbers: Vec<u64> = below.iter().map(|b| b.0).collect();
                let code = call!(
                    yaksa,
                    "yaksa_type_create_struct",
                    (i64, *const i64, *const i64, *const u64, Info, *mut u64),
                    numbers.len() as i64,
                    blocklengths.as_ptr(),
                    displacements.as_ptr(),
                    numbers.as_ptr(),
                    INFO,
                    place
                );
                let types = below.iter().map(|b| b.1.clone()).collect();
                (Combiner::Struct { blocklengths, displacements, types, legacy }, code)
            }
            Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_resized",
                    (u64, i64, i64, Info, *mut u64),
                    number,
                    lb,
                    extent,
                    INFO,
                    place
                );
                (Combiner::Resized { lb, extent, oldtype: old.clone() }, code)
            }
            Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
                let code = call!(
                    yaksa,
                    "yaksa_type_create_subarray",
                    (c_int, *const i64, *const i64, *const i64, c_int, u64, Info, *mut u64),
                    sizes.len() as c_int,
                    sizes.as_ptr(),
                    subsizes.as_ptr(),
                    starts.as_ptr(),
                    c_int::from(order == Order::Fortran),
                    number,
                    INFO,
                    place
                );
                (Combiner::Subarray { sizes, subsizes, starts, order, oldtype: old.clone() }, code)
            }
            other => panic!("{} is expanded", other.text_name()),
        };
        assert_eq!(code, 0, "{t}");
        if made > 0 {
            self.numbers.push(made);
        }
        // `tree` has the bounds that ddtc gives to the type. These bounds are replaced by those
        // that the library must give to the type. For most types, `plain` computes the new bounds
        // from the bounds of all copies of the children. The bounds of a resized type, and those of
        // a subarray of a type with data, stay as they are. Any other type without data becomes the
        // null type, except a duplicate, which is equal to its child.
        let tree = Datatype::new(combiner).unwrap();
        let keeps_bounds = matches!(t.combiner(), Combiner::Resized { .. } | Combiner::Bounds { .. });
        let whole = matches!(t.combiner(), Combiner::Subarray { .. });
        let tree = if keeps_bounds || (whole && old.size() > 0) {
            Datatype::bounds(tree.lb(), tree.extent(), &tree).unwrap()
        } else if tree.size() == 0 {
            if matches!(t.combiner(), Combiner::Dup { .. }) { old } else { nothing() }
        } else {
            let (lb, extent) = self.plain(made, &tree);
            Datatype::bounds(lb, extent, &tree).unwrap()
        };
        (made, tree)
    }

    /// Returns the lower bound and the extent that the library must have given to the type with the
    /// handle `made`. This type has the same constructor and children as `t`. The bounds are the
    /// minimum of the lower bounds and the maximum of the upper bounds of all copies of the
    /// children. A loop visits each of these copies. The extent of a struct may be padded.
    fn plain(&self, made: u64, t: &Datatype) -> (i64, i64) {
        let (mut lb, mut ub) = (i64::MAX, i64::MIN);
        let mut block = |child: &Datatype, length: i64, at: i64| {
            for i in 0..length {
                lb = lb.min(at + i * child.extent() + child.lb());
                ub = ub.max(at + i * child.extent() + child.ub());
            }
        };
        let mut padding = Some(false);
        match t.combiner() {
            Combiner::Dup { oldtype } => block(oldtype, 1, 0),
            Combiner::Contiguous { count, oldtype } => block(oldtype, *count, 0),
            Combiner::Vector { count, blocklength, stride, oldtype } => {
                (0..*count).for_each(|i| block(oldtype, *blocklength, i * stride * oldtype.extent()));
            }
            Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
                (0..*count).for_each(|i| block(oldtype, *blocklength, i * stride));
            }
            Combiner::Indexed { blocklengths, displacements, oldtype } => {
                let blocks = blocklengths.iter().zip(displacements.iter());
                blocks.for_each(|(&length, &d)| block(oldtype, length, d * oldtype.extent()));
            }
            Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
                blocklengths
                    .iter()
                    .zip(displacements.iter())
                    .for_each(|(&length, &d)| block(oldtype, length, d));
            }
            Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
                displacements.iter().for_each(|&d| block(oldtype, *blocklength, d * oldtype.extent()));
            }
            Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
                displacements.iter().for_each(|&d| block(oldtype, *blocklength, d));
            }
            Combiner::Struct { blocklengths, displacements, types, .. } => {
                for ((child, &length), &d) in types.iter().zip(blocklengths.iter()).zip(displacements.iter())
                {
                    block(child, length, d);
                }
                padding = several(types);
            }
            other => panic!("{} has bounds of its own", other.text_name()),
        }
        let padded = ub + (lb - ub).rem_euclid(t.alignment());
        let ub = match padding {
            Some(true) => padded,
            Some(false) => ub,
            // It is not known here whether the library treats the members as members of one type,
            // because two different datatypes of ddtc may stand for the same type of the library.
            // So the extents with and without padding are both allowed.
            None => {
                let (_, extent) = self.yaksa.pair("extent", made);
                assert!(lb + extent == ub || lb + extent == padded, "{t}");
                lb + extent
            }
        };
        (lb, ub - lb)
    }
}

/// Returns a datatype without data, which is equivalent to the library's null type.
fn nothing() -> Datatype {
    Datatype::contiguous(0, &Datatype::named(Named::Uint8)).unwrap()
}

//! Exports that create, look up, duplicate, commit and free datatypes.
//!
//! Most constructors have a form with counts of type `int` and a form with counts of type
//! `MPI_Count`. One generic function implements both forms. Its type parameter `N` is the type of
//! counts. If displacements have a different type, the type parameter `A` stands for that type.

use std::ffi::c_int;
use std::sync::Arc;

use ddtc::internal::count::Count;
use ddtc::internal::datatype::{Class, Combiner, Constants, Datatype, Distribution, Named, Order};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Handle};

use crate::arguments::{Out, Type, UNDEFINED, export, handle, input, numbers, out, to_c, tree};
use crate::guard::Outcome;

/// Creates a datatype and its handle, and writes the handle to `newtype`. After an error `newtype`
/// is unchanged. If `N` is `MPI_Count`, the datatype is marked as built by a large-count
/// constructor.
fn make<N: Count>(newtype: &Out<Type>, combiner: Combiner) -> Outcome {
    let datatype = Datatype::new(combiner)?;
    let datatype = if N::LARGE { datatype.with_large_count() } else { datatype };
    newtype.set(to_c(object::create(datatype)?));
    Ok(())
}

/// Returns the address `newtype` for the new handle, or an error of class `Arg` if it is null.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle for as long as the result is used.
unsafe fn handle_out(call: &'static str, newtype: *mut Type) -> Result<Out<Type>> {
    // SAFETY: the caller promises that `newtype` is null or valid for the write for which the
    // result is used.
    unsafe { out(call, "newtype", newtype) }
}

/// Returns the storage order that an argument of C stands for, or an error of class `Arg`.
fn order(call: &'static str, value: c_int) -> Result<Order> {
    match value {
        v if v == Constants::ABI.order_c => Ok(Order::C),
        v if v == Constants::ABI.order_fortran => Ok(Order::Fortran),
        _ => {
            let rule = "must be MPI_ORDER_C or MPI_ORDER_FORTRAN";
            Err(Error::new(ErrorClass::Arg, call, "order", value, rule))
        }
    }
}

type Numbers = Arc<[i64]>;

/// Returns the block lengths and displacements of a constructor of the indexed family or of struct.
/// `A` is the type of the displacements.
///
/// # Safety
/// Each array must be null or point to `count` initialized and aligned entries, which nothing
/// changes during the call.
unsafe fn blocks<N: Count, A: Count>(
    call: &'static str,
    count: N,
    blocklengths: *const N,
    displacements: *const A,
) -> Result<(Numbers, Numbers)> {
    // SAFETY: `numbers` needs arrays that are null or have `count` entries. The caller promises
    // this for both.
    unsafe {
        Ok((
            numbers(call, "array_of_blocklengths", blocklengths, ("count", count.wide()))?,
            numbers(call, "array_of_displacements", displacements, ("count", count.wide()))?,
        ))
    }
}

/// Returns the datatypes of the `n` handles of the argument `array_of_types`, whose length is the
/// argument `count`.
///
/// # Errors
/// The errors of [`input`]; class `Type` if a handle names no datatype.
///
/// # Safety
/// `array` must be null or point to `n` initialized and aligned handles, which nothing changes
/// during the call.
unsafe fn types(call: &'static str, n: i64, array: *const Type) -> Result<Arc<[Datatype]>> {
    // SAFETY: the caller promises that `array` is null or has `n` entries, which do not change
    // while `handles` is used.
    let handles = unsafe { input(call, "array_of_types", array, ("count", n))? };
    let trees: Result<Vec<Datatype>> = handles.iter().map(|&h| tree(call, h)).collect();
    Ok(trees?.into())
}

/// Creates a datatype of `count` successive copies of `oldtype`, for both forms of
/// `ddtc_type_contiguous`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle.
#[inline]
unsafe fn contiguous<N: Count>(count: N, oldtype: Type, newtype: *mut Type) -> Outcome {
    // SAFETY: `handle_out` needs a pointer that is null or valid for a write, which the caller
    // promises for `newtype`.
    unsafe {
        const CALL: &str = "type_contiguous";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        make::<N>(&newtype, Combiner::Contiguous { count: count.wide(), oldtype })
    }
}

export! {
    fn ddtc_type_contiguous(count: c_int, oldtype: Type, newtype: *mut Type) {
        contiguous::<c_int>(count, oldtype, newtype)
    }

    fn ddtc_type_contiguous_c(count: i64, oldtype: Type, newtype: *mut Type) {
        contiguous::<i64>(count, oldtype, newtype)
    }
}

/// Creates a datatype of `count` blocks at equal distances, for both forms of `ddtc_type_vector`.
/// The distance is given as a multiple of the extent of `oldtype`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle.
#[inline]
unsafe fn vector<N: Count>(
    count: N,
    blocklength: N,
    stride: N,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out` needs a pointer that is null or valid for a write, which the caller
    // promises for `newtype`.
    unsafe {
        const CALL: &str = "type_vector";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let (count, blocklength, stride) = (count.wide(), blocklength.wide(), stride.wide());
        make::<N>(&newtype, Combiner::Vector { count, blocklength, stride, oldtype })
    }
}

export! {
    fn ddtc_type_vector(count: c_int, blocklength: c_int, stride: c_int, oldtype: Type, newtype: *mut Type) {
        vector::<c_int>(count, blocklength, stride, oldtype, newtype)
    }

    fn ddtc_type_vector_c(count: i64, blocklength: i64, stride: i64, oldtype: Type, newtype: *mut Type) {
        vector::<i64>(count, blocklength, stride, oldtype, newtype)
    }
}

// In the functions below, `legacy` is true for the constructors of MPI-1's Fortran binding, which
// have INTEGERs as addresses. Datatypes that these constructors make decode with the combiners
// MPI_COMBINER_*_INTEGER.

/// Creates a datatype of `count` blocks at equal distances in bytes, for both forms of
/// `ddtc_type_create_hvector` and for `ddtc_type_hvector_integer`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle.
#[inline]
unsafe fn hvector<N: Count, A: Count>(
    count: N,
    blocklength: N,
    stride: A,
    oldtype: Type,
    newtype: *mut Type,
    legacy: bool,
) -> Outcome {
    // SAFETY: `handle_out` needs a pointer that is null or valid for a write, which the caller
    // promises for `newtype`.
    unsafe {
        const CALL: &str = "type_create_hvector";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let (count, blocklength, stride) = (count.wide(), blocklength.wide(), stride.wide());
        make::<N>(&newtype, Combiner::Hvector { count, blocklength, stride, oldtype, legacy })
    }
}

export! {
    fn ddtc_type_create_hvector(
        count: c_int, blocklength: c_int, stride: i64, oldtype: Type, newtype: *mut Type,
    ) {
        hvector::<c_int, i64>(count, blocklength, stride, oldtype, newtype, false)
    }

    fn ddtc_type_create_hvector_c(
        count: i64, blocklength: i64, stride: i64, oldtype: Type, newtype: *mut Type,
    ) {
        hvector::<i64, i64>(count, blocklength, stride, oldtype, newtype, false)
    }

    fn ddtc_type_hvector_integer(
        count: c_int, blocklength: c_int, stride: c_int, oldtype: Type, newtype: *mut Type,
    ) {
        hvector::<c_int, c_int>(count, blocklength, stride, oldtype, newtype, true)
    }
}

/// Creates a datatype of blocks of different lengths at displacements in units of the extent, for
/// both forms of `ddtc_type_indexed`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. Each array must be null or point to
/// `count` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn indexed<N: Count>(
    count: N,
    blocklengths: *const N,
    displacements: *const N,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out` and `blocks` need what the caller promises: `newtype` is null or valid
    // for a write, and each array is null or has `count` entries.
    unsafe {
        const CALL: &str = "type_indexed";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let (blocklengths, displacements) = blocks(CALL, count, blocklengths, displacements)?;
        make::<N>(&newtype, Combiner::Indexed { blocklengths, displacements, oldtype })
    }
}

export! {
    fn ddtc_type_indexed(
        count: c_int, blocklengths: *const c_int, displacements: *const c_int, oldtype: Type,
        newtype: *mut Type,
    ) {
        indexed::<c_int>(count, blocklengths, displacements, oldtype, newtype)
    }

    fn ddtc_type_indexed_c(
        count: i64, blocklengths: *const i64, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        indexed::<i64>(count, blocklengths, displacements, oldtype, newtype)
    }
}

/// Creates a datatype of blocks of different lengths at displacements in bytes, for both forms of
/// `ddtc_type_create_hindexed` and for `ddtc_type_hindexed_integer`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. Each array must be null or point to
/// `count` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn hindexed<N: Count, A: Count>(
    count: N,
    blocklengths: *const N,
    displacements: *const A,
    oldtype: Type,
    newtype: *mut Type,
    legacy: bool,
) -> Outcome {
    // SAFETY: `handle_out` and `blocks` need what the caller promises: `newtype` is null or valid
    // for a write, and each array is null or has `count` entries.
    unsafe {
        const CALL: &str = "type_create_hindexed";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let (blocklengths, displacements) = blocks(CALL, count, blocklengths, displacements)?;
        make::<N>(&newtype, Combiner::Hindexed { blocklengths, displacements, oldtype, legacy })
    }
}

export! {
    fn ddtc_type_create_hindexed(
        count: c_int, blocklengths: *const c_int, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        hindexed::<c_int, i64>(count, blocklengths, displacements, oldtype, newtype, false)
    }

    fn ddtc_type_create_hindexed_c(
        count: i64, blocklengths: *const i64, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        hindexed::<i64, i64>(count, blocklengths, displacements, oldtype, newtype, false)
    }

    fn ddtc_type_hindexed_integer(
        count: c_int, blocklengths: *const c_int, displacements: *const c_int, oldtype: Type,
        newtype: *mut Type,
    ) {
        hindexed::<c_int, c_int>(count, blocklengths, displacements, oldtype, newtype, true)
    }
}

/// Creates a datatype of blocks of equal length at displacements in units of the extent, for both
/// forms of `ddtc_type_create_indexed_block`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. `displacements` must be null or point
/// to `count` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn indexed_block<N: Count, A: Count>(
    count: N,
    blocklength: N,
    displacements: *const A,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out` and `numbers` need what the caller promises: `newtype` is null or valid
    // for a write, and `displacements` is null or has `count` entries.
    unsafe {
        const CALL: &str = "type_create_indexed_block";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let displacements = numbers(CALL, "array_of_displacements", displacements, ("count", count.wide()))?;
        let blocklength = blocklength.wide();
        make::<N>(&newtype, Combiner::IndexedBlock { blocklength, displacements, oldtype })
    }
}

export! {
    fn ddtc_type_create_indexed_block(
        count: c_int, blocklength: c_int, displacements: *const c_int, oldtype: Type, newtype: *mut Type,
    ) {
        indexed_block::<c_int, c_int>(count, blocklength, displacements, oldtype, newtype)
    }

    fn ddtc_type_create_indexed_block_c(
        count: i64, blocklength: i64, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        indexed_block::<i64, i64>(count, blocklength, displacements, oldtype, newtype)
    }
}

/// Creates a datatype of blocks of equal length at displacements in bytes, for both forms of
/// `ddtc_type_create_hindexed_block`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. `displacements` must be null or point
/// to `count` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn hindexed_block<N: Count, A: Count>(
    count: N,
    blocklength: N,
    displacements: *const A,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out` and `numbers` need what the caller promises: `newtype` is null or valid
    // for a write, and `displacements` is null or has `count` entries.
    unsafe {
        const CALL: &str = "type_create_hindexed_block";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let displacements = numbers(CALL, "array_of_displacements", displacements, ("count", count.wide()))?;
        let blocklength = blocklength.wide();
        make::<N>(&newtype, Combiner::HindexedBlock { blocklength, displacements, oldtype })
    }
}

export! {
    fn ddtc_type_create_hindexed_block(
        count: c_int, blocklength: c_int, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        hindexed_block::<c_int, i64>(count, blocklength, displacements, oldtype, newtype)
    }

    fn ddtc_type_create_hindexed_block_c(
        count: i64, blocklength: i64, displacements: *const i64, oldtype: Type, newtype: *mut Type,
    ) {
        hindexed_block::<i64, i64>(count, blocklength, displacements, oldtype, newtype)
    }
}

/// Creates a datatype of blocks of different datatypes at displacements in bytes, for both forms of
/// `ddtc_type_create_struct` and for `ddtc_type_struct_integer`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. Each array must be null or point to
/// `count` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn structure<N: Count, A: Count>(
    count: N,
    blocklengths: *const N,
    displacements: *const A,
    array_of_types: *const Type,
    newtype: *mut Type,
    legacy: bool,
) -> Outcome {
    // SAFETY: `handle_out`, `blocks` and `types` need what the caller promises: `newtype` is null
    // or valid for a write, and each array is null or has `count` entries.
    unsafe {
        const CALL: &str = "type_create_struct";
        let newtype = handle_out(CALL, newtype)?;
        let (blocklengths, displacements) = blocks(CALL, count, blocklengths, displacements)?;
        let types = types(CALL, count.wide(), array_of_types)?;
        make::<N>(&newtype, Combiner::Struct { blocklengths, displacements, types, legacy })
    }
}

export! {
    fn ddtc_type_create_struct(
        count: c_int, blocklengths: *const c_int, displacements: *const i64, array_of_types: *const Type,
        newtype: *mut Type,
    ) {
        structure::<c_int, i64>(count, blocklengths, displacements, array_of_types, newtype, false)
    }

    fn ddtc_type_create_struct_c(
        count: i64, blocklengths: *const i64, displacements: *const i64, array_of_types: *const Type,
        newtype: *mut Type,
    ) {
        structure::<i64, i64>(count, blocklengths, displacements, array_of_types, newtype, false)
    }

    fn ddtc_type_struct_integer(
        count: c_int, blocklengths: *const c_int, displacements: *const c_int, array_of_types: *const Type,
        newtype: *mut Type,
    ) {
        structure::<c_int, c_int>(count, blocklengths, displacements, array_of_types, newtype, true)
    }
}

/// Returns the number of dimensions, or an error of class `Arg` if it is not positive. The number
/// is checked first, because arrays of this length are read next.
fn dimensions(call: &'static str, ndims: c_int) -> Result<i64> {
    if ndims <= 0 {
        return Err(Error::new(ErrorClass::Arg, call, "ndims", ndims, "must be positive"));
    }
    Ok(i64::from(ndims))
}

/// Creates a datatype of a part of a multidimensional array, for both forms of
/// `ddtc_type_create_subarray`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. Each array must be null or point to
/// `ndims` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn subarray<N: Count>(
    ndims: c_int,
    sizes: *const N,
    subsizes: *const N,
    starts: *const N,
    order_value: c_int,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out` and `numbers` need what the caller promises: `newtype` is null or valid
    // for a write, and each array is null or has `ndims` entries, of which there are `n`.
    unsafe {
        const CALL: &str = "type_create_subarray";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let n = dimensions(CALL, ndims)?;
        let sizes = numbers(CALL, "array_of_sizes", sizes, ("ndims", n))?;
        let subsizes = numbers(CALL, "array_of_subsizes", subsizes, ("ndims", n))?;
        let starts = numbers(CALL, "array_of_starts", starts, ("ndims", n))?;
        let order = order(CALL, order_value)?;
        make::<N>(&newtype, Combiner::Subarray { sizes, subsizes, starts, order, oldtype })
    }
}

export! {
    fn ddtc_type_create_subarray(
        ndims: c_int, sizes: *const c_int, subsizes: *const c_int, starts: *const c_int, order_value: c_int,
        oldtype: Type, newtype: *mut Type,
    ) {
        subarray::<c_int>(ndims, sizes, subsizes, starts, order_value, oldtype, newtype)
    }

    fn ddtc_type_create_subarray_c(
        ndims: c_int, sizes: *const i64, subsizes: *const i64, starts: *const i64, order_value: c_int,
        oldtype: Type, newtype: *mut Type,
    ) {
        subarray::<i64>(ndims, sizes, subsizes, starts, order_value, oldtype, newtype)
    }
}

/// Returns the distribution that `value` stands for, or an error of class `Arg`. `value` is entry
/// `i` of `array_of_distribs`.
fn distribution(call: &'static str, i: usize, value: c_int) -> Result<Distribution> {
    let abi = Constants::ABI;
    match value {
        v if v == abi.distribute_block => Ok(Distribution::Block),
        v if v == abi.distribute_cyclic => Ok(Distribution::Cyclic),
        v if v == abi.distribute_none => Ok(Distribution::None),
        _ => {
            let rule = "must be MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE";
            Err(Error::new(ErrorClass::Arg, call, format!("array_of_distribs[{i}]"), value, rule))
        }
    }
}

/// Creates a datatype of the part of a distributed array that belongs to one process, for both
/// forms of `ddtc_type_create_darray`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle. Each array must be null or point to
/// `ndims` initialized and aligned entries, which nothing changes during the call.
#[inline]
unsafe fn darray<N: Count>(
    (size, rank, ndims): (c_int, c_int, c_int),
    gsizes: *const N,
    (distribs, dargs, psizes): (*const c_int, *const c_int, *const c_int),
    order_value: c_int,
    oldtype: Type,
    newtype: *mut Type,
) -> Outcome {
    // SAFETY: `handle_out`, `numbers` and `input` need what the caller promises: `newtype` is null
    // or valid for a write, and each array is null or has `ndims` entries, of which there are `n`.
    unsafe {
        const CALL: &str = "type_create_darray";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        let n = dimensions(CALL, ndims)?;
        let gsizes = numbers(CALL, "array_of_gsizes", gsizes, ("ndims", n))?;
        let distribs = input(CALL, "array_of_distribs", distribs, ("ndims", n))?;
        let distribs: Result<Vec<_>> =
            distribs.iter().enumerate().map(|(i, &d)| distribution(CALL, i, d)).collect();
        let default = Constants::ABI.distribute_dflt_darg;
        let dargs = input(CALL, "array_of_dargs", dargs, ("ndims", n))?;
        let dargs = dargs.iter().map(|&d| (d != default).then_some(i64::from(d))).collect();
        let psizes = numbers(CALL, "array_of_psizes", psizes, ("ndims", n))?;
        let order = order(CALL, order_value)?;
        make::<N>(
            &newtype,
            Combiner::Darray {
                size: size.wide(),
                rank: rank.wide(),
                gsizes,
                distribs: distribs?.into(),
                dargs,
                psizes,
                order,
                oldtype,
            },
        )
    }
}

export! {
    fn ddtc_type_create_darray(
        size: c_int, rank: c_int, ndims: c_int, gsizes: *const c_int, distribs: *const c_int,
        dargs: *const c_int, psizes: *const c_int, order_value: c_int, oldtype: Type, newtype: *mut Type,
    ) {
        darray::<c_int>((size, rank, ndims), gsizes, (distribs, dargs, psizes), order_value, oldtype, newtype)
    }

    fn ddtc_type_create_darray_c(
        size: c_int, rank: c_int, ndims: c_int, gsizes: *const i64, distribs: *const c_int, dargs: *const c_int,
        psizes: *const c_int, order_value: c_int, oldtype: Type, newtype: *mut Type,
    ) {
        darray::<i64>((size, rank, ndims), gsizes, (distribs, dargs, psizes), order_value, oldtype, newtype)
    }
}

/// Creates a datatype with the data of `oldtype`, but with another lower bound and extent, for both
/// forms of `ddtc_type_create_resized`.
///
/// # Safety
/// `newtype` must be null or valid for a write of a handle.
#[inline]
unsafe fn resized<N: Count>(oldtype: Type, lb: i64, extent: i64, newtype: *mut Type) -> Outcome {
    // SAFETY: `handle_out` needs a pointer that is null or valid for a write, which the caller
    // promises for `newtype`.
    unsafe {
        const CALL: &str = "type_create_resized";
        let newtype = handle_out(CALL, newtype)?;
        let oldtype = tree(CALL, oldtype)?;
        make::<N>(&newtype, Combiner::Resized { lb, extent, oldtype })
    }
}

export! {
    fn ddtc_type_create_resized(oldtype: Type, lb: i64, extent: i64, newtype: *mut Type) {
        resized::<c_int>(oldtype, lb, extent, newtype)
    }

    fn ddtc_type_create_resized_c(oldtype: Type, lb: i64, extent: i64, newtype: *mut Type) {
        resized::<i64>(oldtype, lb, extent, newtype)
    }
}

/// Returns a precision or range, or none if the argument is `MPI_UNDEFINED`.
fn defined(value: c_int) -> Option<i64> {
    (value != UNDEFINED).then_some(i64::from(value))
}

export! {
    fn ddtc_type_create_f90_real(p: c_int, r: c_int, newtype: *mut Type) {
        let newtype = handle_out("type_create_f90_real", newtype)?;
        make::<c_int>(&newtype, Combiner::F90Real { p: defined(p), r: defined(r) })
    }

    fn ddtc_type_create_f90_complex(p: c_int, r: c_int, newtype: *mut Type) {
        let newtype = handle_out("type_create_f90_complex", newtype)?;
        make::<c_int>(&newtype, Combiner::F90Complex { p: defined(p), r: defined(r) })
    }

    fn ddtc_type_create_f90_integer(r: c_int, newtype: *mut Type) {
        let newtype = handle_out("type_create_f90_integer", newtype)?;
        make::<c_int>(&newtype, Combiner::F90Integer { r: i64::from(r) })
    }

    fn ddtc_type_get_value_index(value: Type, index: Type, newtype: *mut Type) {
        const CALL: &str = "type_get_value_index";
        let newtype = out(CALL, "pair_type", newtype)?;
        let (value, index) = (tree(CALL, value)?, tree(CALL, index)?);
        let named = [&value, &index].iter().all(|t| matches!(t.combiner(), Combiner::Named(_)));
        match Datatype::value_index(&value, &index) {
            Ok(pair) => newtype.set(to_c(object::create(pair)?)),
            // MPI has no predefined type for some pairs of named types. By MPI 5.0, 6.9.4, a
            // request for such a pair is not an error: the result is MPI_DATATYPE_NULL.
            Err(error) if named && error.class() != ErrorClass::NoMem => newtype.set(to_c(Handle::NULL)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn ddtc_type_match_size(typeclass: c_int, size: c_int, datatype: *mut Type) {
        const CALL: &str = "type_match_size";
        let datatype = out(CALL, "datatype", datatype)?;
        let class = match typeclass {
            192 => Class::Integer,
            193 => Class::Float,
            194 => Class::Complex,
            _ => {
                let rule = "must be MPI_TYPECLASS_INTEGER, _REAL or _COMPLEX";
                return Err(Error::new(ErrorClass::Arg, CALL, "typeclass", typeclass, rule).into());
            }
        };
        // The candidates are the named types with a size in their name, MPI_INTEGER1 to
        // MPI_COMPLEX32. Other types of the same class and size, such as the types of C, do not
        // count.
        let sized = |n: &&Named| {
            n.class() == class && n.size() == i64::from(size) && n.mpi_name().ends_with(&sized_suffix(**n))
        };
        let Some(&named) = Named::ALL.iter().find(sized) else {
            let rule = "no Fortran type of that class has this size";
            return Err(Error::new(ErrorClass::Arg, CALL, "size", size, rule).into());
        };
        datatype.set(to_c(Handle::of_named(named)));
        Ok(())
    }

    fn ddtc_type_dup(oldtype: Type, newtype: *mut Type) {
        let newtype = handle_out("type_dup", newtype)?;
        match object::dup(handle(oldtype)) {
            Ok(new) => {
                newtype.set(to_c(new));
                Ok(())
            }
            Err(fault) => {
                newtype.set(to_c(Handle::NULL));
                Err(fault)
            }
        }
    }

    fn ddtc_type_commit(datatype: *mut Type) {
        let datatype = out("type_commit", "datatype", datatype)?;
        Ok(object::commit(handle(datatype.get()))?)
    }

    fn ddtc_type_free(datatype: *mut Type) {
        let datatype = out("type_free", "datatype", datatype)?;
        object::free(handle(datatype.get()))?;
        datatype.set(to_c(Handle::NULL));
        Ok(())
    }

    fn ddtc_type_parse(text: *const std::ffi::c_char, newtype: *mut Type) {
        let newtype = handle_out("type_parse", newtype)?;
        let text = crate::arguments::text("type_parse", "text", text)?;
        let datatype: Datatype = text.parse()?;
        newtype.set(to_c(object::create(datatype)?));
        Ok(())
    }
}

/// Returns the name, such as `MPI_REAL8`, of the sized Fortran type that has the class and size of
/// `named`.
fn sized_suffix(named: Named) -> String {
    let stem = match named.class() {
        Class::Integer => "INTEGER",
        Class::Float => "REAL",
        _ => "COMPLEX",
    };
    format!("MPI_{stem}{}", named.size())
}

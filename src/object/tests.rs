use std::sync::{Arc, Mutex};

use super::*;
use crate::datatype::Order;

/// Callbacks that record their calls. The copy callback returns `copy`, and the delete callback
/// fails with the code in `delete` unless that is 0.
struct Script {
    log: Arc<Mutex<Vec<String>>>,
    copy: std::result::Result<Option<usize>, i32>,
    delete: Arc<AtomicI32>,
}

impl Callbacks for Script {
    fn copy(&self, _: Handle, keyval: i32, value: usize) -> std::result::Result<Option<usize>, i32> {
        self.log.lock().unwrap().push(format!("copy {keyval} {value}"));
        self.copy
    }

    fn delete(&self, handle: Handle, keyval: i32, value: usize) -> std::result::Result<(), i32> {
        // Callbacks may call back into this module.
        let name = name(handle).unwrap().len();
        self.log.lock().unwrap().push(format!("delete {keyval} {value} {name}"));
        match self.delete.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn key(log: &Log, copy: std::result::Result<Option<usize>, i32>) -> (i32, Arc<AtomicI32>) {
    let delete = Arc::new(AtomicI32::new(0));
    let script = Script { log: Arc::clone(log), copy, delete: Arc::clone(&delete) };
    (create_keyval(Box::new(script)).unwrap(), delete)
}

fn said(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn vector() -> Handle {
    create(Datatype::vector(3, 1, 2, &Datatype::named(Named::Int)).unwrap()).unwrap()
}

fn class<T: std::fmt::Debug>(result: std::result::Result<T, impl Into<Fault>>) -> ErrorClass {
    match result.unwrap_err().into() {
        Fault::Refused(error) => error.class(),
        Fault::Callback(code) => panic!("callback {code}"),
    }
}

#[test]
fn stale_and_foreign_handles_are_refused() {
    let h = vector();
    assert_eq!(with("test", h, |o| o.datatype().size()).unwrap(), 12);
    free(h).unwrap();
    let error = with("test", h, |_| ()).unwrap_err();
    assert_eq!((error.class(), error.rule()), (ErrorClass::Type, "must not be a datatype that was freed"));
    assert_eq!(class(free(h)), ErrorClass::Type);
    let other = vector();
    assert!(with("test", h, |_| ()).is_err());
    free(other).unwrap();
    for bits in [0, 0x200, 0x204, 0x300, 4096, 0x7fff_0000_1234, u64::MAX] {
        assert_eq!(class(with("test", Handle::from_bits(bits), |_| ())), ErrorClass::Type);
    }
}

#[test]
fn a_handle_freed_by_another_thread_is_stale_here() {
    let h = vector();
    with("test", h, |_| ()).unwrap();
    std::thread::scope(|s| s.spawn(|| free(h).unwrap()).join()).unwrap();
    assert!(with("test", h, |_| ()).is_err());
}

#[test]
fn predefined_types_are_not_freed() {
    let int = Handle::of_named(Named::Int);
    assert_eq!(class(free(int)), ErrorClass::Type);
    let a = create(Datatype::f90_real(Some(15), None).unwrap()).unwrap();
    let b = create(Datatype::f90_real(Some(15), None).unwrap()).unwrap();
    assert_eq!(a, b);
    assert_eq!(class(free(a)), ErrorClass::Type);
    assert!(with("test", a, |o| o.is_predefined() && o.committed().unwrap().is_some()).unwrap());
}

#[test]
fn attributes_are_deleted_last_set_first() {
    let log = Log::default();
    let ((a, _), (b, _)) = (key(&log, Ok(None)), key(&log, Ok(None)));
    let h = vector();
    set_attribute(h, a, 1).unwrap();
    set_attribute(h, b, 2).unwrap();
    set_attribute(h, a, 3).unwrap();
    assert_eq!(said(&log), [format!("delete {a} 1 0")]);
    assert_eq!(get_attribute(h, a), Ok(Some(3)));
    free(h).unwrap();
    assert_eq!(said(&log), [format!("delete {a} 3 0"), format!("delete {b} 2 0")]);
}

#[test]
fn a_freed_keyval_lives_until_its_last_attribute() {
    let log = Log::default();
    let (a, _) = key(&log, Ok(None));
    let h = vector();
    set_attribute(h, a, 1).unwrap();
    free_keyval(a).unwrap();
    // The keyval is still in use, so it may be freed once more by its number (MPI 5.0, 7.7.2). The
    // second call changes nothing.
    free_keyval(a).unwrap();
    // The keyval is in use, so all operations work as before (MPI 5.0, 7.7.2), also on other types.
    let other = vector();
    assert_eq!((get_attribute(h, a), get_attribute(other, a)), (Ok(Some(1)), Ok(None)));
    set_attribute(h, a, 2).unwrap();
    set_attribute(other, a, 3).unwrap();
    delete_attribute(h, a).unwrap();
    assert_eq!(said(&log), [format!("delete {a} 1 0"), format!("delete {a} 2 0")]);
    free_keyval(a).unwrap();
    // A freed keyval disappears together with the last attribute that uses it.
    assert_eq!(get_attribute(other, a), Ok(Some(3)));
    free(other).unwrap();
    assert_eq!(said(&log), [format!("delete {a} 3 0")]);
    assert_eq!(class(get_attribute(h, a)), ErrorClass::Keyval);
    assert_eq!(class(set_attribute(h, a, 4)), ErrorClass::Keyval);
    assert_eq!(class(delete_attribute(h, a)), ErrorClass::Keyval);
    assert_eq!(class(free_keyval(a)), ErrorClass::Keyval);
    free(h).unwrap();
    assert!(said(&log).is_empty());
}

/// If a datatype with an attribute is duplicated, the copy of the attribute also keeps a freed
/// keyval usable.
#[test]
fn a_freed_keyval_is_copied_and_lives_in_the_copy() {
    let log = Log::default();
    let (a, _) = key(&log, Ok(Some(10)));
    let h = vector();
    set_attribute(h, a, 1).unwrap();
    free_keyval(a).unwrap();
    let d = dup(h).unwrap();
    free(h).unwrap();
    assert_eq!(get_attribute(d, a), Ok(Some(10)));
    set_attribute(d, a, 11).unwrap();
    free(d).unwrap();
    let expected = [
        format!("copy {a} 1"),
        format!("delete {a} 1 0"),
        format!("delete {a} 10 0"),
        format!("delete {a} 11 0"),
    ];
    assert_eq!(said(&log), expected);
}

/// Predefined types need no commit, whether or not they were used before, and neither do their
/// duplicates (MPI 5.0, 5.1.10).
#[test]
fn a_dup_of_a_predefined_type_is_committed() {
    let unnamed = create(Datatype::f90_real(Some(6), None).unwrap()).unwrap();
    // No other test of this process uses these types, so this is their first use.
    for old in [Handle::of_named(Named::Real2), Handle::of_named(Named::ShortInt), unnamed] {
        let d = dup(old).unwrap();
        let e = dup(d).unwrap();
        for h in [d, e] {
            assert!(with("test", h, |o| o.committed().unwrap().is_some()).unwrap());
            free(h).unwrap();
        }
    }
    let h = vector();
    let d = dup(h).unwrap();
    assert!(with("test", d, |o| o.committed().unwrap().is_none()).unwrap());
    free(d).unwrap();
    free(h).unwrap();
}

#[test]
fn a_failing_copy_undoes_the_dup() {
    let log = Log::default();
    let ((a, _), (b, _), (c, _)) = (key(&log, Ok(Some(10))), key(&log, Err(77)), key(&log, Ok(Some(30))));
    let h = vector();
    for (k, v) in [(a, 1), (b, 2), (c, 3)] {
        set_attribute(h, k, v).unwrap();
    }
    assert_eq!(dup(h), Err(Fault::Callback(77)));
    assert_eq!(said(&log), [format!("copy {a} 1"), format!("copy {b} 2"), format!("delete {a} 10 0")]);
    for (k, v) in [(a, 1), (b, 2), (c, 3)] {
        assert_eq!(get_attribute(h, k), Ok(Some(v)));
    }
    free(h).unwrap();
}

#[test]
fn a_failing_delete_stops_free() {
    let log = Log::default();
    let ((a, _), (b, fails), (c, _)) = (key(&log, Ok(None)), key(&log, Ok(None)), key(&log, Ok(None)));
    let h = vector();
    for (k, v) in [(a, 1), (b, 2), (c, 3)] {
        set_attribute(h, k, v).unwrap();
    }
    fails.store(55, Ordering::Relaxed);
    assert_eq!(free(h), Err(Fault::Callback(55)));
    assert_eq!(get_attribute(h, c), Ok(None));
    assert_eq!((get_attribute(h, b), get_attribute(h, a)), (Ok(Some(2)), Ok(Some(1))));
    assert_eq!(delete_attribute(h, b), Err(Fault::Callback(55)));
    assert_eq!(set_attribute(h, b, 9), Err(Fault::Callback(55)));
    assert_eq!(get_attribute(h, b), Ok(Some(2)));
    fails.store(0, Ordering::Relaxed);
    said(&log);
    free(h).unwrap();
    assert_eq!(said(&log), [format!("delete {b} 2 0"), format!("delete {a} 1 0")]);
}

/// What another thread does while the delete callback of an attribute runs.
type Deed = fn(Handle, i32);

/// Callbacks that record which values are deleted. While value 1 is deleted, another thread does
/// the deed. The delete callback then returns `code` for that value.
struct Meanwhile {
    deed: Deed,
    deleted: Arc<Mutex<Vec<usize>>>,
    code: std::result::Result<(), i32>,
}

impl Callbacks for Meanwhile {
    fn copy(&self, _: Handle, _: i32, value: usize) -> std::result::Result<Option<usize>, i32> {
        Ok(Some(value))
    }

    fn delete(&self, handle: Handle, keyval: i32, value: usize) -> std::result::Result<(), i32> {
        self.deleted.lock().unwrap().push(value);
        if value != 1 {
            return Ok(());
        }
        std::thread::scope(|s| s.spawn(|| (self.deed)(handle, keyval)).join()).unwrap();
        self.code
    }
}

/// Makes a type with an attribute of value 1, and calls `deletes`, which deletes the attribute.
/// Returns the result, the type, its keyval, and the list of the values that are deleted.
fn meanwhile<T>(
    deed: Deed,
    code: std::result::Result<(), i32>,
    deletes: fn(Handle, i32) -> T,
) -> (T, Handle, i32, Arc<Mutex<Vec<usize>>>) {
    let deleted = Arc::default();
    let keyval = create_keyval(Box::new(Meanwhile { deed, deleted: Arc::clone(&deleted), code })).unwrap();
    let h = vector();
    set_attribute(h, keyval, 1).unwrap();
    (deletes(h, keyval), h, keyval, deleted)
}

/// A delete callback often frees memory to which the value points, so it must not be called twice
/// for one value.
#[test]
fn two_threads_delete_an_attribute_once() {
    let deeds: [Deed; 4] = [
        |h, k| assert_eq!(class(delete_attribute(h, k)), ErrorClass::Keyval),
        |h, k| set_attribute(h, k, 2).unwrap(),
        |h, _| _ = free(h),
        |h, k| {
            let d = dup(h).unwrap();
            assert_eq!(get_attribute(d, k), Ok(None));
            free(d).unwrap();
        },
    ];
    type Call = fn(Handle, i32) -> std::result::Result<(), Fault>;
    let calls: [Call; 3] = [delete_attribute, |h, k| set_attribute(h, k, 3), |h, _| free(h)];
    for deed in deeds {
        for deletes in calls {
            let (_, h, keyval, deleted) = meanwhile(deed, Ok(()), deletes);
            let _ = free(h);
            let mut deleted = std::mem::take(&mut *deleted.lock().unwrap());
            deleted.sort_unstable();
            let values = deleted.len();
            deleted.dedup();
            assert!(deleted[0] == 1 && deleted.len() == values, "{deleted:?} of {values}");
            free_keyval(keyval).unwrap();
        }
    }
}

#[test]
fn a_call_during_a_delete_callback_counts_as_a_later_one() {
    let (done, h, k, _) = meanwhile(|h, k| set_attribute(h, k, 2).unwrap(), Ok(()), delete_attribute);
    assert_eq!((done, get_attribute(h, k)), (Ok(()), Ok(Some(2))));
    free(h).unwrap();
    let (done, h, _, _) = meanwhile(|h, _| free(h).unwrap(), Ok(()), delete_attribute);
    assert_eq!(done, Ok(()));
    assert_eq!(class(free(h)), ErrorClass::Type);
    // If the callback fails, the attribute stays, unless another call has replaced it.
    let (done, h, k, deleted) = meanwhile(|h, k| _ = delete_attribute(h, k), Err(55), delete_attribute);
    assert_eq!((done, get_attribute(h, k)), (Err(Fault::Callback(55)), Ok(Some(1))));
    assert_eq!(free(h), Err(Fault::Callback(55)));
    assert_eq!(*deleted.lock().unwrap(), [1, 1]);
    let (done, h, k, deleted) = meanwhile(|h, k| set_attribute(h, k, 2).unwrap(), Err(55), delete_attribute);
    assert_eq!((done, get_attribute(h, k)), (Err(Fault::Callback(55)), Ok(Some(2))));
    free(h).unwrap();
    assert_eq!(*deleted.lock().unwrap(), [1, 2]);
}

#[test]
fn a_dup_shares_the_kernel_and_has_its_own_attributes() {
    let log = Log::default();
    let ((a, _), (b, _)) = (key(&log, Ok(Some(10))), key(&log, Ok(None)));
    let h = vector();
    commit(h).unwrap();
    set_attribute(h, a, 1).unwrap();
    set_attribute(h, b, 2).unwrap();
    set_name(h, b"old").unwrap();
    let d = dup(h).unwrap();
    assert_eq!((get_attribute(d, a), get_attribute(d, b)), (Ok(Some(10)), Ok(None)));
    assert_eq!(name(d).unwrap(), b"");
    let committed = |h| with("test", h, |o| o.committed().unwrap().cloned()).unwrap().unwrap();
    assert!(committed(h).shares_layout(&committed(d)));
    free(h).unwrap();
    assert_eq!(said(&log).len(), 4);
    let inner = children(d).unwrap();
    assert_eq!(get_attribute(inner[0], a), Ok(None));
    free(inner[0]).unwrap();
    free(d).unwrap();
}

#[test]
fn names_of_types() {
    assert_eq!(name(Handle::of_named(Named::Double)).unwrap(), b"MPI_DOUBLE");
    // A type that has two names returns the one of which the other is a synonym (MPI 5.0, 3.2.2).
    assert_eq!(name(Handle::of_named(Named::LongLong)).unwrap(), b"MPI_LONG_LONG_INT");
    assert_eq!(name(Handle::of_named(Named::CFloatComplex)).unwrap(), b"MPI_C_COMPLEX");
    let h = vector();
    assert_eq!(name(h).unwrap(), b"");
    set_name(h, &[b'x'; 500]).unwrap();
    assert_eq!(name(h).unwrap().len(), MAX_NAME);
    free(h).unwrap();
}

#[test]
fn integers_for_fortran() {
    assert_eq!(to_integer(Handle::of_named(Named::Integer)), Ok(0x219));
    assert_eq!(from_integer(0x219), Ok(Handle::of_named(Named::Integer)));
    let h = vector();
    let i = to_integer(h).unwrap();
    assert!(i >= 4096);
    assert_eq!((to_integer(h), from_integer(i)), (Ok(i), Ok(h)));
    free(h).unwrap();
    assert_eq!(class(from_integer(i)), ErrorClass::Type);
    assert_eq!(class(from_integer(-1)), ErrorClass::Type);
}

#[test]
fn windows() {
    let n = 1_000_000usize;
    let lengths: Vec<i64> = (0..n as i64).map(|i| i % 3).collect();
    let displacements: Vec<i64> = (0..n as i64).map(|i| 4 * i).collect();
    let t = Datatype::indexed(&lengths, &displacements, &Datatype::named(Named::Int)).unwrap();
    assert_eq!(window::envelope(&t), Ok((1_000_000, window::Early::Indexed)));
    let w = window::window(&t, 999_998, 10).unwrap();
    assert_eq!((w.blocklengths, w.displacements.len(), w.types.len()), (&lengths[999_998..], 2, 1));
    let w = window::window(&t, i32::MAX, i32::MAX).unwrap();
    assert_eq!((w.blocklengths.len(), w.types.len()), (0, 1));
    assert_eq!(class(window::window(&t, 0, 0)), ErrorClass::Count);
    assert_eq!(class(window::window(&t, -1, 1)), ErrorClass::Arg);
    let int = Datatype::named(Named::Int);
    let slab = Datatype::subarray(&[4], &[2], &[1], Order::C, &int).unwrap();
    let error = window::envelope(&slab).unwrap_err();
    assert_eq!((error.class(), error.value()), (ErrorClass::Type, "MPI_COMBINER_SUBARRAY"));
    assert_eq!(window::envelope(&int), Ok((1, window::Early::Basic)));
    let huge = Datatype::contiguous(1 << 31, &int).unwrap();
    assert_eq!(class(window::envelope(&huge)), ErrorClass::ValueTooLarge);
}

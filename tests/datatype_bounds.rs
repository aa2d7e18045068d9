//! Checks the size, the bounds and the true bounds of datatypes of every constructor against values
//! that were worked out by hand from MPI 5.0, section 5.1.

use ddtc::internal::datatype::Datatype;
use ddtc::internal::methods::*;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A datatype and what is expected of it: its text, then its size, lower bound, extent, true lower
/// bound and true extent in bytes.
type Row = (&'static str, i64, i64, i64, i64, i64);

const ROWS: &[Row] = &[
    ("int", 4, 0, 4, 0, 4),
    ("double_int", 12, 0, 16, 0, 12),
    ("long_double_int", 20, 0, 32, 0, 20),
    ("lb", 0, 0, 0, 0, 0),
    ("dup(resized(-4,12,int))", 4, -4, 12, 0, 4),
    ("contiguous(5,double)", 40, 0, 40, 0, 40),
    ("contiguous(2,double_int)", 24, 0, 32, 0, 28),
    // The example of MPI 5.0, section 5.1.6, shows that the markers of bounds of a resized type are
    // repeated together with the copies of the type.
    ("resized(-3,9,int)", 4, -3, 9, 0, 4),
    ("contiguous(2,resized(-3,9,int))", 8, -3, 18, 0, 13),
    // If the extent of the element type is negative, each copy lies below the copy before it.
    ("contiguous(3,resized(0,-8,int))", 12, -16, 8, -16, 20),
    ("vector(3,2,4,int)", 24, 0, 40, 0, 40),
    ("vector(3,2,-4,int)", 24, -32, 40, -32, 40),
    ("vector(3,1,0,int)", 12, 0, 4, 0, 4),
    // Each constructor adds alignment padding, which MPI calls epsilon, to the extent: the two
    // integers here span 9 bytes, which are rounded up to 12.
    ("hvector(2,1,5,int)", 8, 0, 12, 0, 9),
    ("hvector(2,1,-5,int)", 8, -5, 12, -5, 9),
    ("hindexed([1],[2],int)", 4, 2, 4, 2, 4),
    ("hindexed([1,1],[-3,8],short)", 4, -3, 14, -3, 13),
    ("indexed([2,0,1],[3,100,-1],double)", 24, -8, 48, -8, 48),
    ("indexed_block(2,[5,1],float)", 16, 4, 24, 4, 24),
    ("hindexed_block(2,[5,1],char)", 4, 1, 6, 1, 6),
    // This example is from MPI 5.0, section 5.1: the type map {(double, 0), (char, 8)} has extent
    // 16.
    ("struct([1,1],[0,8],[double,char])", 9, 0, 16, 0, 9),
    ("struct([1,1,3],[0,8,16],[int,double,float])", 24, 0, 32, 0, 28),
    // A marker of bounds inside a member of a structure persists and determines the bounds of the
    // structure, even if data of other members lies outside of these bounds.
    ("struct([1,1],[0,100],[resized(0,8,int),int])", 8, 0, 8, 0, 104),
    ("struct([1,1],[0,100],[resized(0,8,int),resized(0,8,int)])", 8, 0, 108, 0, 104),
    // The alignment padding (epsilon) of a member is not part of the type map of the structure.
    ("struct([1,1],[0,9],[struct([1,1],[0,8],[double,char]),char])", 10, 0, 16, 0, 10),
    // The legacy markers `lb` and `ub` set the lower and the upper bound. If a type has only one of
    // these markers, the other bound follows from the type's data.
    ("struct([1,1,1],[-4,0,12],[lb,int,ub])", 4, -4, 16, 0, 4),
    ("struct([1,1],[0,6],[int,ub])", 4, 0, 6, 0, 4),
    ("struct([1,1],[-3,0],[lb,int])", 4, -3, 8, 0, 4),
    ("contiguous(2,struct([1,1],[0,6],[int,ub]))", 8, 0, 12, 0, 10),
    // `resized` removes the markers of bounds of the type that it resizes, including the legacy
    // markers `lb` and `ub`.
    ("resized(0,4,struct([1,1,1],[-4,0,12],[lb,int,ub]))", 4, 0, 4, 0, 4),
    // A type that has neither an element nor a marker of bounds has size 0 and extent 0.
    ("contiguous(0,resized(-3,9,int))", 0, 0, 0, 0, 0),
    ("vector(3,0,7,resized(-3,9,int))", 0, 0, 0, 0, 0),
    ("vector(0,3,7,int)", 0, 0, 0, 0, 0),
    ("indexed([0,0],[3,4],resized(-3,9,int))", 0, 0, 0, 0, 0),
    ("indexed([],[],int)", 0, 0, 0, 0, 0),
    ("hindexed_block(0,[8,9],int)", 0, 0, 0, 0, 0),
    ("struct([],[],[])", 0, 0, 0, 0, 0),
    // A member with a block length of 0 adds neither data nor markers of bounds to a structure.
    ("struct([0,1],[-100,4],[resized(0,1000,int),int])", 4, 4, 4, 4, 4),
    // The alignment of a member without elements does not affect the extent of a structure.
    ("struct([0,1],[0,0],[double,int])", 4, 0, 4, 0, 4),
    // If a type consists only of markers of bounds, a constructor around it keeps and repeats the
    // markers.
    ("resized(2,16,contiguous(0,int))", 0, 2, 16, 0, 0),
    ("contiguous(3,resized(2,16,contiguous(0,int)))", 0, 2, 48, 0, 0),
    ("struct([1,1],[0,8],[resized(2,16,struct([],[],[])),int])", 4, 2, 16, 8, 4),
    ("struct([1],[8],[lb])", 0, 8, 0, 0, 0),
    ("struct([1],[8],[ub])", 0, 8, 0, 0, 0),
    // `subarray` puts markers of bounds around the whole array and removes the markers of the
    // element type.
    ("subarray([4,8],[1,3],[2,1],C,double)", 24, 0, 256, 136, 24),
    ("subarray([4,8],[1,3],[2,1],Fortran,double)", 24, 0, 256, 48, 72),
    ("subarray([4],[2],[1],C,resized(-4,12,int))", 8, 0, 48, 12, 16),
    // In this `darray`, the first dimension has 6 elements and is distributed cyclic(2) over 2
    // processes. The second dimension has 4 elements and is distributed in blocks of 2. Process 1
    // has coordinates (0, 1).
    ("darray(4,1,[6,4],[cyclic,block],[2,default],[2,2],Fortran,double)", 64, 0, 192, 96, 96),
    // The `darray` of a process that owns no element still has the extent of the whole array.
    ("darray(3,2,[2],[block],[default],[3],C,int)", 0, 0, 8, 0, 0),
    ("f90_real(15,307)", 8, 0, 8, 0, 8),
    ("f90_complex(6,37)", 8, 0, 8, 0, 8),
    ("f90_integer(18)", 8, 0, 8, 0, 8),
    ("value_index(double,int64_t)", 16, 0, 16, 0, 16),
    ("value_index(long,short)", 10, 0, 16, 0, 10),
    ("bounds(0,9,hvector(2,1,5,int))", 8, 0, 9, 0, 9),
    ("contiguous(2,bounds(0,9,hvector(2,1,5,int)))", 16, 0, 18, 0, 18),
];

#[test]
fn by_hand() {
    let mut wrong = String::new();
    for &(text, size, lb, extent, true_lb, true_extent) in ROWS {
        let t = parse(text);
        let got = (t.size(), t.lb(), t.extent(), t.true_lb(), t.true_extent());
        if got != (size, lb, extent, true_lb, true_extent) {
            wrong += &format!("{text}: {got:?}, want {:?}\n", (size, lb, extent, true_lb, true_extent));
        }
        assert_eq!(t.ub() - t.lb(), t.extent());
        if let Some(expansion) = t.expansion() {
            assert_eq!(
                (t.size(), t.lb(), t.ub(), t.true_lb(), t.true_ub()),
                (expansion.size(), expansion.lb(), expansion.ub(), expansion.true_lb(), expansion.true_ub()),
                "{text}"
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

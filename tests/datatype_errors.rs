//! Tests of invalid input. The first group breaks the rules of each constructor, and checks the
//! class of the error and the constructor, argument and value in its message. The second group has
//! errors in the text notation of datatypes.

use ddtc::internal::datatype::{Datatype, Distribution, Named, Order};
use ddtc::internal::error::ErrorClass;
use ddtc::internal::methods::*;

use ErrorClass::{Arg, Count, Type, ValueTooLarge};

const MAX: i64 = i64::MAX;

/// Each row has the text of an invalid datatype, the class of the expected error, and the start of
/// the expected message.
const ROWS: &[(&str, ErrorClass, &str)] = &[
    ("contiguous(-1,int)", Count, "contiguous: count = -1: must not be negative"),
    ("contiguous(4611686018427387904,int)", ValueTooLarge, "contiguous: count = 4611686018427387904:"),
    ("contiguous(3,resized(0,4611686018427387904,int))", ValueTooLarge, "contiguous: count = 3:"),
    ("vector(-1,1,1,int)", Count, "vector: count = -1:"),
    ("vector(1,-1,1,int)", Arg, "vector: blocklength = -1:"),
    ("vector(2,1,9223372036854775807,int)", ValueTooLarge, "vector: stride = 9223372036854775807:"),
    ("vector(2,4611686018427387904,1,int)", ValueTooLarge, "vector: "),
    ("hvector(-2,1,1,int)", Count, "hvector: count = -2:"),
    ("hvector(1,-2,1,int)", Arg, "hvector: blocklength = -2:"),
    ("hvector(3,1,9223372036854775807,int)", ValueTooLarge, "hvector: stride = 9223372036854775807:"),
    ("hvector(3,1,-9223372036854775808,int)", ValueTooLarge, "hvector: stride = -9223372036854775808:"),
    ("hvector_integer(3,-1,0,int)", Arg, "hvector_integer: blocklength = -1:"),
    ("hvector(4611686018427387904,1,0,int)", ValueTooLarge, "hvector: count = 4611686018427387904:"),
    ("indexed([1,2,-3],[0,1,2],int)", Arg, "indexed: blocklengths[2] = -3: must not be negative"),
    (
        "indexed([1,2],[0],int)",
        Arg,
        "indexed: displacements = 1 entries: must have as many entries as blocklengths",
    ),
    (
        "indexed([1,1],[0,4611686018427387904],int)",
        ValueTooLarge,
        "indexed: displacements[1] = 4611686018427387904:",
    ),
    (
        "hindexed([9223372036854775807,9223372036854775807,9223372036854775807,9223372036854775807],[0,0,0,0],resized(0,0,contiguous(9223372036854775807,byte)))",
        ValueTooLarge,
        "hindexed: blocklengths = 9223372036854775807:",
    ),
    ("indexed([4611686018427387904],[0],int)", ValueTooLarge, "indexed: displacements[0] = 0:"),
    (
        "hindexed([1,1],[0,9223372036854775807],int)",
        ValueTooLarge,
        "hindexed: displacements = 9223372036854775807:",
    ),
    ("hindexed([1,1],[-9223372036854775808,0],int)", ValueTooLarge, "hindexed: displacements = "),
    ("hindexed([1],[0,1],int)", Arg, "hindexed: displacements = 2 entries:"),
    (
        "hindexed([4611686018427387904],[0],resized(0,0,int))",
        ValueTooLarge,
        "hindexed: blocklengths = 46116860",
    ),
    ("indexed_block(-1,[0],int)", Arg, "indexed_block: blocklength = -1:"),
    ("indexed_block(1,[4611686018427387904],int)", ValueTooLarge, "indexed_block: displacements[0] = 4611"),
    ("hindexed_block(-1,[0],int)", Arg, "hindexed_block: blocklength = -1:"),
    ("hindexed_block(9223372036854775807,[0],int)", ValueTooLarge, "hindexed_block: "),
    ("struct([1],[0,8],[int])", Arg, "struct: displacements = 2 entries:"),
    ("struct([1],[0],[int,int])", Arg, "struct: types = 2 entries:"),
    ("struct([1,-1],[0,8],[int,int])", Arg, "struct: blocklengths[1] = -1:"),
    ("struct([1,9223372036854775807],[0,8],[int,int])", ValueTooLarge, "struct: displacements[1] = 8:"),
    (
        "struct([1,1],[0,9223372036854775806],[int,int])",
        ValueTooLarge,
        "struct: displacements = 92233720368547",
    ),
    ("resized(9223372036854775807,1,int)", ValueTooLarge, "resized: extent = 1:"),
    ("bounds(9223372036854775807,1,int)", ValueTooLarge, "bounds: extent = 1:"),
    ("subarray([],[],[],C,int)", Arg, "subarray: ndims = 0: must be positive"),
    ("subarray([4],[2,2],[0],C,int)", Arg, "subarray: subsizes = 2 entries:"),
    ("subarray([4],[2],[],C,int)", Arg, "subarray: starts = 0 entries:"),
    ("subarray([0],[1],[0],C,int)", Arg, "subarray: sizes[0] = 0: must be positive"),
    ("subarray([4,4],[1,0],[0,0],C,int)", Arg, "subarray: subsizes[1] = 0: must be positive"),
    ("subarray([4],[-1],[0],C,int)", Arg, "subarray: subsizes[0] = -1:"),
    ("subarray([4],[5],[0],C,int)", Arg, "subarray: subsizes[0] = 5: must be at most sizes[0], which is 4"),
    (
        "subarray([4],[3],[2],C,int)",
        Arg,
        "subarray: starts[0] = 2: must be from 0 to sizes[0] - subsizes[0], which is 1",
    ),
    ("subarray([4],[3],[-1],C,int)", Arg, "subarray: starts[0] = -1:"),
    (
        "subarray([4294967296,2147483648],[1,1],[0,0],C,int)",
        ValueTooLarge,
        "subarray: sizes[0] = 4294967296:",
    ),
    ("darray(2,0,[],[],[],[],C,int)", Arg, "darray: ndims = 0:"),
    ("darray(2,0,[4],[block,block],[1],[2],C,int)", Arg, "darray: distribs = 2 entries:"),
    ("darray(2,0,[4],[block],[],[2],C,int)", Arg, "darray: dargs = 0 entries:"),
    ("darray(2,0,[4],[block],[default],[2,1],C,int)", Arg, "darray: psizes = 2 entries:"),
    ("darray(0,0,[4],[block],[default],[2],C,int)", Arg, "darray: size = 0:"),
    (
        "darray(2,2,[4],[block],[default],[2],C,int)",
        Arg,
        "darray: rank = 2: must be from 0 to size - 1, which is 1",
    ),
    ("darray(2,-1,[4],[block],[default],[2],C,int)", Arg, "darray: rank = -1:"),
    ("darray(2,0,[0],[block],[default],[2],C,int)", Arg, "darray: gsizes[0] = 0:"),
    ("darray(2,0,[4],[block],[default],[-2],C,int)", Arg, "darray: psizes[0] = -2:"),
    (
        "darray(3,0,[4],[block],[default],[2],C,int)",
        Arg,
        "darray: size = 3: must be the product of psizes, which is 2",
    ),
    (
        "darray(1,0,[4,4],[block,block],[default,default],[4294967296,4294967296],C,int)",
        Arg,
        "darray: size = 1: must be the product of psizes, which is too large",
    ),
    ("darray(2,0,[4],[none],[default],[2],C,int)", Arg, "darray: psizes[0] = 2: must be 1 where"),
    ("darray(2,0,[4],[cyclic],[0],[2],C,int)", Arg, "darray: dargs[0] = 0: must be positive or the default"),
    (
        "darray(2,0,[4],[block],[1],[2],C,int)",
        Arg,
        "darray: dargs[0] = 1: blocks times psizes[0] = 2 must cover",
    ),
    (
        "darray(1,0,[4611686018427387904],[block],[default],[1],C,int)",
        ValueTooLarge,
        "darray: gsizes[0] = 4611",
    ),
    ("f90_real(undefined,undefined)", Arg, "f90_real: p = undefined:"),
    ("f90_real(-1,2)", Arg, "f90_real: p = -1:"),
    ("f90_real(34,2)", Arg, "f90_real: p = 34:"),
    ("f90_complex(3,4932)", Arg, "f90_complex: r = 4932:"),
    ("f90_integer(39)", Arg, "f90_integer: r = 39:"),
    ("f90_integer(-1)", Arg, "f90_integer: r = -1:"),
    ("value_index(c_bool,int)", Type, "value_index: value = c_bool:"),
    ("value_index(int,float)", Type, "value_index: index = float:"),
    ("value_index(dup(int),int)", Type, "value_index: value = dup:"),
    ("value_index(int,dup(int))", Type, "value_index: index = dup:"),
];

#[test]
fn constructors_refuse() {
    for (text, class, message) in ROWS {
        let error = text.parse::<Datatype>().map(|t| t.to_string()).unwrap_err();
        assert_eq!(error.class(), *class, "{text}: {error}");
        assert!(error.to_string().starts_with(message), "{text}: {error}");
        assert!(error.to_string().ends_with('^'), "{text}: {error}");
    }
}

#[test]
fn errors_without_text_have_no_caret() {
    let int = Datatype::named(Named::Int);
    let error = Datatype::indexed(&[1, -2], &[0, 1], &int).unwrap_err();
    assert_eq!(error.to_string(), "indexed: blocklengths[1] = -2: must not be negative");
    assert_eq!((error.operation(), error.argument(), error.value()), ("indexed", "blocklengths[1]", "-2"));
    let distribs = [Distribution::Block];
    assert!(Datatype::darray(1, 0, &[1], &distribs, &[], &[1], Order::C, &int).is_err());
}

/// Tests that extreme arguments are accepted if the result is representable, although a more
/// cautious check would refuse them, and that arguments just beyond the limit are refused.
#[test]
fn limits_are_exact() {
    let byte = Datatype::named(Named::Byte);
    let whole = Datatype::contiguous(MAX, &byte).unwrap();
    assert_eq!((whole.size(), whole.extent()), (MAX, MAX));
    assert!(Datatype::contiguous(2, &whole).is_err());
    assert!(Datatype::contiguous(1, &whole).is_ok());
    // A stride that is used for a single block or for empty blocks has no effect, and neither has
    // the displacement of an empty block. So the greatest values are accepted for both.
    assert!(Datatype::vector(1, 1, MAX, &whole).is_ok());
    assert!(Datatype::vector(5, 0, MAX, &whole).is_ok());
    let t = Datatype::indexed(&[0, 1], &[MAX, 0], &Datatype::named(Named::Int)).unwrap();
    assert_eq!((t.size(), t.ub()), (4, 4));
    // If the data of a type reach from one end of the address range to the other, the extent of the
    // type does not fit into 64 bits, and the type is refused.
    assert!(Datatype::hindexed(&[1, 1], &[i64::MIN, 0], &byte).is_err());
    let t = Datatype::hindexed(&[1, 1], &[i64::MIN + 2, 0], &byte).unwrap();
    assert_eq!((t.lb(), t.ub(), t.extent()), (i64::MIN + 2, 1, MAX));
    let t = Datatype::hindexed(&[1], &[MAX - 1], &byte).unwrap();
    assert_eq!((t.lb(), t.ub()), (MAX - 1, MAX));
    let t = Datatype::hindexed(&[1], &[i64::MIN], &byte).unwrap();
    assert_eq!((t.lb(), t.ub()), (i64::MIN, i64::MIN + 1));
    // All copies of `still` lie in one place, so of the properties of a contiguous type only the
    // size can overflow.
    let still = Datatype::resized(0, 0, &Datatype::named(Named::Int)).unwrap();
    assert_eq!(Datatype::contiguous(MAX / 4, &still).unwrap().size(), MAX / 4 * 4);
    assert!(Datatype::contiguous(MAX / 4 + 1, &still).is_err());
    // Huge counts are valid if the type that is repeated has no elements.
    let nothing = Datatype::contiguous(0, &still).unwrap();
    assert_eq!(Datatype::vector(MAX, MAX, MAX, &nothing).unwrap().extent(), 0);
    // This type consists only of markers of bounds, which lie far from displacement 0.
    let marked = Datatype::resized(MAX - 4, 4, &nothing).unwrap();
    assert_eq!((marked.lb(), marked.ub()), (MAX - 4, MAX));
    assert!(Datatype::contiguous(2, &marked).is_err());
    assert_eq!(Datatype::contiguous(1 << 60, &Datatype::named(Named::Int)).unwrap().size(), 1 << 62);
    let t = Datatype::darray(
        1 << 40,
        (1 << 40) - 1,
        &[1 << 50],
        &[Distribution::Cyclic],
        &[Some(MAX)],
        &[1 << 40],
        Order::C,
        &byte,
    )
    .unwrap();
    assert_eq!((t.size(), t.extent(), t.type_map().count()), (0, 1 << 50, 0));
}

#[test]
fn text_errors_point_at_the_place() {
    let rows = [
        ("", "expected a datatype\n  \n  ^"),
        (
            "vector(1,2,3,foo)",
            "'foo': expected a datatype or constructor\n  vector(1,2,3,foo)\n               ^",
        ),
        ("vector(1,2,x,int)", "expected a number\n  vector(1,2,x,int)\n             ^"),
        ("vector(1,2,int)", "expected a number\n  vector(1,2,int)\n             ^"),
        ("vector(1,2,3,int", "expected `)`\n  vector(1,2,3,int\n                  ^"),
        ("vector(1,2,3)", "expected `,` and `oldtype`\n  vector(1,2,3)\n              ^"),
        ("vector", "expected `(`\n  vector\n        ^"),
        ("int int", "expected the end of the text\n  int int\n      ^"),
        ("contiguous(99999999999999999999,int)", "the number does not fit in 64 bits\n  contiguous("),
        ("vector(count=1,stride=2,3,int)", "'stride': this argument is `blocklength`"),
        ("subarray([1],[1],[0],D,int)", "expected `C` or `Fortran`"),
        ("darray(1,0,[4],[blok],[1],[1],C,int)", "expected `block` or `cyclic` or `none`"),
        ("darray(1,0,[4],[block],[x],[1],C,int)", "expected a number or `default`"),
        ("f90_real(x,1)", "expected a number or `undefined`"),
        ("struct([1],[0],int)", "expected `[`"),
        ("struct([1],[0],[int", "expected `,` or `]`"),
        ("indexed([1,],[0],int)", "expected a number"),
        ("let int = double; int", "expected a name that is not a datatype's"),
        ("let a = double; let a = int; a", "'a': this name is defined already"),
        ("let a = double a", "expected `;`"),
        ("a", "line 1, column 1 = 'a': expected a datatype or constructor"),
        ("let a-b = int; a-b", "'a-b': expected a name"),
        ("let \u{e9} = int; \u{e9}", "expected a name"),
        ("let -5 = int; -5", "'-5': expected a name"),
        ("contiguous(2,\nvector(1,-2,3,\nint))", "must not be negative\n  vector(1,-2,3,\n           ^"),
        (
            "indexed([1,2, -3],[0,1,2],int)",
            "must not be negative\n  indexed([1,2, -3],[0,1,2],int)\n                ^",
        ),
        (
            "indexed([1,2],[0,4611686018427387904],int)",
            "would not fit in 64 bits\n  indexed([1,2],[0,4611686018427387904],int)\n                   ^",
        ),
        (
            "contiguous(2,größe)",
            "'größe': expected a datatype or constructor\n  contiguous(2,größe)\n               ^",
        ),
        ("é", "expected a datatype or constructor\n  é\n  ^"),
        ("contiguous(1,int)é", "expected the end of the text\n  contiguous(1,int)é\n                   ^"),
    ];
    for (text, part) in rows {
        let error = text.parse::<Datatype>().map(|t| t.to_string()).unwrap_err().to_string();
        assert!(error.contains(part), "{text}:\n{error}\nwanted:\n{part}");
    }
    // If the line with the error is long, the message shows only a part of it.
    let long = format!("indexed([{}x],[],int)", "1,".repeat(100_000));
    let error = long.parse::<Datatype>().map(|t| t.to_string()).unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
}

/// Tests that any text gives a datatype or an error, and never a panic. Each datatype that results
/// is printed, and parsing the printed text must give an equal datatype.
#[test]
fn mangled_texts() {
    let seeds = [
        "let t0 = struct([1,1,3],[0,8,16],[int,double,float]); vector(count=34, blocklength=10, stride=64, t0)",
        "darray(4,1,[6,4],[cyclic,block],[2,default],[2,2],Fortran,hindexed([1,2],[0,4096],2int))",
        "subarray([4,8],[1,3],[2,1],C,resized(-3,9,f90_real(undefined,307))) # comment",
    ];
    let mut state = 12345u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let alphabet: Vec<char> = "()[],=;-_#0123456789 \nabcxéß\u{0}".chars().collect();
    let mut parsed = 0;
    for round in 0..20_000 {
        let mut text: Vec<char> = seeds[round % seeds.len()].chars().collect();
        for _ in 0..1 + random(3) {
            let at = random(text.len());
            match random(3) {
                0 => {
                    text.remove(at);
                }
                1 => text.insert(at, alphabet[random(alphabet.len())]),
                _ => text[at] = alphabet[random(alphabet.len())],
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(t) = text.parse::<Datatype>() {
            parsed += 1;
            assert_eq!(t.to_string().parse::<Datatype>().unwrap(), t, "{text}");
        }
    }
    assert!(parsed > 500, "{parsed}");
}

/// Tests that extreme values of arguments give a datatype or an error, and never a panic. Each
/// datatype that results must be consistent in itself.
#[test]
fn extreme_arguments() {
    let extremes =
        [i64::MIN, i64::MIN + 1, -(1 << 32), -1, 0, 1, 2, 3, 1 << 31, 1 << 32, 1 << 62, MAX - 1, MAX];
    let int = Datatype::named(Named::Int);
    // Make element types with extreme bounds: resized types, displaced elements and markers of
    // bounds, and huge counts in one place. Element types that the constructors refuse are left
    // out.
    let mut children = vec![int.clone(), "lb".parse().unwrap(), "contiguous(0,int)".parse().unwrap()];
    for lb in extremes {
        for extent in [i64::MIN, -1, 0, 1, MAX] {
            children.extend(Datatype::resized(lb, extent, &int));
        }
        children.extend(Datatype::hindexed(&[1], &[lb], &int));
        children.extend(Datatype::hindexed(&[1], &[lb], &"ub".parse().unwrap()));
        children.extend(Datatype::contiguous(lb, &Datatype::resized(0, 0, &int).unwrap()));
    }
    // Checks the result of one constructor. A datatype must have consistent bounds, contain the
    // first entries of its type map within its true bounds, print as a text that parses to an equal
    // datatype, and agree with its expansion. An error must name an argument and must not be an
    // internal error.
    let (mut built, mut refused) = (0, 0);
    let mut see = |t: ddtc::internal::error::Result<Datatype>| match t {
        Ok(t) => {
            built += 1;
            assert_eq!(t.ub().checked_sub(t.lb()), Some(t.extent()));
            assert!(t.size() >= 0 && t.true_extent() >= 0);
            for (basic, displacement) in t.type_map().take(3) {
                assert!(t.true_lb() <= displacement && displacement + basic.size() <= t.true_ub(), "{t}");
            }
            assert_eq!(t.to_string().parse::<Datatype>().unwrap(), t);
            if let Some(expansion) = t.expansion() {
                assert_eq!((t.true_lb(), t.true_ub()), (expansion.true_lb(), expansion.true_ub()));
            }
        }
        Err(error) => {
            refused += 1;
            assert!(!error.argument().is_empty(), "{error}");
            assert_ne!(error.class(), ErrorClass::Intern, "{error}");
        }
    };
    // Call each constructor with each of the element types, and with all pairs of extreme values in
    // two of the constructor's arguments.
    for t in &children {
        for a in extremes {
            see(Datatype::contiguous(a, t));
            see(Datatype::f90_real(Some(a), None));
            see(Datatype::f90_integer(a));
            for b in extremes {
                see(Datatype::resized(a, b, t));
                see(Datatype::bounds(a, b, t));
                see(Datatype::vector(2, a, b, t));
                see(Datatype::vector(a, 1, b, t));
                see(Datatype::hvector(a, 2, b, t));
                see(Datatype::hvector(3, a, b, t));
                see(Datatype::indexed(&[a, 1], &[b, 0], t));
                see(Datatype::hindexed(&[1, a], &[0, b], t));
                see(Datatype::hindexed(&[1, 1, 0], &[a, b, 7], t));
                see(Datatype::indexed_block(a, &[b, 0], t));
                see(Datatype::hindexed_block(1, &[a, b], t));
                see(Datatype::structure(&[1, a], &[0, b], &[int.clone(), t.clone()]));
                see(Datatype::structure(&[1, 1], &[a, b], &[t.clone(), int.clone()]));
                see(Datatype::subarray(&[a, 4], &[1, 2], &[b, 1], Order::C, t));
                see(Datatype::subarray(&[a, 4], &[b, 2], &[0, 1], Order::Fortran, t));
                for distribution in [Distribution::Block, Distribution::Cyclic, Distribution::None] {
                    let distribs = [distribution; 2];
                    see(Datatype::darray(b, 0, &[a, 2], &distribs, &[None, None], &[b, 1], Order::C, t));
                    see(Datatype::darray(
                        2,
                        1,
                        &[a, 3],
                        &distribs,
                        &[Some(b), None],
                        &[2, 1],
                        Order::Fortran,
                        t,
                    ));
                }
            }
        }
    }
    assert!(built > 10_000 && refused > 10_000, "{built} {refused}");
}

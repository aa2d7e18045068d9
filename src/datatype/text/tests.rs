use crate::datatype::Datatype;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Texts of all constructors, exactly as they are printed.
pub(crate) const CANONICAL: &[&str] = &[
    "int",
    "2double_precision",
    "dup(dup(int))",
    "contiguous(5,double)",
    "vector(34,10,64,double)",
    "hvector(4,1,4,vector(3,1,4,int))",
    "hvector_integer(2,1,-8,int)",
    "indexed([1,2],[0,-4],int)",
    "hindexed([1,2],[0,4096],int)",
    "hindexed_integer([1],[3],char)",
    "indexed_block(3,[0,9],double)",
    "hindexed_block(3,[0,90],float)",
    "struct([1,1,3],[0,8,16],[int,double,float])",
    "struct([],[],[])",
    "struct_integer([1,0,1],[0,4,8],[lb,char,ub])",
    "subarray([4,8],[1,3],[2,1],C,double)",
    "darray(4,1,[6,4],[cyclic,block],[2,default],[2,2],Fortran,double)",
    "darray(2,1,[6,4],[none,cyclic],[default,3],[1,2],C,int)",
    "f90_real(15,307)",
    "f90_real(undefined,307)",
    "f90_complex(6,undefined)",
    "f90_integer(9)",
    "resized(-3,9,int)",
    "bounds(0,9,hvector(2,1,5,int))",
    "value_index(double,long)",
];

#[test]
fn round_trip() {
    for text in CANONICAL {
        let t = parse(text);
        assert_eq!(t.to_string(), *text);
        let long = format!("{t:#}");
        assert_eq!(parse(&long), t, "{long}");
    }
}

#[test]
fn free_form() {
    let t = parse("vector(34,10,64,double)");
    assert_eq!(parse("vector(count=34, blocklength=10, stride=64, double)"), t);
    assert_eq!(parse(" vector ( 34 ,10, # rows\n 6_4 ,oldtype = MPI_DOUBLE)"), t);
    assert_eq!(format!("{t:#}"), "vector(count=34, blocklength=10, stride=64, double)");
    assert_eq!(
        format!("{:#}", parse("struct([1],[0],[int])")),
        "struct(blocklengths=[1], displacements=[0], types=[int])"
    );
    assert_eq!(parse("hindexed(array_of_blocklengths=[1],[0],int)"), parse("hindexed([1],[0],int)"));
    assert_eq!(parse("value_index(float,int)").to_string(), "float_int");
    assert_eq!(parse("contiguous(-0,int)"), parse("contiguous(0,int)"));
}

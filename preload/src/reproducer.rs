//! C program that packs or unpacks one datatype by the MPI library alone. It shows without ddtc
//! which bytes the MPI library copies, and where to.

use ddtc::internal::datatype::Datatype;
use ddtc::internal::datatype::c::{HostBounds, constructors};
use ddtc::internal::kind::Direction;

/// Returns the text of a C program that packs or unpacks `count` instances of `t` by the MPI
/// library and prints the bytes that the MPI library has written.
pub(crate) fn reproducer(t: &Datatype, count: u64, direction: Direction) -> String {
    let mut types = String::new();
    let root = constructors(t, HostBounds::Omitted, &mut types);
    let last = i128::from(count.saturating_sub(1)) * i128::from(t.extent());
    let low = (i128::from(t.true_lb()) + last.min(0)).min(0);
    let high = (i128::from(t.true_ub()) + last.max(0)).max(1);
    let size = i128::from(t.size()) * i128::from(count);
    let (user, packed) = (high - low, size.max(1));
    let call = match direction {
        Direction::Pack => {
            format!("MPI_Pack(user + {}, {count}, t, packed, {size}, &at, MPI_COMM_SELF);", -low)
        }
        Direction::Unpack => {
            format!("MPI_Unpack(packed, {size}, &at, user + {}, {count}, t, MPI_COMM_SELF);", -low)
        }
    };
    let ((from, read), (to, written)) = match direction {
        Direction::Pack => (("user", user), ("packed", packed)),
        Direction::Unpack => (("packed", packed), ("user", user)),
    };
    format!(
        r#"#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{{
    MPI_Init(NULL, NULL);
{types}    MPI_Datatype t = {root};
    MPI_Type_commit(&t);
    unsigned char *user = calloc({user}, 1), *packed = calloc({packed}, 1);
    for (long i = 0; i < {read}; i++)
        {from}[i] = i % 251;
    int at = 0;
    {call}
    for (long i = 0; i < {written}; i++)
        printf("%02x%c", {to}[i], i % 32 == 31 ? '\n' : ' ');
    printf("\nposition %d\n", at);
    MPI_Finalize();
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_of_vectors() {
        let t: Datatype = "struct([1, 2], [0, 64], [vector(3, 1, 2, int), double])".parse().unwrap();
        let text = reproducer(&t, 2, Direction::Pack);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines.contains(&"MPI_Type_vector(3, 1, 2, MPI_INT, &t2);"), "{text}");
        assert!(
            lines.contains(
                &"MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 64}, (MPI_Datatype[]){t2, MPI_DOUBLE}, &t3);"
            ),
            "{text}"
        );
        assert!(lines.contains(&"MPI_Datatype t = t3;"), "{text}");
        assert!(text.contains("MPI_Pack(user + 0, 2, t, packed, 56, &at, MPI_COMM_SELF);"), "{text}");
    }
}

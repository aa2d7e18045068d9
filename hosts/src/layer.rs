//! Groups of MPI functions that a PMPI layer takes together.
//!
//! A PMPI layer is a library that defines functions of MPI and calls the MPI library by their
//! `PMPI_` names: a profiler, or a library that translates communicators or requests. If a layer
//! has one function of a group, the preload library converts nothing in the whole group, because
//! the handles that the program passes to functions of the group may be known to the layer alone.

use crate::policy::Call;

/// Group of MPI functions that take the same kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Messages, collective calls, the calls that complete them, functions on communicators,
    /// datatypes and statuses, and all functions that are in no other group.
    Messages,
    /// Calls on files.
    Files,
    /// One-sided operations and the calls that complete them.
    Windows,
    /// `MPI_Pack`, `MPI_Unpack` and `MPI_Pack_size`.
    Pack,
}

impl Group {
    /// All groups, in the order of their discriminants.
    pub const ALL: [Group; 4] = [Group::Messages, Group::Files, Group::Windows, Group::Pack];

    /// Returns the name of the group in reports.
    pub fn name(self) -> &'static str {
        match self {
            Group::Messages => "messages",
            Group::Files => "files",
            Group::Windows => "windows",
            Group::Pack => "pack",
        }
    }

    /// Returns the group of an MPI function, given its name in C. Returns `None` for functions that
    /// take no objects of these groups, such as `MPI_Init`, `MPI_Finalize`, `MPI_Abort` and those
    /// of the tool interface, and for names without the prefix `MPI_`. A layer may define these
    /// functions, and everything is still converted.
    pub fn of_function(name: &str) -> Option<Group> {
        let name = name.strip_prefix("MPI_")?;
        let begins = |prefixes: &[&str]| prefixes.iter().any(|&prefix| name.starts_with(prefix));
        if begins(&["File_"]) {
            Some(Group::Files)
        } else if begins(&["Win_", "Put", "Rput", "Rget", "Get_accumulate"])
            || ["Get", "Get_c"].contains(&name)
        {
            Some(Group::Windows)
        } else if begins(&["Pack", "Unpack"]) {
            Some(Group::Pack)
        } else if begins(&["Get_count", "Get_elements"]) {
            Some(Group::Messages)
        } else if begins(&["T_", "Init", "Final", "Abort", "Session_", "Get_", "Abi_", "Error_"]) {
            None
        } else {
            Some(Group::Messages)
        }
    }

    /// Returns the group of a row of a policy. Returns `None` for rows about bytes that are moved
    /// inside Open MPI, because every layer is above Open MPI and sees none of these moves.
    pub fn of_call(call: Call) -> Option<Group> {
        match call {
            Call::FileWrite | Call::FileRead => Some(Group::Files),
            Call::Put | Call::Get => Some(Group::Windows),
            Call::Inside => None,
            _ => Some(Group::Messages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_groups() {
        for (name, group) in [
            ("MPI_Send", Some(Group::Messages)),
            ("MPI_Waitall", Some(Group::Messages)),
            ("MPI_Comm_size", Some(Group::Messages)),
            ("MPI_Type_commit", Some(Group::Messages)),
            ("MPI_Get_count_c", Some(Group::Messages)),
            ("MPI_File_write_at_all_c", Some(Group::Files)),
            ("MPI_Put", Some(Group::Windows)),
            ("MPI_Get", Some(Group::Windows)),
            ("MPI_Get_c", Some(Group::Windows)),
            ("MPI_Rget_c", Some(Group::Windows)),
            ("MPI_Win_fence", Some(Group::Windows)),
            ("MPI_Unpack", Some(Group::Pack)),
            ("MPI_Init_thread", None),
            ("MPI_Finalize", None),
            ("MPI_Get_library_version", None),
            ("MPI_T_pvar_read", None),
            ("PMPI_Send", None),
            ("main", None),
        ] {
            assert_eq!(Group::of_function(name), group, "{name}");
        }
    }

    #[test]
    fn groups_are_numbered_in_order() {
        for (i, group) in Group::ALL.into_iter().enumerate() {
            assert_eq!(group as usize, i);
        }
        assert_eq!(Group::of_call(Call::Alltoallw), Some(Group::Messages));
        assert_eq!(Group::of_call(Call::Inside), None);
    }
}

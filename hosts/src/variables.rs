//! Environment variables of the preload library that have got new names.

/// Old and new names of variables. The old names are accepted until version [`ACCEPTED_UNTIL`].
pub const RENAMED: [(&str, &str); 3] = [
    ("DDTC_INSIDE", "DDTC_HOOK"),
    ("DDTC_REMEMBER", "DDTC_PROFILE_CACHE"),
    ("DDTC_BUFFERS", "DDTC_STAGING_MIB"),
];

/// The first version that does not know the old names.
pub const ACCEPTED_UNTIL: &str = "0.5";

/// Returns what the user is told about an old name that is set. `is_new_set`: the new name is set
/// too.
pub fn explanation(old: &str, new: &str, is_new_set: bool) -> String {
    if is_new_set {
        format!("{old} is ignored: it is the old name of {new}, which is set too")
    } else {
        format!("{old} is the old name of {new}, and is accepted until version {ACCEPTED_UNTIL}")
    }
}

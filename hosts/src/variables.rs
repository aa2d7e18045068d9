//! Environment variables of the preload library that were renamed.

/// Old and new names of variables. The old names are accepted until version [`ACCEPTED_UNTIL`].
pub const RENAMED: [(&str, &str); 3] = [
    ("DDTC_INSIDE", "DDTC_HOOK"),
    ("DDTC_REMEMBER", "DDTC_PROFILE_CACHE"),
    ("DDTC_BUFFERS", "DDTC_STAGING_MIB"),
];

/// First version of ddtc that does not accept the old names.
pub const ACCEPTED_UNTIL: &str = "0.5";

/// Returns the message for the user about an old name that is set. `is_new_set` is true if the new
/// name is set too.
pub fn explanation(old: &str, new: &str, is_new_set: bool) -> String {
    if is_new_set {
        format!("{old} is ignored: it is the old name of {new}, which is set too")
    } else {
        format!("{old} is the old name of {new}, and is accepted until version {ACCEPTED_UNTIL}")
    }
}

//! Opening of files whose names come from the environment or are known beforehand. In a folder that
//! others can write to, somebody may have put something else under such a name.
//!
//! A name whose last part is a symbolic link is refused. (Links among the folders before it are
//! followed, because the folders are the user's choice.) Whatever is used must be a regular file:
//! no folder, pipe or device. A file to be written must belong to this process's user and have no
//! second hard link. A file to be read must belong to this user or to root.
//!
//! [`append`] and [`read`] check the file that they have opened, and not only its name, so nobody
//! can exchange the file between the check and its use. [`replace`] writes a new file and renames
//! it to the given name, so it never writes into a file that somebody has put there.

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::hash::BuildHasher as _;
use std::io::{self, Read as _, Write as _};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::process::without_sigxfsz;

/// Purpose for which a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Text is appended to the file, or another file takes its place.
    Write,
    Read,
}

/// Maximum number of bytes that are read from a file.
const MAX_READ_BYTES: u64 = 16 << 20;

/// Returns the ID of the user of this process, who is the owner of the process's entry in /proc.
/// Asking the system directly would be an unsafe call.
fn current_uid() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

fn refuse(rule: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, rule)
}

/// Checks the properties of a file that a process of user `uid` wants to use. The error is the rule
/// that the file breaks.
fn check(found: &Metadata, how: Use, uid: u32) -> Result<(), &'static str> {
    if !found.is_file() {
        return Err("must be a regular file: no link, folder, pipe or device");
    }
    match how {
        Use::Read if found.uid() != uid && found.uid() != 0 => Err("must belong to this user or to root"),
        Use::Write if found.uid() != uid => Err("must belong to this user, or not exist"),
        Use::Write if found.nlink() > 1 => Err("must have no other name (hard link)"),
        _ => Ok(()),
    }
}

/// Opens a file for the purpose `how`, on behalf of a process of user `uid`.
fn open(path: &Path, how: Use, uid: u32) -> io::Result<File> {
    // Check what is found under the name first, so that a device is not even opened. The second
    // check, of the file that was opened, is the one that decides.
    match std::fs::symlink_metadata(path) {
        Ok(found) => check(&found, how, uid).map_err(refuse)?,
        Err(error) if how != Use::Read && error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    match how {
        Use::Write => options.append(true).create(true),
        Use::Read => options.read(true),
    };
    // Without `O_NONBLOCK`, opening a pipe would wait for a process at its other end.
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?, how, uid).map_err(refuse)?;
    Ok(file)
}

/// Opens a file for writing at its end, and creates the file if it does not exist.
///
/// # Errors
/// Returns the errors of the system, and an error of kind `InvalidInput` if the file breaks a rule
/// of this module. The error then contains the rule.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, Use::Write, current_uid()?)
}

/// Replaces the contents of a file: whoever reads it sees the old text or the new text, even if
/// this process ends in between.
///
/// The new text is written to a new file in the same folder, which gets the permissions of the old
/// file and is then renamed. If any of this fails, the old file stays as it is.
///
/// # Errors
/// Returns the errors that [`append`] returns.
pub fn replace(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, text.as_ref(), None)
}

/// Replaces the contents of a file as [`replace`] does. The new file can be read by everybody and
/// written by this user alone, whatever the process's umask and the permissions of the old file.
///
/// # Errors
/// Returns the errors that [`append`] returns; each names the file.
pub fn publish(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, text.as_ref(), Some(Permissions::from_mode(0o644))).map_err(|e| named(path, &e))
}

/// Checks whether [`replace`] can write a file now. A program calls this before work whose result
/// it will write to the file. It creates a new file next to `path` and removes it again.
///
/// # Errors
/// Returns the errors that [`append`] returns; each names the file.
pub fn check_replace(path: &Path) -> io::Result<()> {
    old_file(path)
        .and_then(|_| create_sibling(path))
        .and_then(|(sibling, _)| std::fs::remove_file(sibling))
        .map_err(|e| named(path, &e))
}

/// Returns the properties of the file that is to be replaced, or none if there is no such file.
///
/// # Errors
/// Returns the errors of the system, and an error of kind `InvalidInput` if the file breaks a rule.
fn old_file(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => check(&found, Use::Write, current_uid()?).map_err(refuse).map(|()| Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Replaces the contents of a file. The new file gets `permissions`, or those of the old file.
fn put(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let found = old_file(path)?;
    let (temporary, mut file) = create_sibling(path)?;
    let written = without_sigxfsz(|| file.write_all(bytes))
        .and_then(|()| {
            let permissions = permissions.or(found.map(|found| found.permissions()));
            permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
        })
        // If another file was put under the name in the meantime, it loses the name here, but
        // nothing is written into it.
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Replaces the contents of a file as [`replace`] does, with errors that name the file.
///
/// # Errors
/// Returns the errors that [`append`] returns.
pub fn save(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, text).map_err(|e| named(path, &e))
}

/// Creates a new file in the folder of `path`, and returns its name and the open file.
///
/// The name is random, because a process on another machine that shares the folder may have the
/// same process ID. It does not contain the name in `path`, which may already be as long as names
/// can be.
fn create_sibling(path: &Path) -> io::Result<(PathBuf, File)> {
    path.file_name().ok_or_else(|| refuse("must have a name"))?;
    loop {
        // A new hash state has random keys, so this number is random.
        let number = RandomState::new().hash_one(std::process::id());
        let sibling = path.with_file_name(format!(".ddtc-{number:016x}.part"));
        match OpenOptions::new().write(true).create_new(true).open(&sibling) {
            Ok(file) => return Ok((sibling, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the text of a file of at most 16 MiB.
///
/// # Errors
/// Returns the errors that [`append`] returns, and an error if the file is longer than 16 MiB or is
/// not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    text_of(open(path, Use::Read, current_uid()?)?)
}

/// Returns the text of a file that neither its group nor others may write.
///
/// # Errors
/// Returns the errors of [`read`], and one of kind `InvalidInput` if somebody else may write the
/// file.
pub fn read_own(path: &Path) -> io::Result<String> {
    let file = open(path, Use::Read, current_uid()?)?;
    if file.metadata()?.mode() & 0o022 != 0 {
        return Err(refuse("must be writable by its owner alone"));
    }
    text_of(file)
}

fn text_of(file: File) -> io::Result<String> {
    let mut text = String::with_capacity(file.metadata()?.len().min(MAX_READ_BYTES) as usize + 1);
    if file.take(MAX_READ_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_READ_BYTES {
        return Err(refuse("must have at most 16 MiB"));
    }
    Ok(text)
}

/// A folder that is removed with everything in it when this value is dropped.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl From<PathBuf> for TemporaryFolder {
    fn from(folder: PathBuf) -> Self {
        TemporaryFolder(folder)
    }
}

impl Deref for TemporaryFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A failure is ignored, because there is nobody to report it to.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Creates a new folder inside the system's temporary folder. Only this user can enter the new
/// folder, and its name begins with `name`.
///
/// # Errors
/// Returns the errors of the system.
pub fn temporary_folder(name: &str) -> io::Result<TemporaryFolder> {
    private_folder(&std::env::temp_dir(), name).map(TemporaryFolder)
}

/// Creates a new folder inside `parent`, and leaves its removal to the caller. Only this user can
/// enter the new folder, and its name begins with `name`.
///
/// # Errors
/// Returns the errors of the system, among them `AlreadyExists` if more than a thousand names in a
/// row are taken.
pub fn private_folder(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut tried = 0;
    loop {
        let path = parent.join(format!("{name}-{}-{tried}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // The name is taken: by a folder of somebody else, by one that an earlier process with
            // this ID left, or by one that this process made with the same `name` and still has.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < 1000 => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const ALL: [Use; 2] = [Use::Write, Use::Read];

    fn folder() -> TemporaryFolder {
        temporary_folder("ddtc-files").unwrap()
    }

    fn rule(path: &Path, how: Use, uid: u32) -> String {
        let error = open(path, how, uid).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{how:?} {error}");
        error.to_string()
    }

    #[test]
    fn own_files_are_written_and_read() {
        let folder = folder();
        let file = folder.join("file");
        replace(&file, "long text").unwrap();
        replace(&file, "short").unwrap();
        append(&file).unwrap().write_all(b" and more").unwrap();
        assert_eq!(read(&file).unwrap(), "short and more");
        assert_eq!(read(&folder.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(current_uid().unwrap(), std::fs::metadata(&file).unwrap().uid());
    }

    #[test]
    fn a_published_file_is_everybodys_to_read_and_its_owners_to_write() {
        let folder = folder();
        let file = folder.join("file");
        publish(&file, "old").unwrap();
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(), read_own(&file).unwrap().as_str()), (0o644, "old"));
        for other in [0o664, 0o646, 0o666] {
            std::fs::set_permissions(&file, Permissions::from_mode(other)).unwrap();
            assert!(read_own(&file).unwrap_err().to_string().contains("its owner alone"), "{other:o}");
        }
        publish(&file, "new").unwrap();
        assert_eq!((mode(), read_own(&file).unwrap().as_str()), (0o644, "new"));
        assert_eq!(read_own(&folder.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = folder();
        let file = folder.join("file");
        replace(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        // A reader that has the file open continues to read the old text.
        let mut reader = File::open(&file).unwrap();
        replace(&file, "new").unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!((seen.as_str(), read(&file).unwrap().as_str()), ("old", "new"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(&*folder).unwrap().count(), 1);
        // The new file must not need a longer name than this one, which is nearly as long as names
        // can be.
        let long = folder.join("f".repeat(250));
        replace(&long, "text").unwrap();
        assert_eq!(read(&long).unwrap(), "text");
    }

    #[test]
    fn nothing_changes_where_no_file_can_be_made() {
        let folder = folder();
        let inner = folder.join("inner");
        std::fs::create_dir(&inner).unwrap();
        let file = inner.join("file");
        replace(&file, "old").unwrap();
        // Unfinished files of other processes are left alone, whatever their names.
        std::fs::write(inner.join(format!(".file.{}.part", std::process::id())), "another node's").unwrap();
        replace(&file, "new").unwrap();
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o500)).unwrap();
        // Root can create files in any folder, so this check is for other users.
        if File::create(inner.join("probe")).is_err() {
            assert_eq!(replace(&file, "newer").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(read(&file).unwrap(), "new");
        }
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o700)).unwrap();
        // Not even root can create files in a folder of /proc.
        let error = replace(&Path::new("/proc/self").join("file"), "text").unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(replace(Path::new("/"), "text").is_err());
    }

    #[test]
    fn what_cannot_be_replaced_is_found_before() {
        let folder = folder();
        let (file, link) = (folder.join("file"), folder.join("link"));
        check_replace(&file).unwrap();
        symlink(&file, &link).unwrap();
        for bad in [&*folder, &link, &folder.join("none/file"), Path::new("/proc/self/file"), Path::new("/")]
        {
            let error = check_replace(bad).unwrap_err().to_string();
            assert!(error.starts_with(&*bad.to_string_lossy()), "{error}");
        }
        // Nothing is left but the link.
        assert_eq!(std::fs::read_dir(&*folder).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_opened_through_a_link() {
        let (folder, uid) = (folder(), current_uid().unwrap());
        let (victim, link, dangling) = (folder.join("victim"), folder.join("link"), folder.join("dangling"));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        symlink(folder.join("made"), &dangling).unwrap();
        for how in ALL {
            assert!(rule(&link, how, uid).contains("no link"));
            assert!(rule(&dangling, how, uid).contains("no link"));
        }
        assert!(!folder.join("made").exists());
        std::fs::hard_link(&victim, folder.join("second")).unwrap();
        assert!(rule(&folder.join("second"), Use::Write, uid).contains("hard link"));
        assert!(open(&folder.join("second"), Use::Read, uid).is_ok());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let (folder, uid) = (folder(), current_uid().unwrap());
        let file = folder.join("file");
        std::fs::write(&file, "precious").unwrap();
        // Check the file as another user would, who may have permission to write to it.
        let other = uid + 1;
        assert!(rule(&file, Use::Write, other).contains("belong to this user"));
        // Every user may read a file that belongs to root.
        assert_eq!(open(&file, Use::Read, other).is_ok(), uid == 0);
        if uid == 0 {
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
            for how in ALL {
                assert!(rule(&file, how, uid).contains("belong to this user"));
            }
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn folders_pipes_and_devices_are_no_files() {
        let (folder, uid) = (folder(), current_uid().unwrap());
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for how in ALL {
            for path in [&*folder, &pipe, Path::new("/dev/null"), Path::new("/dev/stdout")] {
                assert!(rule(path, how, uid).contains("regular file"), "{}", path.display());
            }
        }
    }

    #[test]
    fn what_is_put_there_after_the_first_look_is_seen() {
        // The rules are applied to the file that was opened, whatever was found under its name
        // before.
        let (folder, uid) = (folder(), current_uid().unwrap());
        let file = folder.join("file");
        std::fs::write(&file, "").unwrap();
        let found = File::open(&file).unwrap().metadata().unwrap();
        for how in ALL {
            assert_eq!(check(&found, how, uid), Ok(()));
        }
        assert!(check(&found, Use::Write, uid + 1).is_err());
    }

    #[test]
    fn long_files_are_not_read() {
        let folder = folder();
        let file = folder.join("file");
        File::create(&file).unwrap().set_len(MAX_READ_BYTES + 1).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("at most 16 MiB"));
    }

    #[test]
    fn private_folders_are_new() {
        let (first, second) = (folder(), folder());
        assert_ne!(*first, *second);
        for folder in [first, second] {
            assert_eq!(std::fs::metadata(&*folder).unwrap().permissions().mode() & 0o777, 0o700);
            let path = folder.to_path_buf();
            std::fs::write(folder.join("file"), "").unwrap();
            drop(folder);
            assert!(!path.exists());
        }
    }
}

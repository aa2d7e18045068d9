//! Files whose names come from the environment or are known beforehand: in a folder that others can write to, somebody may have put
//! something else there.
//!
//! Nothing is opened through a link as the name's last part (folders on the way are the user's choice), and what is opened must be a regular file: no
//! folder, pipe or device. What is written belongs to this process's user, has no second name, and is emptied only after these
//! checks; what is read belongs to the user or the system's. The file that was opened is checked, not the name, so nothing can be exchanged in between.

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::hash::BuildHasher as _;
use std::io::{self, Read as _, Write as _};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::process::without_sigxfsz;

/// Use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Text is appended, or another file takes the place of this one.
    Write,
    Read,
}

/// Most bytes that are read.
const MAX_READ_BYTES: u64 = 16 << 20;

/// The user of this process. The owner of its entry in /proc: asking the system is no safe call.
fn current_uid() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

fn refuse(rule: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, rule)
}

/// The rule that a file breaks, for a process of user `uid`.
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

/// Opens a file as user `uid`.
fn open(path: &Path, how: Use, uid: u32) -> io::Result<File> {
    // Devices are not even opened; what is decided is decided below.
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
    // A pipe without a peer must not wait.
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?, how, uid).map_err(refuse)?;
    Ok(file)
}

/// Opens a file to write behind its end; makes it if it is not there.
///
/// # Errors
/// Of the system, and class `InvalidInput` with the rule that the file breaks.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, Use::Write, current_uid()?)
}

/// Writes a file anew: whoever reads it sees the old text or the new one, whenever this process ends.
///
/// The new text is written to a file next to it, which is then renamed. If that fails, the old file
/// stays as it is.
///
/// # Errors
/// As [`append`].
pub fn replace(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    let bytes = text.as_ref();
    let uid = current_uid()?;
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(found) = &found {
        check(found, Use::Write, uid).map_err(refuse)?;
    }
    let (temporary, mut file) = create_sibling(path)?;
    let written = without_sigxfsz(|| file.write_all(bytes))
        .and_then(|()| found.map_or(Ok(()), |found| file.set_permissions(found.permissions())))
        // What has come to stand there meanwhile loses its name, and nothing is written through it.
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Writes a file as [`append`] does; the error names the file.
///
/// # Errors
/// As [`append`].
pub fn save(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, text).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
}

/// Makes a new file in the folder of another one.
///
/// Its name is random, because processes of other machines that share the folder may have this
/// process's number. It does not contain the other name, which may be as long as names can be.
fn create_sibling(path: &Path) -> io::Result<(PathBuf, File)> {
    path.file_name().ok_or_else(|| refuse("must have a name"))?;
    loop {
        // The keys of a new hash state are random.
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
/// As [`append`]; if it is longer or no UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let file = open(path, Use::Read, current_uid()?)?;
    let mut text = String::with_capacity(file.metadata()?.len().min(MAX_READ_BYTES) as usize + 1);
    if file.take(MAX_READ_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_READ_BYTES {
        return Err(refuse("must have at most 16 MiB"));
    }
    Ok(text)
}

/// A folder that goes, with all that is in it, when its owner does.
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
        // Where the disk fails, there is nobody to tell.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder that nobody else can enter, with a name that begins with `name`, in the system's temporary folder.
///
/// # Errors
/// Of the system.
pub fn temporary_folder(name: &str) -> io::Result<TemporaryFolder> {
    private_folder(&std::env::temp_dir(), name).map(TemporaryFolder)
}

/// Makes a folder of the user's own in another folder, which stays.
///
/// # Errors
/// Of the system.
pub fn private_folder(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut tried = 0;
    loop {
        let path = parent.join(format!("{name}-{}-{tried}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // Somebody else's, or one that a process of this number left behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < 1000 => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    fn a_file_is_replaced_as_a_whole() {
        let folder = folder();
        let file = folder.join("file");
        replace(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        // Who has it open goes on reading what it was.
        let mut reader = File::open(&file).unwrap();
        replace(&file, "new").unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!((seen.as_str(), read(&file).unwrap().as_str()), ("old", "new"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(&*folder).unwrap().count(), 1);
        // A name that is too long for one more beside it.
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
        // Others' unfinished files stay, by whatever name.
        std::fs::write(inner.join(format!(".file.{}.part", std::process::id())), "another node's").unwrap();
        replace(&file, "new").unwrap();
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o500)).unwrap();
        // Root makes files everywhere.
        if File::create(inner.join("probe")).is_err() {
            assert_eq!(replace(&file, "newer").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(read(&file).unwrap(), "new");
        }
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o700)).unwrap();
        // A folder that is none: not even root makes files there.
        let error = replace(&Path::new("/proc/self").join("file"), "text").unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(replace(Path::new("/"), "text").is_err());
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
        // As another user would see it, who may be allowed to write.
        let other = uid + 1;
        assert!(rule(&file, Use::Write, other).contains("belong to this user"));
        // Root's files may be read by everybody.
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
        // The rules hold for what was opened, whatever the name said before.
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

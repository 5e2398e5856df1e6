//! Output files: all of them whole, or none at all.
//!
//! An output is written under a temporary name in its own folder and renamed into place once every
//! output is complete. What is unfinished when the program ends, by a failure or a signal, is removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{NamedTempFile, TempPath};

use crate::exit::Failure;

/// An output as the command line names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// The flag.
    pub(crate) flag: &'static str,
    /// Its value.
    pub(crate) path: &'a Path,
}

/// stdout and stderr as files, where the system shows them so.
const STANDARD_STREAMS: [&str; 2] = ["/dev/fd/1", "/dev/fd/2"];

/// Temporary files that exist now. Whoever renames or removes them holds the lock.
static PENDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

type Pending = MutexGuard<'static, BTreeSet<PathBuf>>;

fn pending() -> Pending {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every temporary file. While the guard lives, no output appears.
pub(crate) fn discard_pending() -> Pending {
    let mut paths = pending();
    while let Some(path) = paths.pop_first() {
        let _ = fs::remove_file(path);
    }
    paths
}

/// Finds out at the start what would go wrong at the end: an output that is one of the inputs (also
/// through links) or another output, that is no regular file, or whose folder cannot be written.
pub(crate) fn check(targets: &[Target<'_>], inputs: &[&Path]) -> Result<(), Failure> {
    let inputs: HashSet<FileId> = inputs.iter().filter_map(|path| FileId::of(path)).collect();
    let streams: HashSet<FileId> = STANDARD_STREAMS
        .iter()
        .filter_map(|path| FileId::of(Path::new(path)))
        .collect();
    let mut places: HashMap<PathBuf, &str> = HashMap::new();
    let mut folders: HashSet<PathBuf> = HashSet::new();
    for target in targets {
        let shown = format!("{} {}", target.flag, target.path.display());
        let refuse = |why: &str| Err(Failure::Usage(format!("{shown}: {why}")));
        if target.path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return refuse("names a folder; give the name of a file");
        }
        let place = place(target.path).map_err(|error| {
            Failure::Usage(format!("{shown}: its folder cannot be used: {error}"))
        })?;
        match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return refuse(&format!("cannot be written: {error}")),
            // Links that lead somewhere have been followed.
            Ok(metadata) if metadata.is_symlink() => {
                return refuse("is a link that leads to no file");
            }
            Ok(_) => {}
        }
        if let Ok(metadata) = fs::metadata(&place) {
            if metadata.is_dir() {
                return refuse("is a folder; give the name of a file");
            }
            if !metadata.is_file() {
                return refuse(
                    "is not a regular file; without this flag the result on stdout has it",
                );
            }
            let file = FileId::from(&metadata);
            if streams.contains(&file) {
                return refuse(
                    "is where stdout or stderr go; without this flag the result on stdout has it",
                );
            }
            if inputs.contains(&file) {
                return refuse("is one of the inputs, which would be overwritten");
            }
        }
        if let Some(flag) = places.get(&place) {
            return refuse(&format!("is the output of {flag}, too"));
        }
        if folders.insert(folder_of(&place).to_owned()) {
            let probe = temporary(&place).map_err(|error| {
                Failure::Usage(format!("{shown}: its folder cannot be written: {error}"))
            })?;
            drop(probe.close().release(&mut pending()));
        }
        places.insert(place, target.flag);
    }
    Ok(())
}

/// Writes an output.
pub(crate) type Write<'a> = Box<dyn FnOnce(&mut dyn io::Write) -> Result<(), Failure> + 'a>;

/// An output, and what writes it.
pub(crate) struct Output<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) write: Write<'a>,
}

impl<'a> Output<'a> {
    /// An output that is there already.
    pub(crate) fn of(target: Target<'a>, bytes: &'a [u8]) -> Self {
        let write = move |out: &mut dyn io::Write| {
            out.write_all(bytes).map_err(|error| Failure::Output {
                path: target.path.to_owned(),
                error,
            })
        };
        Self {
            target,
            write: Box::new(write),
        }
    }
}

/// Writes all outputs or none. They appear when all are whole.
pub(crate) fn write_all(outputs: Vec<Output<'_>>) -> Result<(), Failure> {
    let mut written = Vec::new();
    for Output { target, write } in outputs {
        let fail = |error| Failure::Output {
            path: target.path.to_owned(),
            error,
        };
        let place = place(target.path).map_err(fail)?;
        let mut file = temporary(&place).map_err(fail)?;
        let mut noting = Noting {
            file: file.0.as_file_mut(),
            error: None,
        };
        // A writer of a format has words of its own for what the system said.
        let result = write(&mut noting);
        if let Some(error) = noting.error {
            return Err(fail(error));
        }
        result?;
        file.0.as_file().sync_all().map_err(fail)?;
        written.push((target.path, place, file.close()));
    }
    let mut guard = pending();
    let mut done: Vec<PathBuf> = Vec::new();
    for (path, place, file) in written {
        let temporary = file.release(&mut guard);
        if let Err(error) = temporary.persist(&place) {
            for path in done {
                let _ = fs::remove_file(path);
            }
            return Err(Failure::Output {
                path: path.to_owned(),
                error: error.error,
            });
        }
        done.push(place);
    }
    Ok(())
}

/// Writes a file, and keeps what the system said when it could not.
struct Noting<'a> {
    file: &'a mut File,
    error: Option<io::Error>,
}

impl io::Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let same = error.raw_os_error().map(io::Error::from_raw_os_error);
                self.error = Some(same.unwrap_or_else(|| error.kind().into()));
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A temporary file that a signal removes, too.
struct Temporary(NamedTempFile);

impl Temporary {
    /// The file without its handle: there may be more outputs than a process may hold open.
    fn close(self) -> Closed {
        Closed(self.0.into_temp_path())
    }
}

/// A temporary file that is written.
struct Closed(TempPath);

impl Closed {
    /// The file, no longer the business of signals: the caller holds the lock.
    fn release(self, pending: &mut Pending) -> TempPath {
        pending.remove::<Path>(&self.0);
        self.0
    }
}

fn folder_of(place: &Path) -> &Path {
    place.parent().unwrap_or(Path::new("."))
}

fn temporary(place: &Path) -> io::Result<Temporary> {
    let folder = folder_of(place);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cuzk-").suffix(".tmp");
    // A file that is replaced keeps its mode; for a new one the umask decides, as for any program.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let new = || Permissions::from_mode(0o666);
        builder.permissions(fs::metadata(place).map_or_else(|_| new(), |old| old.permissions()));
    }
    // Under the lock, so that no file is there that a signal does not know of.
    let mut pending = pending();
    let file = builder.tempfile_in(folder)?;
    pending.insert(file.path().to_owned());
    Ok(Temporary(file))
}

/// Where an output really goes: links resolved, also those of its folder.
fn place(path: &Path) -> io::Result<PathBuf> {
    if let Ok(existing) = fs::canonicalize(path) {
        return Ok(existing);
    }
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok(fs::canonicalize(folder)?.join(name))
}

/// Which file something is, by whatever name.
#[cfg(unix)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct FileId(u64, u64);

#[cfg(unix)]
impl From<&fs::Metadata> for FileId {
    fn from(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self(metadata.dev(), metadata.ino())
    }
}

/// Not known here.
#[cfg(not(unix))]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct FileId;

#[cfg(not(unix))]
impl From<&fs::Metadata> for FileId {
    fn from(_: &fs::Metadata) -> Self {
        Self
    }
}

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        let _ = path;
        None
    }
}

/// A folder for outputs.
#[derive(Debug)]
pub(crate) struct Folder {
    /// What had to be made, the deepest first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes it, and those that it lies in, where they are not there.
    pub(crate) fn make(flag: &str, path: &Path) -> Result<Self, Failure> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing = path.ancestors().take_while(is_missing);
        let made = missing.map(Path::to_owned).collect();
        // Before anything is made: what is made before a failure goes again.
        let folder = Self { made };
        fs::create_dir_all(path).map_err(|error| {
            let shown = path.display();
            Failure::Usage(format!(
                "{flag} {shown}: the folder cannot be made: {error}"
            ))
        })?;
        Ok(folder)
    }
}

/// Folders that were made for nothing go again; those with something in them stay.
impl Drop for Folder {
    fn drop(&mut self) {
        for path in &self.made {
            let _ = fs::remove_dir(path);
        }
    }
}

//! Output files: all of them whole, or none at all.
//!
//! An output is written under a temporary name in its own folder and renamed into place once every
//! output is complete. What is unfinished when the program ends, by a failure or a signal, is removed.

use std::collections::HashMap;
use std::fs::{self, Permissions};
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
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every temporary file. While the guard lives, no output appears.
pub(crate) fn discard_pending() -> MutexGuard<'static, Vec<PathBuf>> {
    let mut paths = pending();
    for path in paths.drain(..) {
        let _ = fs::remove_file(path);
    }
    paths
}

/// Finds out at the start what would go wrong at the end: an output that is one of the inputs (also
/// through links) or another output, that is no regular file, or whose folder cannot be written.
pub(crate) fn check(targets: &[Target<'_>], inputs: &[&Path]) -> Result<(), Failure> {
    let mut places: HashMap<PathBuf, &str> = HashMap::new();
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
            if STANDARD_STREAMS
                .iter()
                .any(|stream| is_same_file(Path::new(stream), &metadata))
            {
                return refuse(
                    "is where stdout or stderr go; without this flag the result on stdout has it",
                );
            }
            if inputs.iter().any(|input| is_same_file(input, &metadata)) {
                return refuse("is one of the inputs, which would be overwritten");
            }
        }
        if let Some(flag) = places.get(&place) {
            return refuse(&format!("is the output of {flag}, too"));
        }
        let probe = temporary(&place).map_err(|error| {
            Failure::Usage(format!("{shown}: its folder cannot be written: {error}"))
        })?;
        drop(probe.release(&mut pending()));
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
        write(&mut file.0)?;
        file.0.as_file().sync_all().map_err(fail)?;
        written.push((target.path, place, file));
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

/// A temporary file that a signal removes, too.
struct Temporary(NamedTempFile);

impl Temporary {
    /// The file itself, no longer the business of signals: the caller holds the lock.
    fn release(self, pending: &mut Vec<PathBuf>) -> TempPath {
        pending.retain(|path| path != self.0.path());
        self.0.into_temp_path()
    }
}

fn temporary(place: &Path) -> io::Result<Temporary> {
    let folder = place.parent().unwrap_or(Path::new("."));
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
    pending.push(file.path().to_owned());
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

#[cfg(unix)]
fn is_same_file(input: &Path, output: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(input)
        .is_ok_and(|input| (input.dev(), input.ino()) == (output.dev(), output.ino()))
}

#[cfg(not(unix))]
fn is_same_file(input: &Path, _output: &fs::Metadata) -> bool {
    let _ = input;
    false
}

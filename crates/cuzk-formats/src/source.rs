//! Where bytes come from: files by positioned reads, or memory.
//!
//! Files are not mapped: a file that shrinks while it is mapped kills the process, a positioned
//! read of it is an error.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// Bytes of a known length that several threads read at once.
pub trait ReadAt: Sync {
    /// The name that errors give: the path, or what the caller called the bytes.
    fn name(&self) -> &str;

    /// The length in bytes when the source was opened.
    fn len(&self) -> u64;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] when the source is shorter than that, [`ErrorKind::Shrunk`] when it
    /// was not at first, [`ErrorKind::Io`] when the system fails.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error>;
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        (**self).read_exact_at(offset, buf)
    }
}

fn check_range(name: &str, len: u64, offset: u64, wanted: usize) -> Result<(), Error> {
    match offset.checked_add(wanted as u64) {
        Some(end) if end <= len => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Truncated,
            format!("{wanted} bytes at offset {offset}"),
            format!("a file of {len} bytes"),
        )
        .in_file(name)),
    }
}

/// Bytes in memory under a name.
#[derive(Clone, Copy, Debug)]
pub struct BytesSource<'a> {
    name: &'a str,
    bytes: &'a [u8],
}

impl<'a> BytesSource<'a> {
    /// `bytes`, called `name` in errors.
    pub const fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, bytes }
    }
}

impl ReadAt for BytesSource<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        check_range(self.name, self.len(), offset, buf.len())?;
        // In range, hence within usize.
        let start = offset as usize;
        buf.copy_from_slice(&self.bytes[start..start + buf.len()]);
        Ok(())
    }
}

/// Bytes in memory without a name of their own.
impl ReadAt for [u8] {
    fn name(&self) -> &str {
        "bytes in memory"
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        BytesSource::new(ReadAt::name(self), self).read_exact_at(offset, buf)
    }
}

impl ReadAt for Vec<u8> {
    fn name(&self) -> &str {
        self.as_slice().name()
    }

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        self.as_slice().read_exact_at(offset, buf)
    }
}

/// An opened regular file.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    len: u64,
    file: PositionedFile,
}

impl FileSource {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::PermissionDenied`], [`ErrorKind::Directory`],
    /// [`ErrorKind::NotRegularFile`], [`ErrorKind::Empty`] or [`ErrorKind::Io`], each with the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        Self::open_named(path, &name).map_err(|error| error.in_file(&name))
    }

    fn open_named(path: &Path, name: &str) -> Result<Self, Error> {
        // Asked before opening: to open a pipe would wait for its writer.
        check_regular(&std::fs::metadata(path).map_err(|error| open_error(&error))?)?;
        let file = File::open(path).map_err(|error| open_error(&error))?;
        let metadata = file.metadata().map_err(|error| open_error(&error))?;
        check_regular(&metadata)?;
        if metadata.len() == 0 {
            return Err(
                Error::new(ErrorKind::Empty, "a file with content", "a file of 0 bytes").hint(
                    "the tool that made it probably failed; some leave an empty file and exit with 0",
                ),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            len: metadata.len(),
            file: PositionedFile::new(file),
        })
    }
}

fn check_regular(metadata: &std::fs::Metadata) -> Result<(), Error> {
    if metadata.is_dir() {
        return Err(Error::new(
            ErrorKind::Directory,
            "a regular file",
            "a directory",
        ));
    }
    if !metadata.is_file() {
        return Err(Error::new(
            ErrorKind::NotRegularFile,
            "a regular file",
            "a device, pipe or socket",
        )
        .hint("write it to a file first: the readers need its length"));
    }
    Ok(())
}

fn open_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "a file", "none at this path"),
        io::ErrorKind::PermissionDenied => Error::new(
            ErrorKind::PermissionDenied,
            "a readable file",
            "that permission to read it is denied",
        ),
        _ => Error::new(
            ErrorKind::Io,
            "a file that opens",
            format!("the system error: {error}"),
        ),
    }
}

impl ReadAt for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        check_range(&self.name, self.len, offset, buf.len())?;
        self.file.read_exact_at(offset, buf).map_err(|error| {
            let error = if error.kind() == io::ErrorKind::UnexpectedEof {
                Error::new(
                    ErrorKind::Shrunk,
                    format!(
                        "{} bytes at offset {offset}, as when the file was opened",
                        buf.len()
                    ),
                    "that the file has become shorter while it was read",
                )
            } else {
                Error::new(
                    ErrorKind::Io,
                    format!("{} bytes at offset {offset}", buf.len()),
                    format!("the system error: {error}"),
                )
            };
            error.in_file(&self.name)
        })
    }
}

#[cfg(unix)]
#[derive(Debug)]
struct PositionedFile(File);

#[cfg(unix)]
impl PositionedFile {
    fn new(file: File) -> Self {
        Self(file)
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buf, offset)
    }
}

/// Without positioned reads the threads take turns.
#[cfg(not(unix))]
#[derive(Debug)]
struct PositionedFile(std::sync::Mutex<File>);

#[cfg(not(unix))]
impl PositionedFile {
    fn new(file: File) -> Self {
        Self(std::sync::Mutex::new(file))
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        use std::io::{Read as _, Seek as _};
        let mut file = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fi_08_fi_13_what_cannot_be_read_says_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty.zkey");
        std::fs::write(&empty, []).unwrap();
        for (path, kind) in [
            (dir.path().join("missing.zkey"), ErrorKind::NotFound),
            (dir.path().to_owned(), ErrorKind::Directory),
            (empty, ErrorKind::Empty),
            #[cfg(unix)]
            ("/dev/null".into(), ErrorKind::NotRegularFile),
        ] {
            let error = FileSource::open(&path).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.file(), Some(path.display().to_string().as_str()));
        }
        // Tests may run as root, who may read everything.
        let denied = open_error(&io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
    }

    #[cfg(unix)]
    #[test]
    fn fi_13_an_unreadable_file_is_refused_as_such() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locked.zkey");
        std::fs::write(&path, b"zkey").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        match FileSource::open(&path) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
            Ok(_) => assert!(File::open(&path).is_ok(), "only root reads it"),
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, [7; 100]).unwrap();
        let source = FileSource::open(&path).unwrap();
        let mut buf = [0; 10];
        source.read_exact_at(90, &mut buf).unwrap();
        assert_eq!(buf, [7; 10]);
        assert_eq!(
            source.read_exact_at(91, &mut buf).unwrap_err().kind(),
            ErrorKind::Truncated
        );
        assert_eq!(
            source.read_exact_at(u64::MAX, &mut buf).unwrap_err().kind(),
            ErrorKind::Truncated
        );
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(95)
            .unwrap();
        assert_eq!(
            source.read_exact_at(90, &mut buf).unwrap_err().kind(),
            ErrorKind::Shrunk
        );
    }
}

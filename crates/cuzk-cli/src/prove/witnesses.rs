//! Which witnesses are proved, and where their results go.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cuzk_formats::guess_format;

use crate::exit::Failure;

/// Far above any list: a hundred thousand paths of 500 bytes.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// A witness of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The file's name without its extension: what its results are called.
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

impl Entry {
    /// A file of its results.
    pub(super) fn result(&self, ending: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(ending);
        name
    }
}

/// The witnesses of a folder, by name, or of a list, in its order.
pub(super) fn find(path: &Path) -> Result<Vec<Entry>, Failure> {
    let bad = |what: String| Failure::BadInput {
        file: path.display().to_string(),
        what,
    };
    let unreadable = |error: io::Error| bad(error.to_string());
    let paths = if fs::metadata(path).map_err(unreadable)?.is_dir() {
        let mut paths = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if entry
                .extension()
                .is_some_and(|extension| extension == "wtns")
            {
                paths.push(entry);
            }
        }
        paths.sort();
        paths
    } else {
        listed(path, &read_list(path).map_err(unreadable)?).map_err(bad)?
    };
    if paths.is_empty() {
        return Err(bad(
            "it has no witnesses (files named *.wtns, or lines with their paths)".into(),
        ));
    }
    let mut seen: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    let mut entries = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(name) = path.file_stem().map(OsStr::to_owned) else {
            return Err(bad(format!("{} names no file", path.display())));
        };
        if let Some(other) = seen.insert(name.clone(), path.clone()) {
            return Err(bad(format!(
                "{} and {} would have the same results, {}.proof.json",
                other.display(),
                path.display(),
                name.display()
            )));
        }
        entries.push(Entry { name, path });
    }
    Ok(entries)
}

/// A file or pipe, however long it says that it is: one byte more than a list may have at most.
fn read_list(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let list = File::open(path)?;
    list.take(LIST_BYTES_MAX + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The paths of a list's lines.
fn listed(list: &Path, text: &[u8]) -> Result<Vec<PathBuf>, String> {
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(format!(
            "expected a list of at most {LIST_BYTES_MAX} bytes, found more"
        ));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    // Relative paths are relative to the list.
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut paths = Vec::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let path = path_of(line).filter(|_| !line.contains(&0));
        let Some(path) = path else {
            let found = guess_format(text).unwrap_or("bytes that are no path");
            return Err(format!(
                "expected a list of witnesses, one path a line, found {found} in line {number}"
            ));
        };
        paths.push(folder.join(path));
    }
    Ok(paths)
}

#[cfg(unix)]
fn path_of(line: &[u8]) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(Path::new(OsStr::from_bytes(line)))
}

#[cfg(not(unix))]
fn path_of(line: &[u8]) -> Option<&Path> {
    std::str::from_utf8(line).ok().map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_lists_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.wtns", "a.wtns", "c.json"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |path: &Path| -> Vec<OsString> {
            find(path)
                .unwrap()
                .into_iter()
                .map(|entry| entry.name)
                .collect()
        };
        assert_eq!(names(folder.path()), ["a", "b"]);
        let list = folder.path().join("list.txt");
        fs::write(&list, "# two\nb.wtns\n\n  a.wtns  \n").unwrap();
        assert_eq!(names(&list), ["b", "a"]);
        assert_eq!(find(&list).unwrap()[0].path, folder.path().join("b.wtns"));
        fs::write(&list, "b.wtns\nx/b.wtns\n").unwrap();
        assert!(matches!(find(&list), Err(Failure::BadInput { .. })));
        fs::write(&list, "# none\n").unwrap();
        assert!(matches!(find(&list), Err(Failure::BadInput { .. })));
        assert!(find(&folder.path().join("missing")).is_err());
        // As editors of other systems write it.
        fs::write(&list, "\u{feff}b.wtns\r\na.wtns\r\n").unwrap();
        assert_eq!(names(&list), ["b", "a"]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let what = |text: &[u8]| listed(Path::new("list"), text).unwrap_err();
        let witness = [b"wtns\x02\0\0\0".as_slice(), &[0; 40]].concat();
        assert!(what(&witness).contains("found a witness (.wtns)"));
        assert!(what(b"a.wtns\nb\0.wtns").contains("no path in line 2"));
        let endless = vec![b'x'; LIST_BYTES_MAX as usize + 1];
        assert!(what(&endless).contains("at most 67108864 bytes"));
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        fs::write(&list, "..\n").unwrap();
        let failure = find(&list).unwrap_err();
        assert!(failure.to_string().contains(".. names no file"));
    }

    /// Names that differ only in bytes that are no text.
    #[cfg(unix)]
    #[test]
    fn names_are_taken_as_they_are() {
        use std::os::unix::ffi::OsStrExt as _;
        let text = b"a\xff.wtns\na\xfe.wtns\n";
        let paths = listed(Path::new("x/list"), text).unwrap();
        let bytes: Vec<_> = paths
            .iter()
            .map(|path| path.as_os_str().as_bytes())
            .collect();
        assert_eq!(bytes, [b"x/a\xff.wtns", b"x/a\xfe.wtns"]);
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        fs::write(&list, text).unwrap();
        let entries = find(&list).unwrap();
        assert_eq!(entries[0].result(".x").as_bytes(), b"a\xff.x");
        assert_eq!(entries[1].result(".x").as_bytes(), b"a\xfe.x");
    }
}

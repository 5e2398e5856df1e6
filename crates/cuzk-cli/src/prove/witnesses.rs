//! Which witnesses are proved, and where their results go.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// A witness of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The file's name without its extension: what its results are called.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// The witnesses of a folder, by name, or of a list, in its order.
pub(super) fn find(path: &Path) -> Result<Vec<Entry>, Failure> {
    let bad = |what: String| Failure::BadInput {
        file: path.display().to_string(),
        what,
    };
    let unreadable = |error: std::io::Error| bad(error.to_string());
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
        let text = fs::read_to_string(path).map_err(unreadable)?;
        // Relative paths are relative to the list.
        let folder = path.parent().unwrap_or(Path::new(""));
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| folder.join(line))
            .collect()
    };
    if paths.is_empty() {
        return Err(bad(
            "it has no witnesses (files named *.wtns, or lines with their paths)".into(),
        ));
    }
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut entries = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.file_stem().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if let Some(other) = seen.insert(name.clone(), path.clone()) {
            return Err(bad(format!(
                "{} and {} would have the same results, {name}.proof.json",
                other.display(),
                path.display()
            )));
        }
        entries.push(Entry { name, path });
    }
    Ok(entries)
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
        let names = |path: &Path| -> Vec<String> {
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
    }
}

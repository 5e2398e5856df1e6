//! The device code: which modules there are, and the digest of what each is made from.
//!
//! Also compiled into the build script and into `cargo xtask`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::digest::Digest;

/// One `.cu` of `kernels/src`.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its file name without ending.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Digest of it and of every header.
    pub sources: Digest,
}

/// The modules below `kernels`, by name.
pub fn modules(kernels: &Path) -> io::Result<Vec<Module>> {
    let mut headers = Vec::new();
    list(&kernels.join("include"), &mut headers)?;
    headers.sort();
    let mut shared = Digest::EMPTY;
    for header in &headers {
        let name = header.strip_prefix(kernels).unwrap_or(header);
        shared = shared
            .and(name.to_string_lossy().replace('\\', "/").as_bytes())
            .and(&fs::read(header)?);
    }
    let mut files = Vec::new();
    list(&kernels.join("src"), &mut files)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let sources = shared.and(name.as_bytes()).and(&fs::read(&path)?);
            Ok(Module {
                name,
                path,
                sources,
            })
        })
        .collect()
}

fn list(dir: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

//! nvcc: one that is installed, or the one of the public Python wheels, pinned by hash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{repo, wheels};

/// The oldest toolkit that the device code is written for.
const OLDEST: (u32, u32) = (12, 0);

/// A CUDA compiler.
#[derive(Clone, Debug)]
pub(crate) struct Toolkit {
    pub(crate) nvcc: PathBuf,
    /// As in 13.0.88.
    pub(crate) version: String,
}

impl Toolkit {
    /// The toolkit that the user names (`--nvcc`, `CUZK_NVCC`), else one that is installed, else the
    /// wheels.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self> {
        let variable = std::env::var_os("CUZK_NVCC").filter(|path| !path.is_empty());
        if let Some(path) = named.map(Path::to_owned).or(variable.map(PathBuf::from)) {
            // What was asked for is used or refused, never replaced.
            return Self::at(&path);
        }
        if let Some(toolkit) = Self::installed() {
            return Ok(toolkit);
        }
        Self::pinned().context(
            "no nvcc found (--nvcc, CUZK_NVCC, CUDA_HOME, PATH, the usual folders), and the Python wheels that carry it failed to install",
        )
    }

    /// The first usable one of the usual places.
    pub(crate) fn installed() -> Option<Self> {
        installed_places()
            .into_iter()
            .filter(|path| path.is_file())
            .find_map(|path| match Self::at(&path) {
                Ok(toolkit) => Some(toolkit),
                Err(error) => {
                    eprintln!("passing over {}: {error:#}", path.display());
                    None
                }
            })
    }

    /// The compiler of the wheels in kernels/requirements.txt.
    pub(crate) fn pinned() -> Result<Self> {
        Self::at(&wheels()?.join("bin/nvcc"))
    }

    fn at(nvcc: &Path) -> Result<Self> {
        let text = repo::output(Command::new(nvcc).arg("--version"))?;
        let version = text
            .split_once(", V")
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .with_context(|| format!("{} does not say its version", nvcc.display()))?
            .to_owned();
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        if found < OLDEST {
            bail!(
                "{} is of CUDA {version}; needed is {}.{} or newer",
                nvcc.display(),
                OLDEST.0,
                OLDEST.1
            );
        }
        Ok(Self {
            nvcc: nvcc.to_owned(),
            version,
        })
    }

    /// The architectures it can compile for, as 80 for `compute_80`.
    pub(crate) fn architectures(&self) -> Result<Vec<u32>> {
        let text = repo::output(Command::new(&self.nvcc).arg("--list-gpu-arch"))?;
        Ok(architectures_of(&text))
    }
}

/// What `nvcc --list-gpu-arch` says.
pub(crate) fn architectures_of(text: &str) -> Vec<u32> {
    let words = text.split_whitespace();
    words
        .filter_map(|word| word.strip_prefix("compute_")?.parse().ok())
        .collect()
}

/// `cuobjdump` of the wheels, with what it needs on its path.
pub(crate) fn cuobjdump() -> Result<Command> {
    let bin = wheels()?.join("bin");
    let mut command = Command::new(bin.join("cuobjdump"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(paths)?);
    Ok(command)
}

fn installed_places() -> Vec<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(std::env::var_os)
        .filter(|home| !home.is_empty())
        .map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/local")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("cuda-"))
        })
        .map(|path| path.join("bin"))
        .collect();
    versions.sort();
    homes
        .chain(std::env::split_paths(&path))
        .chain(["/usr/local/cuda/bin", "/opt/cuda/bin"].map(PathBuf::from))
        .chain(versions.into_iter().rev())
        .map(|dir| dir.join(format!("nvcc{}", std::env::consts::EXE_SUFFIX)))
        .collect()
}

/// Installs the wheels below the target folder, if they are not there; gives the toolkit's folder.
fn wheels() -> Result<PathBuf> {
    let requirements = repo::root().join("kernels/requirements.txt");
    let dir = repo::target().join("cuda");
    let site = wheels::install(&dir, &requirements, "nvidia/cu13/bin/nvcc")?;
    Ok(site.join("nvidia/cu13"))
}

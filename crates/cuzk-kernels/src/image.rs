//! Images of `cargo xtask ptx`: where they are, whether they are ours, which one a device runs.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::error::{Error, Result, minimum_driver};
use crate::manifest::{self, Image, Manifest};

mod generated {
    use crate::digest::Digest;
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

#[cfg(feature = "embed")]
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// A manifest and its files.
#[derive(Clone, Debug)]
pub struct ImageSet {
    place: Place,
    manifest: Manifest,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(PathBuf),
    #[cfg(feature = "embed")]
    Embedded,
}

/// An image, checked and ready for the driver.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) file: String,
    pub(crate) toolkit: String,
    pub(crate) bytes: Cow<'static, [u8]>,
}

/// Names the folder of images; everything else is looked at only without it.
const VARIABLE: &str = "CUZK_KERNELS";

impl ImageSet {
    /// The images of this program: in the folder that `CUZK_KERNELS` names, else those in the binary
    /// (feature `embed`), else in `kernels` beside the executable, else where `cargo xtask ptx` puts
    /// them.
    pub fn find() -> Result<Self> {
        if let Some(dir) = std::env::var_os(VARIABLE).filter(|dir| !dir.is_empty()) {
            return Self::from_directory(Path::new(&dir));
        }
        #[cfg(feature = "embed")]
        return Self::embedded();
        #[cfg(not(feature = "embed"))]
        {
            let beside = std::env::current_exe()
                .ok()
                .and_then(|path| Some(path.parent()?.join("kernels")));
            let built = PathBuf::from(env!("CUZK_KERNELS_BUILT_AT"));
            let looked_in: Vec<PathBuf> = beside.into_iter().chain([built]).collect();
            match looked_in
                .iter()
                .find(|dir| dir.join(manifest::FILE).is_file())
            {
                Some(dir) => Self::from_directory(dir),
                None => Err(Error::Missing { looked_in }),
            }
        }
    }

    /// The images of one folder.
    pub fn from_directory(dir: &Path) -> Result<Self> {
        let path = dir.join(manifest::FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing {
                looked_in: vec![dir.to_owned()],
            },
            _ => corrupt(&path, error.to_string()),
        })?;
        let manifest = Manifest::parse(&text).map_err(|reason| corrupt(&path, reason))?;
        Ok(Self {
            place: Place::Directory(dir.to_owned()),
            manifest,
        })
    }

    /// The images in the binary.
    #[cfg(feature = "embed")]
    pub fn embedded() -> Result<Self> {
        let manifest = Manifest::parse(embedded::MANIFEST)
            .map_err(|reason| corrupt(Path::new("the embedded manifest"), reason))?;
        Ok(Self {
            place: Place::Embedded,
            manifest,
        })
    }

    /// Where the images are, for a reader.
    pub fn place(&self) -> String {
        match &self.place {
            Place::Directory(dir) => dir.display().to_string(),
            #[cfg(feature = "embed")]
            Place::Embedded => "the binary".to_owned(),
        }
    }

    /// Whether a device of compute capability `capability` (90 for 9.0) with a driver of that version
    /// can run every module, without loading any.
    pub fn check(&self, capability: u32, driver: i32) -> Result<()> {
        generated::MODULES
            .iter()
            .try_for_each(|(module, _)| self.choose(module, capability, driver).map(drop))
    }

    /// The image of `module` for such a device.
    pub(crate) fn load(&self, module: &str, capability: u32, driver: i32) -> Result<Loaded> {
        let image = self.choose(module, capability, driver)?;
        let bytes = self.read(image)?;
        if Digest::of(&bytes) != image.content {
            return Err(Error::Corrupt {
                file: self.name_of(image),
                reason: "its content is not what the manifest says".to_owned(),
            });
        }
        Ok(Loaded {
            file: self.name_of(image),
            toolkit: image.toolkit.clone(),
            bytes,
        })
    }

    fn choose(&self, module: &str, capability: u32, driver: i32) -> Result<&Image> {
        let image = self.manifest.choose(module, capability).ok_or_else(|| {
            let images = self.manifest.images.iter();
            Error::WrongArchitecture {
                module: module.to_owned(),
                capability,
                available: images
                    .filter(|image| image.module == module)
                    .map(|image| image.target.to_string())
                    .collect(),
                place: self.place(),
            }
        })?;
        let ours = generated::MODULES.iter().find(|(name, _)| *name == module);
        if ours.is_none_or(|(_, sources)| *sources != image.sources) {
            return Err(Error::Stale {
                module: module.to_owned(),
                place: self.place(),
            });
        }
        // Machine code runs on any driver of the toolkit's major version, PTX of 13.2 wants 13.2.
        let (major, minor) = version(&image.toolkit);
        let needed = match image.target {
            manifest::Target::Cubin(_) => 1000 * major,
            manifest::Target::Ptx(_) => 1000 * major + 10 * minor,
        };
        if driver < needed {
            return Err(too_old(self.name_of(image), &image.toolkit, driver));
        }
        Ok(image)
    }

    fn read(&self, image: &Image) -> Result<Cow<'static, [u8]>> {
        match &self.place {
            Place::Directory(dir) => {
                let path = dir.join(&image.file);
                std::fs::read(&path)
                    .map(Cow::Owned)
                    .map_err(|error| corrupt(&path, error.to_string()))
            }
            #[cfg(feature = "embed")]
            Place::Embedded => embedded::IMAGES
                .iter()
                .find(|(file, _)| *file == image.file)
                .map(|(_, bytes)| Cow::Borrowed(*bytes))
                .ok_or_else(|| corrupt(Path::new(&image.file), "not in the binary".to_owned())),
        }
    }

    fn name_of(&self, image: &Image) -> String {
        match &self.place {
            Place::Directory(dir) => dir.join(&image.file).display().to_string(),
            #[cfg(feature = "embed")]
            Place::Embedded => format!("embedded {}", image.file),
        }
    }
}

pub(crate) fn too_old(file: String, toolkit: &str, driver: i32) -> Error {
    Error::DriverTooOld {
        file,
        toolkit: toolkit.to_owned(),
        driver,
        minimum: minimum_driver(toolkit),
    }
}

fn corrupt(path: &Path, reason: String) -> Error {
    Error::Corrupt {
        file: path.display().to_string(),
        reason,
    }
}

/// Major and minor of a version such as 13.0.88.
fn version(toolkit: &str) -> (i32, i32) {
    let mut parts = toolkit.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "block_check";

    /// A folder with one image of `MODULE`, its record changed by the test.
    fn folder(target: &str, change: impl FnOnce(&mut Image)) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let bytes = b"not really an image";
        let (_, sources) = generated::MODULES
            .iter()
            .find(|(name, _)| *name == MODULE)
            .unwrap();
        let mut image = Image {
            module: MODULE.to_owned(),
            target: target.parse().unwrap(),
            file: "image".to_owned(),
            toolkit: "13.0.88".to_owned(),
            content: Digest::of(bytes),
            sources: *sources,
            build: Digest::EMPTY,
        };
        change(&mut image);
        let manifest = Manifest {
            images: vec![image],
            entries: vec![],
        };
        std::fs::write(dir.path().join("image"), bytes).unwrap();
        std::fs::write(dir.path().join(manifest::FILE), manifest.to_string()).unwrap();
        dir
    }

    fn load(dir: &tempfile::TempDir, capability: u32, driver: i32) -> Result<Loaded> {
        ImageSet::from_directory(dir.path())?.load(MODULE, capability, driver)
    }

    #[test]
    fn a_good_image_loads() {
        let loaded = load(&folder("sm_90", |_| ()), 90, 13000).unwrap();
        assert_eq!(&*loaded.bytes, b"not really an image");
        assert!(load(&folder("compute_80", |_| ()), 121, 13010).is_ok());
    }

    /// GP-27, GP-40.
    #[test]
    fn what_is_wrong_comes_with_the_command_that_mends_it() {
        let empty = tempfile::tempdir().unwrap();
        let cases = [
            (load(&empty, 90, 13000), "no kernel images in"),
            (
                load(&folder("sm_90", |_| ()), 80, 13000),
                "cargo xtask ptx --sm 80",
            ),
            (
                load(
                    &folder("sm_90", |image| image.sources = Digest(7)),
                    90,
                    13000,
                ),
                "are not of this program's sources; build them anew with `cargo xtask ptx`",
            ),
            (
                load(
                    &folder("sm_90", |image| image.content = Digest(7)),
                    90,
                    13000,
                ),
                "its content is not what the manifest says",
            ),
            (
                load(
                    &folder("sm_90", |image| image.file = "none".to_owned()),
                    90,
                    13000,
                ),
                "none: ",
            ),
            (
                load(&folder("sm_90", |_| ()), 90, 12080),
                "needs driver 580 or newer; this driver supports CUDA 12.8",
            ),
            (
                load(
                    &folder("compute_80", |image| image.toolkit = "13.2.1".to_owned()),
                    90,
                    13000,
                ),
                "was built by CUDA 13.2.1, which needs",
            ),
        ];
        for (result, part) in cases {
            let text = result.unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_spoilt_manifest_is_corrupt() {
        let dir = folder("sm_90", |_| ());
        std::fs::write(dir.path().join(manifest::FILE), "nonsense").unwrap();
        assert!(matches!(load(&dir, 90, 13000), Err(Error::Corrupt { .. })));
    }
}

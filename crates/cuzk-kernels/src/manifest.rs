//! The list of images that `cargo xtask ptx` writes beside them.
//!
//! Also compiled into the build script and into `cargo xtask`. One record a line, words apart by
//! blanks:
//!
//! ```text
//! cuzk-kernels-manifest 1
//! image MODULE TARGET FILE TOOLKIT CONTENT SOURCES BUILD
//! entry MODULE NAME
//! ```
//!
//! CONTENT is the digest of the file, SOURCES of the `.cu` and all headers, BUILD of the sources,
//! the toolkit and its options.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

use super::digest::Digest;

/// The manifest's name in the folder of images.
pub const FILE: &str = "manifest.txt";

const HEADER: &str = "cuzk-kernels-manifest 1";

/// What an image is made for: 80 is compute capability 8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Machine code.
    Cubin(u32),
    /// PTX, which the driver compiles for the device.
    Ptx(u32),
}

impl Target {
    /// Whether a device of compute capability `device` can run it: machine code within its major
    /// version and not newer, PTX on any that is not older.
    pub fn runs_on(self, device: u32) -> bool {
        match self {
            Self::Cubin(built) => built / 10 == device / 10 && built <= device,
            Self::Ptx(built) => built <= device,
        }
    }

    /// The ending of the image's file name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Cubin(_) => "cubin",
            Self::Ptx(_) => "ptx",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(capability) => write!(f, "sm_{capability}"),
            Self::Ptx(capability) => write!(f, "compute_{capability}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            digits
                .parse()
                .map_err(|_| format!("\"{text}\" is no target"))
        };
        match (text.strip_prefix("sm_"), text.strip_prefix("compute_")) {
            (Some(digits), _) => number(digits).map(Self::Cubin),
            (_, Some(digits)) => number(digits).map(Self::Ptx),
            _ => Err(format!("\"{text}\" is no target")),
        }
    }
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The `.cu` it was made from, without ending.
    pub module: String,
    /// What it is for.
    pub target: Target,
    /// Its file, beside the manifest.
    pub file: String,
    /// The version of the toolkit, as in 13.0.88.
    pub toolkit: String,
    /// Digest of the file.
    pub content: Digest,
    /// Digest of what it was made from.
    pub sources: Digest,
    /// Digest of that, the toolkit and its options.
    pub build: Digest,
}

/// All images of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The images.
    pub images: Vec<Image>,
    /// Kernels, as module and entry.
    pub entries: Vec<(String, String)>,
}

impl Manifest {
    /// Reads a manifest. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(format!("it does not begin with \"{HEADER}\""));
        }
        let mut manifest = Self::default();
        for (number, line) in lines.enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                [
                    "image",
                    module,
                    target,
                    file,
                    toolkit,
                    content,
                    sources,
                    build,
                ] => {
                    if Path::new(file).components().count() != 1 || file.starts_with('.') {
                        return Err(format!("line {}: {file} is no file name", number + 2));
                    }
                    manifest.images.push(Image {
                        module: module.to_owned(),
                        target: target.parse()?,
                        file: file.to_owned(),
                        toolkit: toolkit.to_owned(),
                        content: content.parse()?,
                        sources: sources.parse()?,
                        build: build.parse()?,
                    });
                }
                ["entry", module, name] => {
                    manifest.entries.push((module.to_owned(), name.to_owned()));
                }
                _ => return Err(format!("line {} is of no known form", number + 2)),
            }
        }
        Ok(manifest)
    }

    /// The image of `module` that suits a device best: the newest machine code, else the newest PTX.
    pub fn choose(&self, module: &str, device: u32) -> Option<&Image> {
        let rank = |image: &&Image| match image.target {
            Target::Cubin(capability) => (1, capability),
            Target::Ptx(capability) => (0, capability),
        };
        self.images
            .iter()
            .filter(|image| image.module == module && image.target.runs_on(device))
            .max_by_key(rank)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = Vec::new();
        for image in &self.images {
            let Image {
                module,
                target,
                file,
                toolkit,
                content,
                sources,
                build,
            } = image;
            let mut line = String::new();
            write!(
                line,
                "image {module} {target} {file} {toolkit} {content} {sources} {build}"
            )?;
            lines.push(line);
        }
        for (module, name) in &self.entries {
            lines.push(format!("entry {module} {name}"));
        }
        lines.sort();
        writeln!(f, "{HEADER}")?;
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(module: &str, target: &str) -> Image {
        Image {
            module: module.to_owned(),
            target: target.parse().unwrap(),
            file: format!("{module}.{target}"),
            toolkit: "13.0.88".to_owned(),
            content: Digest(1),
            sources: Digest(2),
            build: Digest(3),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = Manifest {
            images: vec![image("a", "compute_80"), image("a", "sm_90")],
            entries: vec![("a".to_owned(), "cuzk_a".to_owned())],
        };
        assert_eq!(Manifest::parse(&manifest.to_string()), Ok(manifest));
    }

    #[test]
    fn nonsense_is_refused() {
        let good = Manifest {
            images: vec![image("a", "sm_90")],
            entries: vec![],
        }
        .to_string();
        for (from, to) in [
            ("manifest 1", "manifest 2"),
            ("sm_90 ", "sm_x "),
            ("a.sm_90", "../a.sm_90"),
            ("a.sm_90", "b/a"),
            ("image", "picture"),
            (" 13.0.88", ""),
            ("00000001", "0000000g"),
        ] {
            assert!(Manifest::parse(&good.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn the_best_image_is_chosen() {
        let images = ["compute_80", "sm_80", "sm_86", "sm_90", "sm_120"];
        let manifest = Manifest {
            images: images.iter().map(|target| image("a", target)).collect(),
            entries: vec![],
        };
        let chosen = |device| {
            let image = manifest.choose("a", device)?;
            Some(image.target.to_string())
        };
        for (device, target) in [
            (75, None),
            (80, Some("sm_80")),
            (89, Some("sm_86")),
            (90, Some("sm_90")),
            (100, Some("compute_80")),
            (121, Some("sm_120")),
        ] {
            assert_eq!(chosen(device).as_deref(), target, "{device}");
        }
        assert_eq!(manifest.choose("b", 90), None);
    }
}

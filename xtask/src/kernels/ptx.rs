//! `cargo xtask ptx`: device code to images, with a manifest of what each was made from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::digest::Digest;
use super::manifest::{self, Image, Manifest, Target};
use super::sources::{self, Module};
use super::toolkit::Toolkit;
use crate::repo;

/// What a release is built for; those that the toolkit does not know are left out.
const RELEASE: [u32; 6] = [80, 86, 89, 90, 100, 120];

/// The oldest architecture, for which PTX is made.
pub(crate) const OLDEST: u32 = 80;

/// Built for where there is no card.
const DEFAULT: u32 = 90;

/// What every image is compiled with. The optimiser's own defaults; `-v` tells registers and spills.
const FLAGS: [&str; 5] = ["-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v"];

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let options = Options::parse(args)?;
    if options.check {
        return check(&options.targets);
    }
    let begun = Instant::now();
    let toolkit = Toolkit::find(options.nvcc.as_deref())?;
    let mut targets = options.targets;
    if options.all {
        let (of_release, left_out) = release_targets(&toolkit.architectures()?);
        for sm in left_out {
            println!(
                "left out: sm_{sm}, which nvcc {} does not know",
                toolkit.version
            );
        }
        if of_release.is_empty() {
            bail!(
                "nvcc {} knows none of the supported architectures {RELEASE:?}; say which it is to compile for with --sm, \
                 or take another with --nvcc",
                toolkit.version
            );
        }
        targets.extend(of_release);
    }
    if targets.is_empty() {
        targets.extend(cards().into_iter().map(Target::Cubin));
    }
    if targets.is_empty() {
        println!("no card here: building for sm_{DEFAULT}");
        targets.insert(Target::Cubin(DEFAULT));
    }
    let built = build(&toolkit, &targets)?;
    println!(
        "{built} images built, in all {} targets with nvcc {}, {:.1} s: {}",
        targets.len(),
        toolkit.version,
        begun.elapsed().as_secs_f64(),
        folder().display()
    );
    Ok(ExitCode::SUCCESS)
}

/// A binary for each supported architecture that a compiler knows, and PTX for the oldest of them; and those it does not know.
fn release_targets(known: &[u32]) -> (Vec<Target>, Vec<u32>) {
    let (with, without): (Vec<u32>, Vec<u32>) =
        RELEASE.into_iter().partition(|sm| known.contains(sm));
    let ptx = with.first().copied().map(Target::Ptx);
    let targets = with.into_iter().map(Target::Cubin).chain(ptx);
    (targets.collect(), without)
}

/// What CI does: everything for sm_90 and PTX, from nothing, in at most eight minutes on two cores.
pub(crate) fn from_nothing() -> Result<()> {
    const LIMIT_SECONDS: u64 = 8 * 60;
    let toolkit = Toolkit::pinned()?;
    if folder().exists() {
        fs::remove_dir_all(folder())?;
    }
    let begun = Instant::now();
    let built = build(
        &toolkit,
        &[Target::Cubin(DEFAULT), Target::Ptx(OLDEST)].into(),
    )?;
    let seconds = begun.elapsed().as_secs();
    println!(
        "{built} images with nvcc {} in {seconds} s",
        toolkit.version
    );
    if seconds > LIMIT_SECONDS {
        bail!("device code takes {seconds} s to build, the limit is {LIMIT_SECONDS} s");
    }
    Ok(())
}

struct Options {
    nvcc: Option<PathBuf>,
    targets: BTreeSet<Target>,
    all: bool,
    check: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            nvcc: None,
            targets: BTreeSet::new(),
            all: false,
            check: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--nvcc" => options.nvcc = Some(args.next().context("--nvcc needs a path")?.into()),
                "--sm" => {
                    let list = args
                        .next()
                        .context("--sm needs an architecture, as in 90")?;
                    for sm in list.split(',') {
                        let number = sm.trim_start_matches("sm_").parse();
                        let number =
                            number.with_context(|| format!("--sm: \"{sm}\" is no architecture"))?;
                        options.targets.insert(Target::Cubin(number));
                    }
                }
                "--ptx" => drop(options.targets.insert(Target::Ptx(OLDEST))),
                "--all" => options.all = true,
                "--check" => options.check = true,
                _ => bail!("unknown option {arg}; see cargo xtask help"),
            }
        }
        if options.check && (options.all || options.nvcc.is_some()) {
            bail!("--check goes with --sm and --ptx only");
        }
        Ok(options)
    }
}

/// Where images go.
pub(crate) fn folder() -> PathBuf {
    repo::target().join("kernels")
}

pub(crate) fn modules() -> Result<Vec<Module>> {
    sources::modules(&repo::root().join("kernels")).context("kernels/")
}

/// The image's file name, before its ending.
pub(crate) fn stem(module: &str, target: Target) -> String {
    format!("{module}.{target}")
}

/// The architectures of the cards that the driver shows.
pub(crate) fn cards() -> BTreeSet<u32> {
    let query = ["--query-gpu=compute_cap", "--format=csv,noheader"];
    repo::output(Command::new("nvidia-smi").args(query))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().replace('.', "").parse().ok())
        .collect()
}

fn read_manifest() -> Manifest {
    fs::read_to_string(folder().join(manifest::FILE))
        .ok()
        .and_then(|text| Manifest::parse(&text).ok())
        .unwrap_or_default()
}

/// Whether the file is there and is what the manifest says.
fn is_whole(image: &Image) -> bool {
    fs::read(folder().join(&image.file)).is_ok_and(|bytes| Digest::of(&bytes) == image.content)
}

/// Says whether all images are of the present sources; without targets, those that the set has.
fn check(targets: &BTreeSet<Target>) -> Result<ExitCode> {
    match state(targets)? {
        Ok(current) => {
            println!("images are current: {current}");
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => {
            println!("{}\nrun cargo xtask ptx", faults.join("\n"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// For `cargo xtask doctor`: what images there are.
pub(crate) fn summary() -> String {
    match state(&BTreeSet::new()) {
        Ok(Ok(current)) => current,
        Ok(Err(faults)) => format!("{}; cargo xtask ptx makes them", faults[0]),
        Err(error) => format!("{error:#}"),
    }
}

/// The targets of the images, all current, or what is wrong with some.
fn state(targets: &BTreeSet<Target>) -> Result<Result<String, Vec<String>>> {
    let manifest = read_manifest();
    let in_set: BTreeSet<Target> = manifest.images.iter().map(|image| image.target).collect();
    let targets = if targets.is_empty() { &in_set } else { targets };
    if targets.is_empty() {
        return Ok(Err(vec![format!("no images in {}", folder().display())]));
    }
    let mut faults = Vec::new();
    for module in modules()? {
        for &target in targets {
            let image = manifest
                .images
                .iter()
                .find(|image| image.module == module.name && image.target == target);
            match image {
                None => faults.push(format!("{} for {target}: missing", module.name)),
                Some(image) if image.sources != module.sources => {
                    faults.push(format!("{}: older than its sources", image.file));
                }
                Some(image) if !is_whole(image) => {
                    faults.push(format!("{}: not what the manifest says", image.file));
                }
                Some(_) => {}
            }
        }
    }
    Ok(if faults.is_empty() {
        Ok(shown(targets))
    } else {
        Err(faults)
    })
}

fn shown(targets: &BTreeSet<Target>) -> String {
    let names: Vec<String> = targets.iter().map(Target::to_string).collect();
    names.join(", ")
}

/// Refuses what a compiler cannot compile for.
fn check_known(version: &str, known: &[u32], targets: &BTreeSet<Target>) -> Result<()> {
    for target in targets {
        let (Target::Cubin(sm) | Target::Ptx(sm)) = target;
        if !known.contains(sm) {
            let known: Vec<String> = known.iter().map(|sm| format!("sm_{sm}")).collect();
            bail!(
                "nvcc {version} cannot compile for {target}, only for {}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

/// Compiles what is not current; says how many images that were.
pub(crate) fn build(toolkit: &Toolkit, targets: &BTreeSet<Target>) -> Result<usize> {
    check_known(&toolkit.version, &toolkit.architectures()?, targets)?;
    let dir = folder();
    fs::create_dir_all(&dir)?;
    let modules = modules()?;
    let old = read_manifest();
    let mut kept: Vec<Image> = old
        .images
        .into_iter()
        // Of other sources: of no use to anybody.
        .filter(|image| {
            modules
                .iter()
                .any(|m| m.name == image.module && m.sources == image.sources)
        })
        .collect();
    let mut todo = Vec::new();
    for module in &modules {
        for &target in targets {
            let build = build_digest(toolkit, module, target);
            let same = |image: &Image| image.module == module.name && image.target == target;
            let current = kept
                .iter()
                .any(|image| same(image) && image.build == build && is_whole(image));
            if !current {
                kept.retain(|image| !same(image));
                todo.push((module, target, build));
            }
        }
    }
    let built = compile_all(toolkit, &todo)?;
    let count = built.len();
    kept.extend(built);
    let manifest = Manifest {
        entries: entries(&kept)?,
        images: kept,
    };
    write_whole(&dir.join(manifest::FILE), manifest.to_string().as_bytes())?;
    remove_strangers(&manifest)?;
    Ok(count)
}

fn build_digest(toolkit: &Toolkit, module: &Module, target: Target) -> Digest {
    FLAGS
        .iter()
        .fold(Digest::EMPTY, |digest, flag| digest.and(flag.as_bytes()))
        .and(toolkit.version.as_bytes())
        .and(module.sources.to_string().as_bytes())
        .and(target.to_string().as_bytes())
}

type Job<'a> = (&'a Module, Target, Digest);

/// Two compilers at a time where there are two cores; large files first.
fn compile_all(toolkit: &Toolkit, todo: &[Job<'_>]) -> Result<Vec<Image>> {
    let mut order: Vec<&Job<'_>> = todo.iter().collect();
    let size = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    order.sort_by_key(|(module, ..)| std::cmp::Reverse(size(&module.path)));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(order.len()) {
            scope.spawn(|| {
                while let Some(job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = compile(toolkit, job);
                    results
                        .lock()
                        .expect("no panic under the lock")
                        .push(result);
                }
            });
        }
    });
    results.into_inner()?.into_iter().collect()
}

fn compile(toolkit: &Toolkit, (module, target, build): &Job<'_>) -> Result<Image> {
    let begun = Instant::now();
    let stem = stem(&module.name, *target);
    let file = format!("{stem}.{}", target.extension());
    // Not under its name until it is whole.
    let unfinished = folder().join(format!("{stem}.unfinished.{}", target.extension()));
    let mut command = Command::new(&toolkit.nvcc);
    match target {
        Target::Cubin(sm) => command.arg("-cubin").arg(format!("-arch=sm_{sm}")),
        Target::Ptx(sm) => command.arg("-ptx").arg(format!("-arch=compute_{sm}")),
    };
    command
        .args(FLAGS)
        .arg("-I")
        .arg(repo::root().join("kernels/include"))
        .arg("-o")
        .arg(&unfinished)
        .arg(&module.path);
    let output = command.output().context("cannot run nvcc")?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!(
            "{}\n{}{log}",
            repo::shown(&command),
            String::from_utf8_lossy(&output.stdout)
        );
    }
    let bytes = fs::read(&unfinished)?;
    fs::write(folder().join(format!("{stem}.log")), log.as_bytes())?;
    fs::rename(&unfinished, folder().join(&file))?;
    println!(
        "{stem}: {} KB, {:.1} s",
        bytes.len().div_ceil(1000),
        begun.elapsed().as_secs_f64()
    );
    Ok(Image {
        module: module.name.clone(),
        target: *target,
        file,
        toolkit: toolkit.version.clone(),
        content: Digest::of(&bytes),
        sources: module.sources,
        build: *build,
    })
}

/// The kernels of the images, from any image of each module.
fn entries(images: &[Image]) -> Result<Vec<(String, String)>> {
    let mut entries = BTreeSet::new();
    for image in images {
        let bytes = fs::read(folder().join(&image.file))?;
        let text = String::from_utf8_lossy(&bytes);
        let mark = match image.target {
            // The names of ELF sections.
            Target::Cubin(_) => "\0.text.",
            Target::Ptx(_) => ".entry ",
        };
        for rest in text.split(mark).skip(1) {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            if !name.is_empty() {
                entries.insert((image.module.clone(), name.to_owned()));
            }
        }
    }
    Ok(entries.into_iter().collect())
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, bytes)?;
    fs::rename(&unfinished, path).with_context(|| path.display().to_string())
}

/// Removes files of images that are no longer in the manifest.
fn remove_strangers(manifest: &Manifest) -> Result<()> {
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let known = name == manifest::FILE
            || manifest.images.iter().any(|image| {
                name == image.file || name == format!("{}.log", stem(&image.module, image.target))
            });
        if !known && path.is_file() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::toolkit::architectures_of;

    /// GP-10: compilers drop old architectures and do not know new ones yet.
    #[test]
    fn a_release_is_built_for_what_the_compiler_knows() {
        let (targets, left_out) = release_targets(&[75, 80, 86, 87, 89, 90, 100, 103, 120, 121]);
        assert_eq!(targets.len(), RELEASE.len() + 1);
        assert!(targets.contains(&Target::Ptx(80)));
        assert!(left_out.is_empty());
        let (targets, left_out) = release_targets(&[90, 100, 130]);
        let expected = [Target::Cubin(90), Target::Cubin(100), Target::Ptx(90)];
        assert_eq!(targets, expected);
        assert_eq!(left_out, [80, 86, 89, 120]);
        assert!(release_targets(&[130, 140]).0.is_empty());
    }

    /// GP-10: one that is asked for all the same is refused by its name.
    #[test]
    fn an_architecture_that_the_compiler_has_dropped_is_named() {
        let known = architectures_of("compute_90\ncompute_100\nlto_100\n");
        assert_eq!(known, [90, 100]);
        let refused = check_known("14.0.10", &known, &[Target::Cubin(70)].into());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "nvcc 14.0.10 cannot compile for sm_70, only for sm_90, sm_100"
        );
        let both = [Target::Cubin(100), Target::Ptx(90)].into();
        assert!(check_known("14.0.10", &known, &both).is_ok());
    }
}

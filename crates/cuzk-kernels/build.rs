//! Digests of the device code, so that stale images are refused; with `emu`, the device code itself
//! by the host's C++ compiler; with `embed`, the images.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

#[allow(dead_code, unreachable_pub, reason = "shared with the library")]
#[path = "src/digest.rs"]
mod digest;
#[allow(dead_code, unreachable_pub, reason = "shared with the library")]
#[path = "src/manifest.rs"]
mod manifest;
#[allow(unreachable_pub, reason = "shared with the library")]
#[path = "src/sources.rs"]
mod sources;

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("../..");
    // A packaged crate has the device code in itself.
    let kernels = match here.join("kernels") {
        own if own.is_dir() => own,
        _ => root.join("kernels"),
    };
    println!("cargo::rerun-if-changed={}", kernels.display());
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    println!("cargo::rerun-if-env-changed=CUZK_KERNELS");
    let images = match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root.join(dir),
        _ => root.join("target"),
    }
    .join("kernels");
    println!(
        "cargo::rustc-env=CUZK_KERNELS_BUILT_AT={}",
        images.display()
    );

    let modules = sources::modules(&kernels).expect("the sources in kernels/ can be read");
    let table: String = modules
        .iter()
        .map(|module| format!("    ({:?}, Digest(0x{})),\n", module.name, module.sources))
        .collect();
    write_generated(
        "modules.rs",
        &format!("pub(crate) const MODULES: &[(&str, Digest)] = &[\n{table}];\n"),
    );

    if env::var_os("CARGO_FEATURE_EMBED").is_some() {
        let from = env::var_os("CUZK_KERNELS").map_or(images, PathBuf::from);
        embed(&from, &modules);
    }
    if env::var_os("CARGO_FEATURE_EMU").is_some() {
        emulate(&kernels, &modules);
    }
}

fn write_generated(name: &str, text: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join(name), text).expect("OUT_DIR can be written");
}

/// A table of the images in `from`, which must be those of the present sources.
fn embed(from: &Path, modules: &[sources::Module]) {
    let advice = "run `cargo xtask ptx --all`";
    let path = from.join(manifest::FILE);
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("feature embed: {}: {error}; {advice}", path.display()));
    let manifest = manifest::Manifest::parse(&text)
        .unwrap_or_else(|error| panic!("feature embed: {}: {error}; {advice}", path.display()));
    let mut table = format!("pub(crate) const MANIFEST: &str = {text:?};\n");
    table += "pub(crate) const IMAGES: &[(&str, &[u8])] = &[\n";
    for module in modules {
        let mut images = manifest
            .images
            .iter()
            .filter(|image| image.module == module.name)
            .peekable();
        assert!(
            images.peek().is_some(),
            "feature embed: no image of {}; {advice}",
            module.name
        );
        for image in images {
            assert!(
                image.sources == module.sources,
                "feature embed: {} is older than its sources; {advice}",
                image.file
            );
            let file = fs::canonicalize(from.join(&image.file))
                .unwrap_or_else(|error| panic!("feature embed: {}: {error}; {advice}", image.file));
            println!("cargo::rerun-if-changed={}", file.display());
            table += &format!(
                "    ({:?}, include_bytes!({:?})),\n",
                image.file,
                file.display().to_string()
            );
        }
    }
    table += "];\n";
    write_generated("embedded.rs", &table);
}

/// The sanitizer's runtime, whole and within the executable, so that its functions come before all
/// others. `-fsanitize` alone does not do it: gcc leaves runtimes out under rustc's `-nodefaultlibs`.
fn link_sanitizer(name: &str) {
    println!("cargo::rustc-link-arg=-fsanitize={name}");
    // What starts the runtime, then the runtime.
    let files: &[&str] = match name {
        "address" => &["libasan_preinit.o", "libasan.a"],
        "undefined" => &["libubsan.a"],
        "thread" => &["libtsan_preinit.o", "libtsan.a"],
        _ => panic!("CUZK_SANITIZE={name}: address, undefined or thread"),
    };
    let compiler = cc::Build::new().cpp(true).get_compiler();
    for file in files {
        let output = compiler
            .to_command()
            .arg(format!("-print-file-name={file}"))
            .output()
            .expect("the C++ compiler says where its libraries are");
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // Clang has its runtimes elsewhere, and links them whatever rustc says.
        if Path::new(&path).is_absolute() {
            println!("cargo::rustc-link-arg=-Wl,--whole-archive,{path},--no-whole-archive");
        }
    }
    for library in [
        "-lstdc++",
        "-lm",
        "-ldl",
        "-lpthread",
        "-lrt",
        "-lgcc_s",
        "-lc",
    ] {
        println!("cargo::rustc-link-arg={library}");
    }
}

/// The emulator, and every module as C++.
fn emulate(kernels: &Path, modules: &[sources::Module]) {
    println!("cargo::rerun-if-changed=emulator");
    println!("cargo::rerun-if-env-changed=CUZK_SANITIZE");
    let sanitizer = env::var("CUZK_SANITIZE")
        .ok()
        .filter(|name| !name.is_empty());
    if let Some(name) = &sanitizer {
        // For the tests, which then expect to be stopped, and for whatever links the objects.
        println!("cargo::rustc-env=CUZK_SANITIZER={name}");
        link_sanitizer(name);
    }
    let build = || {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++20")
            .include(kernels.join("include"))
            .include("emulator")
            // Device code reads points as 16-byte words.
            .flag("-fno-strict-aliasing")
            .flag("-Wno-unknown-pragmas");
        // Device code in a debug build is too slow to test with.
        build.opt_level(if sanitizer.is_some() { 1 } else { 2 });
        if let Some(name) = &sanitizer {
            build.flag(format!("-fsanitize={name}"));
            build.flag("-fno-omit-frame-pointer").flag("-g1");
            if name == "undefined" {
                build.flag("-fno-sanitize-recover=all");
            }
            if name == "thread" {
                build.define("CUZK_EMULATOR_THREADS", None);
            }
        }
        build
    };
    let mut device = build();
    device.flag("-xc++");
    for module in modules {
        device.file(&module.path);
    }
    // Kernels that do what a card would not survive: tests of the emulator itself.
    device.file("emulator/faulty.cu");
    device.compile("cuzk_device_code");
    let threads = match sanitizer.as_deref() {
        Some("thread") => "emulator/threads.cpp",
        _ => "emulator/fibers.cpp",
    };
    build()
        .files(["emulator/emulator.cpp", threads])
        .compile("cuzk_emulator");
}

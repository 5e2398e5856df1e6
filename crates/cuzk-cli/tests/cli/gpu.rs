//! GPUs, on a machine with any: the driver's library is a small one made here, which counts.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::files::Files;
use crate::run::{Run, Scratch, cuzk};

/// The calls by which devices are listed. Each start of the driver is a line in the log.
const DRIVER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void log_line(const char *text) {
    FILE *file = fopen(getenv("TEST_LOG"), "a");
    if (file) { fprintf(file, "%s\n", text); fclose(file); }
}
__attribute__((constructor)) static void loaded(void) { log_line("loaded"); }
int cuInit(unsigned flags) {
    log_line("cuInit");
    const char *code = getenv("TEST_INIT");
    return code ? atoi(code) : 0;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, "Test Card", length);
    return 0;
}
int cuDeviceGetUuid_v2(char *uuid, int device) { memset(uuid, 0xab, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 24ull << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 9; return 0; }
"#;

struct Driver {
    scratch: Scratch,
    log: PathBuf,
}

impl Driver {
    fn new() -> Self {
        let scratch = Scratch::new();
        let source = scratch.file("driver.c", DRIVER);
        let library = scratch.path("libcuda.so");
        let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-shared", "-fPIC", "-w", "-o"]);
        compiler.arg(&library).arg(&source);
        assert!(compiler.status().expect("a C compiler").success());
        fs::copy(&library, scratch.path("libcuda.so.1")).unwrap();
        let log = scratch.path("log");
        Self { scratch, log }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = cuzk(args);
        command.env("LD_LIBRARY_PATH", self.scratch.path(""));
        command.env("TEST_LOG", &self.log);
        command
    }

    fn prove(&self, device: &str) -> Run {
        let files = Files::of("mul1");
        let mut command = self.command(&["prove", "--device", device, "--zkey"]);
        command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
        Run::of(command)
    }

    fn starts(&self) -> usize {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| *line == "cuInit").count()
    }
}

/// GP-39: what a machine has is listed with every name that --device takes.
#[test]
fn devices_lists_gpus() {
    let driver = Driver::new();
    let run = Run::of(driver.command(&["devices"])).succeeds();
    for words in ["Test Card", "24 GiB", "GPU-abababab-"] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    let json = Run::of(driver.command(&["devices", "--json"]))
        .succeeds()
        .json();
    assert_eq!(json["devices"][1]["device"], "cuda:0");
    assert_eq!(json["devices"][1]["model"], "Test Card");
    assert_eq!(json["devices"][1]["pci"], "0009:09:09.0");
    assert_eq!(json["gpu"]["found"], true);
}

/// A GPU that cannot be tested has not passed: this one lists, and can do nothing else.
#[test]
fn a_self_test_that_cannot_run_is_a_failure() {
    let driver = Driver::new();
    for args in [
        &["devices", "--self-test"] as &[&str],
        &["devices", "--self-test", "--json"],
    ] {
        Run::of(driver.command(args)).expect(5, &["GPU 0 (Test Card): "]);
    }
}

#[test]
fn a_gpu_that_does_not_work_is_refused_in_other_words_than_one_that_is_not_there() {
    let driver = Driver::new();
    for device in ["cuda", "cuda:0", "cuda:GPU-abab", "cuda:9:9:9"] {
        let words = ["no usable device for --device", "GPU 0 (Test Card): "];
        driver.prove(device).expect(5, &words);
    }
    for device in ["cuda:1", "cuda:GPU-cd"] {
        driver
            .prove(device)
            .expect(5, &["no visible device is", "Test Card"]);
    }
    driver.prove("cuda:big").expect(2, &["names no device"]);
}

/// GP-16, PF-09: auto asks once, says what it found, and proves what is tiny without it.
#[test]
fn auto_asks_for_gpus_once() {
    let driver = Driver::new();
    let run = driver.prove("auto").succeeds();
    assert!(
        run.stdout
            .contains("--device auto: GPU 0 (Test Card) is there, but")
    );
    assert_eq!(driver.starts(), 1);
}

/// GP-39: a GPU that does not work is given up for the CPU, in words, where a circuit is large enough
/// for one.
#[test]
fn auto_says_why_a_gpu_is_not_used() {
    let driver = Driver::new();
    let mut command = driver.command(&["prove", "--synthetic", "14", "--json"]);
    command.args(["--device", "auto"]);
    let json = Run::of(command).succeeds().json();
    assert_eq!(json["device"]["used"], "cpu");
    let reason = json["device"]["reason"].as_str().unwrap();
    assert!(reason.contains("GPU 0 (Test Card): "), "{reason}");
}

/// GP-12: a driver is not even loaded when the CPU is asked for.
#[test]
fn the_cpu_leaves_the_driver_alone() {
    let driver = Driver::new();
    driver.prove("cpu").succeeds();
    assert!(!Path::new(&driver.log).exists());
}

/// GP-39: a driver that does not work is no silent "no GPU".
#[test]
fn a_broken_driver_is_said() {
    let driver = Driver::new();
    // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    let words = "the CUDA library and the kernel driver do not fit";
    for args in [
        &["devices"] as &[&str],
        &["prove", "--synthetic", "4", "--device", "auto"],
    ] {
        let mut command = driver.command(args);
        command.env("TEST_INIT", "803");
        let run = Run::of(command).succeeds();
        assert!(run.stdout.contains(words), "{run:#?}");
    }
    let mut command = driver.command(&["prove", "--synthetic", "4", "--device", "cuda"]);
    command.env("TEST_INIT", "803");
    Run::of(command).expect(5, &[words]);
}

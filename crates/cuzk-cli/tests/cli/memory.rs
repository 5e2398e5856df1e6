//! Jobs that do not fit into memory are refused before they are begun.

use std::process::Command;

use crate::files::Files;
use crate::run::{Run, Scratch, cuzk, run};

/// Before anything is loaded.
#[test]
fn a_host_limit_is_kept() {
    let files = Files::of("merkle");
    let scratch = Scratch::new();
    let inputs = [("--zkey", files.zkey.as_path()), ("--wtns", &files.wtns)];
    scratch.prove(&inputs, &["--host-limit", "1MiB"]).expect(
        6,
        &["out of memory", "are needed", "--host-limit allows 1 MiB"],
    );
    scratch.prove(&inputs, &["--host-limit", "1GiB"]).succeeds();
    run(["prove", "--synthetic", "28", "--host-limit", "1GiB"]).expect(6, &["out of memory"]);
}

/// Without a flag the system's own limits hold: exit 6, where an allocation that fails would abort.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_the_shell_is_met_before_it_aborts() {
    let limited = |limit_kib: u32, args: &[&str]| {
        let command = cuzk(args);
        let mut shell = Command::new("sh");
        shell.arg("-c");
        shell.arg(format!("ulimit -v {limit_kib}; exec \"$0\" \"$@\""));
        shell.arg(command.get_program()).args(command.get_args());
        // Each thread's allocator may claim 64 MiB of addresses.
        Run::of(shell)
    };
    let two = "--threads=2";
    for log_n in ["20", "24", "28"] {
        limited(600_000, &["prove", two, "--synthetic", log_n])
            .expect(6, &["out of memory", "address space", "--host-limit"]);
    }
    limited(600_000, &["prove", two, "--synthetic", "10"]).succeeds();
}

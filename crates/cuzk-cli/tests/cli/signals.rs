//! CS-06: signals at any stage.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::files::Files;
use crate::run::{Scratch, cuzk};

/// Starts `command`, sends `signal` after `delay`, and gives the exit code.
fn interrupted(mut command: Command, signal: Signal, delay: Duration) -> Option<i32> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    thread::sleep(delay);
    let pid = Pid::from_child(&child);
    // It may have ended before.
    let _ = kill_process(pid, signal);
    child.wait().unwrap().code()
}

/// Whether this process, and so every child of it, was started under nohup.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// Long enough for any machine: while the circuit is made, its key, and the proof.
#[test]
fn a_signal_ends_a_proof_with_its_own_code_and_no_file() {
    for (signal, code, delays_ms) in [
        (Signal::INT, 130, &[300, 1500, 4000][..]),
        (Signal::TERM, 143, &[300, 1500, 4000]),
        (Signal::HUP, 129, &[300]),
    ] {
        if signal == Signal::HUP && hangups_are_ignored() {
            continue;
        }
        for delay_ms in delays_ms.iter().copied() {
            let scratch = Scratch::new();
            let mut command = cuzk(["prove", "--synthetic", "20", "--shape", "dense"]);
            command.arg("--proof").arg(scratch.out("proof.json"));
            command.arg("--public").arg(scratch.out("public.json"));
            let found = interrupted(command, signal, Duration::from_millis(delay_ms));
            assert_eq!(found, Some(code), "{signal:?} after {delay_ms} ms");
            scratch.expect_nothing_left();
        }
    }
}

/// Whenever the signal comes, outputs are whole or absent, and nothing else is left.
#[test]
fn outputs_are_whole_or_absent_whenever_the_signal_comes() {
    let files = Files::of("mul1");
    for delay_ms in (0..60).step_by(4) {
        let scratch = Scratch::new();
        let mut command = cuzk(["prove", "--zkey"]);
        command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
        command.arg("--proof").arg(scratch.out("proof.json"));
        command.arg("--public").arg(scratch.out("public.json"));
        let code = interrupted(command, Signal::TERM, Duration::from_millis(delay_ms));
        let left = scratch.left();
        for name in &left {
            let text = std::fs::read(scratch.out(name)).unwrap();
            serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        }
        match code {
            Some(0) => assert_eq!(left, ["proof.json", "public.json"]),
            // None: before the handler was there.
            Some(143) | None => {
                assert!(
                    left.is_empty() || left == ["proof.json", "public.json"],
                    "{left:?}"
                );
            }
            other => panic!("exit {other:?} after {delay_ms} ms"),
        }
    }
}

/// While a large output is written, which `prepare` does for minutes; and without harm to what was there before.
#[test]
fn a_signal_while_an_output_is_written_leaves_the_old_one() {
    let scratch = Scratch::new();
    let out = scratch.file("out/key.cuzk", "old");
    let is_writing = || {
        let others = std::fs::read_dir(scratch.path("out")).unwrap();
        let lengths = others.map(|entry| entry.unwrap().metadata().map_or(0, |file| file.len()));
        lengths.max().unwrap_or(0) > 3
    };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && hangups_are_ignored() {
            continue;
        }
        // On a busy machine the writing may be over before the signal is there.
        let is_ended_by_it = || {
            let mut command = cuzk(["prepare", "--synthetic", "15", "--out"]);
            command.arg(&out);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            while !is_writing() && child.try_wait().unwrap().is_none() {
                thread::sleep(Duration::from_micros(200));
            }
            let _ = kill_process(Pid::from_child(&child), signal);
            let ended = child.wait().unwrap().code();
            assert_eq!(scratch.left(), ["key.cuzk"]);
            if ended == Some(0) {
                std::fs::write(&out, "old").unwrap();
                return false;
            }
            assert_eq!(ended, Some(code));
            assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
            true
        };
        assert!((0..20).any(|_| is_ended_by_it()), "{signal:?}");
    }
}

/// Started under nohup, a process outlives its terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_that_was_ignored_stays_so() {
    let scratch = Scratch::new();
    let proof = scratch.out("proof.json");
    let command = cuzk(["prove", "--device", "cpu", "--synthetic", "14", "--proof"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
        .arg(&proof)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    let _ = kill_process(Pid::from_child(&child), Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(proof.is_file());
}

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

/// Long enough for any machine: while the circuit is made, its key, and the proof.
#[test]
fn a_signal_ends_a_proof_with_its_own_code_and_no_file() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for delay_ms in [300, 1500, 4000] {
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

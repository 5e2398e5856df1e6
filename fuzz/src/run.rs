//! The loop over cases, the verdict on each, and what is left behind of a failure.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_testkit::Words;

use crate::alloc;
use crate::mutate::{random, systematic};
use crate::targets::Target;

/// A case that runs longer than this is taken to run for ever.
const CASE_SECONDS_MAX: u64 = 30;

/// How much of a panic's text is shown.
const MESSAGE_CHARS_MAX: usize = 400;

/// How long a failing input is made smaller.
const SHRINK_TIME: Duration = Duration::from_secs(5);

/// Bytes a parser may hold for a file of this size.
const fn allowance(file_bytes: usize) -> usize {
    4 * file_bytes + (64 << 20)
}

/// Whether a case is under way: its panic is a verdict, any other is a fault of this program.
static IN_CASE: AtomicBool = AtomicBool::new(false);

/// Panics of cases are not printed from here on; they are reported once, made small.
pub(crate) fn quieten_cases() {
    let print = take_hook();
    set_hook(Box::new(move |info| {
        if !IN_CASE.load(Ordering::Relaxed) {
            print(info);
        }
    }));
}

/// Why a case failed.
fn verdict(target: &Target, input: &[u8]) -> Result<bool, String> {
    IN_CASE.store(true, Ordering::Relaxed);
    let (outcome, peak) = alloc::peak_of(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    IN_CASE.store(false, Ordering::Relaxed);
    let accepted = outcome.map_err(|panic| {
        let text: String = message(&*panic).chars().take(MESSAGE_CHARS_MAX).collect();
        format!("panic: {text}")
    })?;
    if peak > allowance(input.len()) {
        return Err(format!("{peak} bytes held for a file of {}", input.len()));
    }
    Ok(accepted)
}

/// Runs a target for about `time`; prints a line; `false` when it failed.
pub(crate) fn fuzz(target: &Target, time: Duration, seed: u64) -> bool {
    let seeds = (target.seeds)();
    if seeds.is_empty() {
        println!("{:14} FAILED: no file to start from", target.name);
        return false;
    }
    let watch = Watch::start(target.name);
    let begun = Instant::now();
    let mut tally = Tally::default();
    let mut try_input = |input: Vec<u8>| -> Result<(), (Vec<u8>, String)> {
        watch.begin(&input);
        match verdict(target, &input) {
            Ok(accepted) => tally.count(accepted),
            Err(why) => return Err((input, why)),
        }
        Ok(())
    };
    let result = (|| {
        for seed in &seeds {
            try_input(seed.bytes.clone())?;
        }
        // Half of the time at most goes to the systematic cases, smallest files first.
        for seed in &seeds {
            for input in systematic(seed, target.kind) {
                if begun.elapsed() * 2 > time {
                    break;
                }
                try_input(input)?;
            }
        }
        let mut words = Words::new(seed ^ fnv1a(target.name.as_bytes()));
        while begun.elapsed() < time {
            let (from, other) = (words.pick(&seeds).clone(), words.pick(&seeds).clone());
            try_input(random(&from, &other, target.kind, &mut words))?;
        }
        Ok(())
    })();
    let failure = result.err().map(|(input, why)| {
        watch.pause();
        let smaller = shrink(&input, |input| verdict(target, input).is_err());
        let why = verdict(target, &smaller).err().unwrap_or(why);
        (smaller, why)
    });
    watch.pause();
    let Tally { cases, accepted } = tally;
    let Some((input, why)) = failure else {
        println!(
            "{:14} {cases} cases from {} files in {:.1} s, {accepted} accepted",
            target.name,
            seeds.len(),
            begun.elapsed().as_secs_f64()
        );
        return true;
    };
    println!("{:14} FAILED after {cases} cases: {why}", target.name);
    report(target.name, &input);
    false
}

/// Runs one input and lets a panic be seen.
pub(crate) fn replay(target: &Target, path: &Path) -> bool {
    let input = match std::fs::read(path) {
        Ok(input) => input,
        Err(error) => {
            println!("{}: {error}", path.display());
            return false;
        }
    };
    match verdict(target, &input) {
        Ok(accepted) => {
            println!("{}", if accepted { "accepted" } else { "refused" });
            true
        }
        Err(why) => {
            println!("FAILED: {why}");
            false
        }
    }
}

#[derive(Default)]
struct Tally {
    cases: u64,
    accepted: u64,
}

impl Tally {
    fn count(&mut self, accepted: bool) {
        self.cases += 1;
        self.accepted += u64::from(accepted);
    }
}

/// Cuts pieces out of a failing input while it fails, larger pieces first.
fn shrink(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let begun = Instant::now();
    let mut best = input.to_vec();
    let mut piece = best.len().next_power_of_two() / 2;
    while piece > 0 && begun.elapsed() < SHRINK_TIME {
        let mut at = 0;
        while at < best.len() && begun.elapsed() < SHRINK_TIME {
            let mut smaller = best.clone();
            smaller.drain(at..(at + piece).min(best.len()));
            if fails(&smaller) {
                best = smaller;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    best
}

/// Writes a failing input below the target folder, and prints it when it is short.
fn report(target: &str, input: &[u8]) {
    let path = failure_path(target, input);
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, input));
    match written {
        Ok(()) => println!(
            "  {} bytes in {}\n  again: cargo run -p cuzk-fuzz -- --target {target} --replay {}",
            input.len(),
            path.display(),
            path.display()
        ),
        Err(error) => println!("  cannot write {}: {error}", path.display()),
    }
    if input.len() <= 512 {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("  {hex}");
    }
}

fn failure_path(target: &str, input: &[u8]) -> PathBuf {
    let name = format!("{target}-{:016x}.bin", fnv1a(input));
    cuzk_testkit::target_dir().join("fuzz").join(name)
}

/// A name for some bytes, no more.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// The case under way: when it began, and its input.
type Running = Option<(Instant, Vec<u8>)>;

/// Ends the process when a case does not end, and keeps its input.
struct Watch {
    current: Arc<Mutex<Running>>,
    /// Dropped with this, which ends the thread.
    _alive: mpsc::Sender<()>,
}

impl Watch {
    fn start(target: &'static str) -> Self {
        let current = Arc::new(Mutex::new(Running::None));
        let (alive, ended) = mpsc::channel::<()>();
        let watched = Arc::clone(&current);
        thread::spawn(move || {
            while ended.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((begun, input)) = &*current
                    && begun.elapsed().as_secs() >= CASE_SECONDS_MAX
                {
                    println!("{target:12} FAILED: a case runs longer than {CASE_SECONDS_MAX} s");
                    report(target, input);
                    #[allow(clippy::exit, reason = "the stuck thread cannot be ended otherwise")]
                    std::process::exit(1);
                }
            }
        });
        Self {
            current,
            _alive: alive,
        }
    }

    fn begin(&self, input: &[u8]) {
        *self.lock() = Some((Instant::now(), input.to_vec()));
    }

    fn pause(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::{Kind, Seed};

    fn target(run: fn(&[u8]) -> bool) -> Target {
        Target {
            name: "test",
            kind: Kind::Binary,
            seeds: || {
                vec![Seed {
                    bytes: vec![7; 64],
                    marks: vec![0, 32],
                }]
            },
            run,
        }
    }

    #[test]
    fn a_panic_is_caught() {
        quieten_cases();
        let target = target(|bytes| {
            assert!(bytes.len() != 3, "three bytes");
            true
        });
        let caught = verdict(&target, &[0; 3]);
        assert_eq!(caught, Err("panic: three bytes".to_owned()));
        assert_eq!(verdict(&target, &[0; 4]), Ok(true));
    }

    #[test]
    fn a_believed_count_is_caught() {
        let target = target(|bytes| Vec::<u8>::with_capacity(bytes.len() << 20).capacity() == 0);
        assert!(verdict(&target, &[0; 100]).is_err());
        assert_eq!(verdict(&target, &[0; 2]), Ok(false));
    }

    #[test]
    fn shrinking_keeps_what_fails() {
        let input: Vec<u8> = (0..100).collect();
        let small = shrink(&input, |input| input.contains(&50) && input.contains(&77));
        assert_eq!(small, [50, 77]);
    }
}

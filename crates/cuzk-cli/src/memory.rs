//! What memory there is, how much was used, and whether a job fits.
//!
//! A process that allocates what the system does not have is aborted or killed, and no code of ours
//! runs then. So what a job needs is estimated from the headers of its files and compared with what
//! can be had before anything large is allocated; `docs/host-memory.md` says what is left to go wrong.

use std::fs;
use std::path::Path;

use cuzk_gpu_mem::{Bytes, MIB};

use crate::exit::Failure;

/// The most host memory this process has held, where the system says it.
pub(crate) fn peak_host_bytes() -> Option<u64> {
    named_kib("/proc/self/status", "VmHWM:")
}

/// Memory of the machine, and what of it can be had now.
pub(crate) fn host_bytes() -> Option<(u64, u64)> {
    let total = named_kib("/proc/meminfo", "MemTotal:")?;
    let available = named_kib("/proc/meminfo", "MemAvailable:")?;
    Some((total, available))
}

/// A bound on the memory that this process may still take, and who sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    bytes: u64,
    by: &'static str,
}

impl Limit {
    /// `--host-limit` as it stands, else the tightest of what the system says: the machine's
    /// available memory, the control groups this process is in, and its resource limits.
    pub(crate) fn of(host_limit: Option<u64>) -> Option<Self> {
        if let Some(bytes) = host_limit {
            return Some(Self {
                bytes,
                by: "--host-limit allows",
            });
        }
        let machine = host_bytes().map(|(_, available)| available);
        [
            (machine, "the machine has available"),
            (cgroup_left(), "the control group (container) has left"),
            (
                resource_left("Max address space", "VmSize:"),
                "the limit on address space (ulimit -v) leaves",
            ),
            (
                resource_left("Max data size", "VmData:"),
                "the limit on data (ulimit -d) leaves",
            ),
        ]
        .into_iter()
        .filter_map(|(bytes, by)| Some(Self { bytes: bytes?, by }))
        .min_by_key(|limit| limit.bytes)
    }

    /// Refuses a job that needs more, with both numbers.
    pub(crate) fn check(limit: Option<Self>, needed_bytes: u64) -> Result<(), Failure> {
        match limit {
            Some(Self { bytes, by }) if needed_bytes > bytes => Err(Failure::OutOfMemory(format!(
                "out of memory: about {} are needed ({needed_bytes} bytes), {by} {} ({bytes} \
                     bytes); --host-limit sets another bound",
                Bytes(needed_bytes),
                Bytes(bytes)
            ))),
            _ => Ok(()),
        }
    }
}

/// Bytes that may still be taken, now that inputs are loaded.
pub(crate) fn left_bytes(host_limit: Option<u64>) -> Option<u64> {
    match host_limit {
        Some(bytes) => {
            let used = named_kib("/proc/self/status", "VmRSS:").unwrap_or(0);
            Some(bytes.saturating_sub(used))
        }
        None => Limit::of(None).map(|limit| limit.bytes),
    }
}

/// What proving takes beside the loaded inputs: the vectors over the domain with the tables of the
/// transforms, sorted digits and buckets of each thread, and the program itself.
pub(crate) fn proving_bytes(domain_size: u64, threads: usize) -> u64 {
    let buckets = domain_size.saturating_mul(256).min(8 * MIB);
    (6 * 32 * domain_size)
        .saturating_add(buckets * threads as u64)
        .saturating_add(32 * MIB)
}

/// What the points of a prepared key take of the host, where they go from their file to a GPU of which
/// `usable_bytes` can be had: nothing if they all stay there beside a section of its proofs.
pub(crate) fn points_on_host(point_bytes: u64, domain_size: u64, usable_bytes: u64) -> u64 {
    const SECTION_BYTES_A_ROW: u64 = 256;
    let section = domain_size.saturating_mul(SECTION_BYTES_A_ROW);
    if point_bytes.saturating_add(section) <= usable_bytes {
        return 0;
    }
    point_bytes
}

/// What the memory control groups of this process leave, file cache not counted as used.
fn cgroup_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let root = Path::new("/sys/fs/cgroup");
            if controllers.is_empty() {
                left_along(root, path, &UNIFIED)
            } else if controllers.split(',').any(|name| name == "memory") {
                left_along(&root.join("memory"), path, &LEGACY)
            } else {
                None
            }
        })
        .min()
}

/// The files of a memory control group.
struct GroupFiles {
    limit: &'static str,
    used: &'static str,
    /// Lines of `memory.stat` with the file cache, which the kernel gives back under pressure.
    cache: [&'static str; 2],
}

const UNIFIED: GroupFiles = GroupFiles {
    limit: "memory.max",
    used: "memory.current",
    cache: ["active_file ", "inactive_file "],
};

const LEGACY: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: ["total_active_file ", "total_inactive_file "],
};

/// The least that the group at `path` or one above it leaves. In a container the path may be one of
/// the host's and not be there: the container's own group is at the root then.
fn left_along(root: &Path, path: &str, files: &GroupFiles) -> Option<u64> {
    let group = root.join(path.trim_start_matches('/'));
    group
        .ancestors()
        .take_while(|group| group.starts_with(root))
        .filter_map(|group| left_in(group, files))
        .min()
}

fn left_in(group: &Path, files: &GroupFiles) -> Option<u64> {
    let number = |name| -> Option<u64> {
        let text = fs::read_to_string(group.join(name)).ok()?;
        // "max" is no number: no limit.
        text.trim().parse().ok()
    };
    let (limit, used) = (number(files.limit)?, number(files.used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cache: u64 = files
        .cache
        .iter()
        .filter_map(|name| stat.lines().find_map(|line| line.strip_prefix(name)))
        .filter_map(|bytes| bytes.trim().parse::<u64>().ok())
        .sum();
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// What a resource limit leaves: the limit less what of it is used.
fn resource_left(limit: &str, used: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(limit))?;
    // "unlimited" is no number.
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(named_kib("/proc/self/status", used)?))
}

/// The bytes of a line "name: number kB".
fn named_kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_says_both() {
        assert!(peak_host_bytes().unwrap() > 1 << 20);
        let (total, available) = host_bytes().unwrap();
        assert!(available <= total);
        let limit = Limit::of(None).unwrap();
        assert!(limit.bytes <= total, "{limit:?}");
    }

    #[test]
    fn the_tightest_group_counts_and_its_file_cache_does_not() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        let write = |dir: &Path, limit: &str, used: &str| {
            fs::write(dir.join("memory.max"), limit).unwrap();
            fs::write(dir.join("memory.current"), used).unwrap();
        };
        write(&group, "max\n", "70\n");
        assert_eq!(left_along(root.path(), "/a/b", &UNIFIED), None);
        write(&root.path().join("a"), "1000\n", "700\n");
        assert_eq!(left_along(root.path(), "/a/b", &UNIFIED), Some(300));
        let stat = "anon 1\nactive_file 20\ninactive_file 30\n";
        fs::write(root.path().join("a/memory.stat"), stat).unwrap();
        assert_eq!(left_along(root.path(), "/a/b", &UNIFIED), Some(350));
        // A path of the host, not there in the container.
        write(root.path(), "500\n", "600\n");
        assert_eq!(left_along(root.path(), "/x/y", &UNIFIED), Some(0));
    }

    #[test]
    fn points_that_stay_on_a_gpu_take_nothing_of_the_host() {
        const GIB: u64 = 1 << 30;
        // A PoRep partition on a large card, and on a small one.
        assert_eq!(points_on_host(44 * GIB, 1 << 27, 138 * GIB), 0);
        assert_eq!(points_on_host(44 * GIB, 1 << 27, 16 * GIB), 44 * GIB);
        assert_eq!(points_on_host(u64::MAX, u64::MAX, 16 * GIB), u64::MAX);
    }

    #[test]
    fn a_refusal_has_both_numbers() {
        let limit = Limit::of(Some(1 << 20));
        assert!(Limit::check(limit, 1 << 20).is_ok());
        let text = Limit::check(limit, 3 << 20).unwrap_err().to_string();
        assert!(text.contains("3 MiB are needed (3145728 bytes), --host-limit allows 1 MiB"));
    }
}

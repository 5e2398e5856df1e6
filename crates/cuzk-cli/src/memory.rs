//! What memory there is and how much was used.

/// The most host memory this process has held, where the system says it.
pub(crate) fn peak_host_bytes() -> Option<u64> {
    proc_kib("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

/// Memory of the machine, and what of it can be had now.
pub(crate) fn host_bytes() -> Option<(u64, u64)> {
    let total = proc_kib("/proc/meminfo", "MemTotal:")?;
    let available = proc_kib("/proc/meminfo", "MemAvailable:")?;
    Some((total * 1024, available * 1024))
}

/// A value in kB of a file in /proc.
fn proc_kib(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_says_both() {
        assert!(peak_host_bytes().unwrap() > 1 << 20);
        let (total, available) = host_bytes().unwrap();
        assert!(available <= total);
    }
}

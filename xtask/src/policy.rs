//! What no committed file may hold: the host of a package registry, a path of somebody's machine, a
//! link to a file that is not there.
//!
//! A lock file that names a host sends everybody to that host; a path of one machine is wrong on
//! every other.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::repo;

/// Hosts of package registries, in pieces, so that this file does not hold them.
const REGISTRY_HOSTS: &[&[&str]] = &[
    &["registry.", "npmjs.", "org"],
    &["registry.", "yarnpkg.", "com"],
    &["npm.", "pkg.github.", "com"],
    &["py", "pi.", "org"],
    &["files.", "python", "hosted.org"],
    &["py", "pi.nvidia.", "com"],
    &["index.", "crates.", "io"],
    &["static.", "crates.", "io"],
    &["deb.", "debian.", "org"],
    &["proxy.", "golang.", "org"],
];

/// Folders that exist on one machine only.
const MACHINE_PATHS: &[&[&str]] = &[
    &["/wo", "rk/"],
    &["/ro", "ot/"],
    &["/ho", "me/"],
    &["/Us", "ers/"],
    &["/tmp/", "bash_", "jobs"],
    &["../sh", "ared"],
];

/// The one source that a Cargo.lock may name.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every file that is committed or would be: tracked, or neither tracked nor ignored.
pub(crate) fn check() -> Result<()> {
    let list = repo::output(
        std::process::Command::new("git")
            .args([
                // The folder may belong to another user, as in a container.
                "-c",
                "safe.directory=*",
                "ls-files",
                "--cached",
                "--others",
                "--exclude-standard",
                "-z",
            ])
            .current_dir(repo::root()),
    )?;
    let mut faults = Vec::new();
    for name in list.split('\0').filter(|name| !name.is_empty()) {
        let path = repo::root().join(name);
        // A deleted file is still listed until the deletion is staged; links are not followed.
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            faults.extend(faults_of(name, text));
            if name.ends_with(".md") {
                faults.extend(dead_links(&path, text).map(|link| format!("{name}: no {link}")));
            }
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

fn faults_of(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: &str| faults.push(format!("{name}:{}: {what}", line + 1));
    let file = Path::new(name).file_name().unwrap_or_default();
    for (number, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        if REGISTRY_HOSTS
            .iter()
            .any(|host| lower.contains(&host.concat()))
        {
            fault(number, "names the host of a package registry");
        }
        if MACHINE_PATHS
            .iter()
            .any(|path| begins_a_path(line, &path.concat()))
        {
            fault(number, "names a path of one machine");
        }
        let trimmed = line.trim_start();
        if file == "package-lock.json" && trimmed.starts_with("\"resolved\"") {
            fault(
                number,
                "a lock file with download addresses (npm: omit-lockfile-registry-resolved)",
            );
        }
        if file == "Cargo.lock"
            && trimmed
                .strip_prefix("source = ")
                .is_some_and(|source| source.trim_matches('"') != CRATES_IO)
        {
            fault(number, "a crate from elsewhere than crates.io");
        }
    }
    faults
}

/// Links of a Markdown file to files that are not there.
fn dead_links<'a>(path: &'a Path, text: &'a str) -> impl Iterator<Item = &'a str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next())
        .filter(|link| !link.is_empty() && !link.contains("://"))
        .filter(|link| !path.with_file_name("").join(link).exists())
}

/// Whether `needle` stands in `line` where a path can begin: not inside a longer one, as in
/// `fixtures/root/` or a web address.
fn begins_a_path(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        !line[..at]
            .chars()
            .next_back()
            .is_some_and(|before| before.is_alphanumeric() || "._-/}~*".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_clean() {
        check().unwrap();
    }

    #[test]
    fn every_dependency_is_used_and_has_its_reason() {
        let root = repo::root();
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let reasons = std::fs::read_to_string(root.join("docs/dependencies.md")).unwrap();
        let (_, list) = manifest.split_once("[workspace.dependencies]").unwrap();
        let (list, _) = list.split_once("\n[").unwrap();
        let used = repo::metadata().unwrap();
        let packages = used["packages"].as_array().unwrap();
        let used = packages
            .iter()
            .flat_map(|package| package["dependencies"].as_array().unwrap());
        for line in list.lines() {
            let Some((name, _)) = line.split_once(" = ") else {
                continue;
            };
            let is_used = used.clone().any(|dependency| dependency["name"] == name);
            assert!(is_used, "nothing uses {name}");
            let fine = name.starts_with("cuzk-") || reasons.contains(&format!("`{name}`"));
            assert!(
                fine,
                "docs/dependencies.md does not say why {name} is there"
            );
        }
    }

    #[test]
    fn the_page_of_dependencies_says_who_uses_them() {
        let page = std::fs::read_to_string(repo::root().join("docs/dependencies.md")).unwrap();
        let (_, table) = page.split_once("## In what users build").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let metadata = repo::metadata().unwrap();
        let users = |name: &str| -> Vec<String> {
            let packages = metadata["packages"].as_array().unwrap().iter();
            packages
                .filter(|package| {
                    let mut dependencies = package["dependencies"].as_array().unwrap().iter();
                    dependencies.any(|d| d["name"] == name && d["kind"].is_null())
                })
                .filter_map(|package| package["name"].as_str()?.strip_prefix("cuzk-"))
                .filter(|user| !["testkit", "fuzz", "benches", "examples"].contains(user))
                .map(str::to_owned)
                .collect()
        };
        let mut rows = 0;
        for line in table.lines().filter(|line| line.starts_with("| `")) {
            let mut cells = line.trim_matches('|').split(" | ");
            let (names, who) = (cells.next().unwrap(), cells.next().unwrap());
            let (who, _) = who.split_once(';').unwrap_or((who, ""));
            let said: std::collections::BTreeSet<String> = who
                .split(", ")
                .filter(|user| *user != "tests")
                .map(str::to_owned)
                .collect();
            let found = names
                .split(',')
                .flat_map(|name| users(name.trim_matches([' ', '`'])));
            assert_eq!(said, found.collect(), "who uses{names}");
            rows += 1;
        }
        assert!(rows > 10, "the table is not where it was");
    }

    #[test]
    fn every_host_and_path_is_found() {
        for host in REGISTRY_HOSTS {
            let line = format!("\"https://{}/x/-/x-1.tgz\"", host.concat());
            assert_eq!(faults_of("any.txt", &line).len(), 1, "{line}");
        }
        for path in MACHINE_PATHS {
            let line = format!("see `{}/x`", path.concat());
            assert_eq!(faults_of("any.txt", &line).len(), 1, "{line}");
        }
    }

    #[test]
    fn dead_links_are_found() {
        let readme = repo::root().join("README.md");
        let text =
            "[a](CHANGELOG.md) [b](docs/none.md) [c](https://example.net) [d](#e) [f](deny.toml#g)";
        let dead: Vec<_> = dead_links(&readme, text).collect();
        assert_eq!(dead, ["docs/none.md"]);
    }

    #[test]
    fn longer_paths_and_plain_words_pass() {
        let lines = "fixtures/root/x\nhttps://example.net/home/x\nwork/main\ncrates.io";
        assert_eq!(faults_of("any.txt", lines), Vec::<String>::new());
    }

    #[test]
    fn lock_files_name_no_other_source() {
        let fine = format!("source = \"{CRATES_IO}\"");
        assert_eq!(faults_of("Cargo.lock", &fine).len(), 0);
        assert_eq!(
            faults_of("Cargo.lock", "source = \"git+https://x\"").len(),
            1
        );
        assert_eq!(
            faults_of("a/package-lock.json", "  \"resolved\": \"x\"").len(),
            1
        );
    }
}

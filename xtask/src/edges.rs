//! Which crate of ours may depend on which. A new edge is a design change: it is made here and in
//! ARCHITECTURE.md.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::repo;

/// A crate and what it may name under `[dependencies]`: everything further down its chain.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cuzk-field", &[]),
    ("cuzk-formats", &["cuzk-field"]),
    ("cuzk-gpu-mem", &[]),
    ("cuzk-kernels", &["cuzk-gpu-mem", "cuzk-field"]),
    ("cuzk-ntt", &["cuzk-kernels", "cuzk-gpu-mem", "cuzk-field"]),
    ("cuzk-msm", &["cuzk-kernels", "cuzk-gpu-mem", "cuzk-field"]),
    (
        "cuzk-groth16",
        &[
            "cuzk-ntt",
            "cuzk-msm",
            "cuzk-formats",
            "cuzk-kernels",
            "cuzk-gpu-mem",
            "cuzk-field",
        ],
    ),
    (
        "cuzk-sched",
        &[
            "cuzk-groth16",
            "cuzk-ntt",
            "cuzk-msm",
            "cuzk-formats",
            "cuzk-kernels",
            "cuzk-gpu-mem",
            "cuzk-field",
        ],
    ),
    (
        "cuzk-cli",
        &[
            "cuzk-sched",
            "cuzk-groth16",
            "cuzk-ntt",
            "cuzk-msm",
            "cuzk-formats",
            "cuzk-kernels",
            "cuzk-gpu-mem",
            "cuzk-field",
        ],
    ),
    ("cuzk-testkit", &["cuzk-kernels", "cuzk-gpu-mem"]),
    (
        "cuzk-bellman",
        &[
            "cuzk-sched",
            "cuzk-groth16",
            "cuzk-formats",
            "cuzk-gpu-mem",
            "cuzk-field",
        ],
    ),
    (
        "supraseal-c2",
        &[
            "cuzk-sched",
            "cuzk-groth16",
            "cuzk-formats",
            "cuzk-gpu-mem",
            "cuzk-field",
        ],
    ),
    ("xtask", &[]),
];

/// These use crates, and are used by none: they may depend on any crate of ours.
const LEAVES: &[&str] = &["cuzk-benches", "cuzk-examples", "cuzk-fuzz"];

/// For tests only.
const DEV_ONLY: &str = "cuzk-testkit";

/// Checks every dependency between packages of this workspace.
pub(crate) fn check() -> Result<()> {
    let faults = faults(&repo::metadata()?);
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

fn faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut faults = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let leaf = LEAVES.contains(&name);
        let allowed = ALLOWED.iter().find(|(n, _)| *n == name).map(|(_, to)| *to);
        if allowed.is_none() && !leaf {
            faults.push(format!(
                "{name} is not in the list of allowed edges (xtask/src/edges.rs)"
            ));
        }
        let dependencies = package["dependencies"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            let to = dependency["name"].as_str().unwrap_or_default();
            // Null for [dependencies], else "dev" or "build". Tests may use any of ours, but xtask.
            let is_dev = dependency["kind"] == "dev";
            if !ours.contains(to) || (is_dev && name != "xtask" && to != "xtask") {
                continue;
            }
            let fine = if to == DEV_ONLY {
                leaf
            } else {
                leaf && to != "xtask" || allowed.is_some_and(|allowed| allowed.contains(&to))
            };
            if !fine {
                faults.push(format!("{name} -> {to} is not an allowed edge"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace(edges: &[(&str, &str, Value)]) -> Value {
        let names: BTreeSet<&str> = edges.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
        let packages: Vec<Value> = names
            .into_iter()
            .map(|name| {
                let dependencies: Vec<Value> = edges
                    .iter()
                    .filter(|(from, ..)| *from == name)
                    .map(|(_, to, kind)| json!({ "name": to, "kind": kind }))
                    .collect();
                json!({ "name": name, "dependencies": dependencies })
            })
            .collect();
        json!({ "packages": packages })
    }

    #[test]
    fn this_workspace_keeps_to_the_list() {
        check().unwrap();
    }

    #[test]
    fn edges_run_one_way() {
        let down = workspace(&[("cuzk-formats", "cuzk-field", Value::Null)]);
        assert_eq!(faults(&down), Vec::<String>::new());
        let up = workspace(&[("cuzk-field", "cuzk-formats", Value::Null)]);
        assert_eq!(faults(&up).len(), 1);
        let build = workspace(&[("cuzk-field", "cuzk-formats", json!("build"))]);
        assert_eq!(faults(&build).len(), 1);
    }

    #[test]
    fn testkit_is_for_tests_and_xtask_stands_alone() {
        assert!(faults(&workspace(&[("cuzk-field", "cuzk-testkit", json!("dev"))])).is_empty());
        assert!(!faults(&workspace(&[("cuzk-field", "cuzk-testkit", Value::Null)])).is_empty());
        assert!(!faults(&workspace(&[("xtask", "cuzk-field", Value::Null)])).is_empty());
        assert!(!faults(&workspace(&[("xtask", "cuzk-field", json!("dev"))])).is_empty());
        assert!(faults(&workspace(&[("cuzk-benches", "cuzk-testkit", Value::Null)])).is_empty());
    }

    #[test]
    fn a_crate_that_is_not_listed_is_refused() {
        assert!(!faults(&workspace(&[("cuzk-new", "cuzk-field", Value::Null)])).is_empty());
    }
}

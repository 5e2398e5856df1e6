//! Every dependency under a licence of the list in `deny.toml`.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::repo;

pub(crate) fn check() -> Result<()> {
    check_of(&["metadata", "--format-version=1"], &[])
}

/// The packages that `cargo` lists with these arguments; `also` are licences besides those of the list.
pub(crate) fn check_of(arguments: &[&str], also: &[&str]) -> Result<()> {
    let config = std::fs::read_to_string(repo::root().join("deny.toml"))?;
    let mut allowed = allowed(&config).context("deny.toml has no list `allow`")?;
    allowed.extend(also);
    let text = repo::output(repo::cargo().args(arguments))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let faults: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none named");
            let fine = is_allowed(licence, &allowed);
            (!fine).then(|| format!("{}: licence {licence} is not in deny.toml", package["name"]))
        })
        .collect();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// The strings of the list `allow`.
fn allowed(config: &str) -> Option<Vec<&str>> {
    let (_, list) = config.split_once("\nallow = [")?;
    let (list, _) = list.split_once(']')?;
    Some(list.split('"').skip(1).step_by(2).collect())
}

/// Whether an SPDX expression can be met by the licences allowed. AND binds tighter than OR; a
/// slash is an old way to write OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        tokens: &tokens,
        allowed,
    };
    parser.any() == Some(true) && parser.tokens.is_empty()
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    /// Terms joined by OR; `None` for what is no expression.
    fn any(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take("OR") {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.take("AND") {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.any()?;
            return self.take(")").then_some(value);
        }
        let (name, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        if self.take("WITH") {
            let (exception, rest) = self.tokens.split_first()?;
            self.tokens = rest;
            let name = format!("{name} WITH {exception}");
            return Some(self.allowed.contains(&name.as_str()));
        }
        Some(self.allowed.contains(name))
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.first() == Some(&token);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        for fine in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_allowed(fine, &allowed), "{fine}");
        }
        for wrong in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "GPL-2.0 OR GPL-3.0 AND MIT",
            "MIT WITH other",
            "(MIT",
            "MIT MIT",
        ] {
            assert!(!is_allowed(wrong, &allowed), "{wrong}");
        }
    }

    #[test]
    fn the_list_is_read() {
        assert_eq!(
            allowed("x\nallow = [\n \"A\",\n \"B C\",\n]\n"),
            Some(vec!["A", "B C"])
        );
    }
}

//! Numbers of bytes, as people write them.

/// Units by name; powers of 1024 as in GiB, of 1000 as in GB.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
];

/// Parses "24GiB", "1.5 GiB", "4096".
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let factor = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .map(|(_, factor)| *factor);
    let (Some(factor), Ok(number)) = (factor, number.parse::<f64>()) else {
        return Err("a size is a number with a unit, as 24GiB or 512MiB".into());
    };
    let bytes = number * factor as f64;
    if bytes < 1.0 || bytes > u64::MAX as f64 {
        return Err("a size is at least one byte and below 2^64".into());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1KiB", 1024),
            ("1.5 GiB", 3 << 29),
            ("24gib", 24 << 30),
            ("2GB", 2_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "GiB",
            "-1",
            "1 XB",
            "0",
            "1e99",
            "1.2.3",
            "nan",
            "99999999999TiB",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

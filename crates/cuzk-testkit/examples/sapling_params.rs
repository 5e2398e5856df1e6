//! Writes the parameters of Zcash's Sapling Spend circuit to the path given, for tools that want the
//! key of the case `sapling_spend` as a file.
//!
//! `cargo run -p cuzk-testkit --features sapling --example sapling_params -- PATH`

fn main() -> std::io::Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or_else(|| std::io::Error::other("the path of the file to write is missing"))?;
    std::fs::write(path, wagyu_zcash_parameters::load_sapling_parameters().0)
}

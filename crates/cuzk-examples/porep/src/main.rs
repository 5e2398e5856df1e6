//! Circuits of Filecoin's storage proofs at a sector of 2 KiB, proved by cuzk and by bellperson with the same r and s:
//! the same bytes, verified by Filecoin's own code.
#![forbid(unsafe_code)]

mod args;
mod compare;
mod devices;
#[cfg(feature = "dropin")]
mod dropin;
mod post;
mod sector;

use std::process::ExitCode;

use anyhow::Result;

use args::{Args, Which};
use sector::{Sector, Workplace};

fn main() -> Result<ExitCode> {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{}", args::HELP);
            return Ok(ExitCode::SUCCESS);
        }
        Err(what) => {
            eprintln!("error: {what}\n{}", args::HELP);
            return Ok(ExitCode::from(2));
        }
    };
    let place = Workplace::new()?;
    if args.wants(Which::PoRep) {
        let config = sector::config(args.partitions);
        let sector = Sector::seal(&place, &config, 1)?;
        compare::run(&sector::porep(&config, &sector)?, &args)?;
    }
    if args.wants(Which::WinningPost) {
        let sector = Sector::seal(&place, &sector::config(1), 2)?;
        compare::run(&post::winning(&sector)?, &args)?;
    }
    if args.wants(Which::WindowPost) {
        let config = sector::config(1);
        let sectors = (3..6)
            .map(|seed| Sector::seal(&place, &config, seed))
            .collect::<Result<Vec<_>>>()?;
        compare::run(&post::window(&sectors)?, &args)?;
    }
    Ok(ExitCode::SUCCESS)
}

//! The command line.

use std::path::PathBuf;

pub const HELP: &str = "\
Usage: cargo xtask porep [OPTION ..]

Seals a sector of 2 KiB with filecoin-proofs, makes parameters with bellperson, and proves the circuits of
storage-proofs with cuzk and with bellperson in turn, with the same r and s. The proofs must be the same bytes
and are verified by storage-proofs itself.

  --circuit NAME    porep (the default), winning-post, window-post, or all
  --partitions N    partitions of the PoRep, 1 or 2; a sector of this size has 1, with 2 challenges
  --rounds N        proofs by each, 3 by default; times are medians
  --device D        cpu (the default), or cuda: cuzk proves on a GPU as well, and everything is compared
  --key WHO         bellperson (the default) or cuzk: who makes the parameters; cuzk's way is faster
  --params FILE     parameters of the one circuit: read if the file is there, otherwise made and written to it
  --histogram       record the circuit and count its witness, prove nothing

`cargo xtask dropin porep` proves the same through bellperson's feature cuda-supraseal as well, with cuzk's
drop-in for supraseal-c2 behind it.
";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    PoRep,
    WinningPost,
    WindowPost,
}

#[derive(Debug)]
pub struct Args {
    /// `None`: all.
    pub circuit: Option<Which>,
    pub partitions: u8,
    pub rounds: usize,
    /// Parameters by `cuzk_groth16::synth`.
    pub key_by_cuzk: bool,
    /// On a GPU as well.
    pub on_gpu: bool,
    pub params: Option<PathBuf>,
    pub histogram: bool,
}

impl Args {
    /// `None` when help is asked for.
    pub fn parse(mut given: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut args = Self {
            circuit: Some(Which::PoRep),
            partitions: 1,
            rounds: 3,
            key_by_cuzk: false,
            on_gpu: false,
            params: None,
            histogram: false,
        };
        while let Some(option) = given.next() {
            let mut value = || given.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--help" | "-h" => return Ok(None),
                "--histogram" => args.histogram = true,
                "--circuit" => {
                    args.circuit = match value()?.as_str() {
                        "porep" => Some(Which::PoRep),
                        "winning-post" => Some(Which::WinningPost),
                        "window-post" => Some(Which::WindowPost),
                        "all" => None,
                        other => return Err(format!("no circuit {other}")),
                    }
                }
                "--partitions" => {
                    args.partitions = match value()?.as_str() {
                        "1" => 1,
                        "2" => 2,
                        other => return Err(format!("1 or 2 partitions, not {other}")),
                    }
                }
                "--rounds" => {
                    args.rounds = match value()?.parse() {
                        Ok(rounds) if rounds > 0 => rounds,
                        _ => return Err("--rounds takes a number from 1".into()),
                    }
                }
                "--key" => {
                    args.key_by_cuzk = match value()?.as_str() {
                        "bellperson" => false,
                        "cuzk" => true,
                        other => return Err(format!("no key by {other}")),
                    }
                }
                "--device" => {
                    args.on_gpu = match value()?.as_str() {
                        "cpu" => false,
                        "cuda" => true,
                        other => return Err(format!("no device {other}")),
                    }
                }
                "--params" => {
                    let path = std::path::absolute(value()?).map_err(|error| error.to_string())?;
                    args.params = Some(path);
                }
                other => return Err(format!("unknown option {other}")),
            }
        }
        if args.circuit.is_none() && args.params.is_some() {
            return Err("--params is for one circuit".into());
        }
        Ok(Some(args))
    }

    pub fn wants(&self, which: Which) -> bool {
        self.circuit.is_none_or(|circuit| circuit == which)
    }
}

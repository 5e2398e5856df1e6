//! The command line, and the environment variables that stand in for flags.

mod many;
mod parse;
mod prepare;
mod synth;
mod timeline;

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::many::ManyArgs;
#[cfg(test)]
pub(crate) use self::parse::prove_args;
pub(crate) use self::parse::{parse, variable_of, variables};
pub(crate) use self::prepare::PrepareArgs;
pub(crate) use self::synth::SynthArgs;
pub(crate) use self::timeline::TimelineArgs;
use crate::device::DeviceChoice;
use crate::exit;
use crate::sizes;

const AFTER_HELP: &str = "\
Every flag but -v has an environment variable of the same meaning, named in its help; the flag wins.

Exit codes: 0 ok; 1 a proof does not verify; 2 usage; 3 bad input file; 4 bad witness, or one of
another circuit; 5 no usable device under --device cuda; 6 out of memory; 7 internal error;
129, 130 and 143 interrupted by SIGHUP, SIGINT and SIGTERM. Where no proof is made, no output file is
left. Of many proofs, those begun are finished and written at the first signal; a second ends at once.";

/// Groth16 proofs over BLS12-381: circom, bellman and arkworks keys.
#[derive(Parser, Debug)]
#[command(name = "cuzk", version, propagate_version = true, after_help = AFTER_HELP)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    logs: LogArgs,
}

/// What is to be done, and how loudly.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) logs: LogArgs,
}

/// Logs go to stderr.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    /// What is logged on stderr: error, warn, info, debug, trace, or directives as
    /// "cuzk_groth16=debug"
    #[arg(
        long,
        value_name = "FILTER",
        env = "CUZK_LOG",
        global = true,
        default_value = "warn"
    )]
    pub(crate) log: String,
    /// Log more: -v for info, -vv for debug
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Prove from a key, a witness and, where the key needs it, the constraint system
    Prove(Box<ProveArgs>),
    /// Join a key and its circuit into one file that loads at disk speed and proves faster
    Prepare(Box<PrepareArgs>),
    /// Verify a proof
    Verify(VerifyArgs),
    /// Say what a file is and what it holds
    Inspect(InspectArgs),
    /// List the devices that can prove
    Devices(DevicesArgs),
    /// Make a satisfiable circuit of any size with a witness and a key, for tests and benchmarks
    Synth(Box<SynthArgs>),
    /// Say where the time of a recorded run went, and draw it
    Timeline(TimelineArgs),
}

impl Command {
    /// Whether the result is to be JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Prove(args) => args.json,
            Self::Prepare(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Devices(args) => args.json,
            Self::Synth(args) => args.json,
            Self::Timeline(args) => args.json,
        }
    }
}

/// How input files are read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reading")]
pub(crate) struct LoadArgs {
    /// Check that every point of a key lies in the subgroup of order r; takes about 40 us a point
    /// and core. The curve equation is checked always
    #[arg(long, env = "CUZK_CHECK_SUBGROUP", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) check_subgroup: bool,
    /// Refuse what is otherwise accepted with a warning: trailing bytes, unknown sections, public
    /// values that no proof depends on
    #[arg(long, env = "CUZK_STRICT", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) strict: bool,
}

/// What may be used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Resources")]
pub(crate) struct ResourceArgs {
    /// Where to compute: auto, cpu, cuda, cuda: and a number, UUID or PCI address of `cuzk devices`, or
    /// cuda:all, on which many proofs are spread. auto takes a GPU if one works and is worth its start
    /// (for proofs from 2^14 rows on), and says what it took; cuda never falls back
    #[arg(long, env = "CUZK_DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Use no more GPU memory than this, as 16GiB [default: what the card has]
    #[arg(long, value_name = "SIZE", env = "CUZK_VRAM_LIMIT", value_parser = sizes::parse)]
    pub(crate) vram_limit: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", env = "CUZK_THREADS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Refuse, before anything large is loaded or made, what needs more host memory than this, as 24GiB
    /// [default: what the machine, the control group and ulimit leave]
    #[arg(long, value_name = "SIZE", env = "CUZK_HOST_LIMIT", value_parser = sizes::parse)]
    pub(crate) host_limit: Option<u64>,
}

/// Which key and circuit to prove with.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct InputArgs {
    /// Proving key of circom and snarkjs
    #[arg(long, value_name = "FILE", env = "CUZK_ZKEY")]
    pub(crate) zkey: Option<PathBuf>,
    /// Parameters of bellman, bellperson, Filecoin or Zcash; they need --r1cs
    #[arg(long, value_name = "FILE", env = "CUZK_PARAMS")]
    pub(crate) params: Option<PathBuf>,
    /// Proving key of arkworks, compressed or not; it needs --r1cs
    #[arg(long, value_name = "FILE", env = "CUZK_PK")]
    pub(crate) pk: Option<PathBuf>,
    /// Prepared key, as `cuzk prepare` writes it; it needs no --r1cs
    #[arg(long, value_name = "FILE", env = "CUZK_PREPARED")]
    pub(crate) prepared: Option<PathBuf>,
    /// Witness (.wtns)
    #[arg(long, value_name = "FILE", env = "CUZK_WTNS")]
    pub(crate) wtns: Option<PathBuf>,
    /// Constraint system (.r1cs). With it a witness that violates a constraint is refused, and the first
    /// such constraint is named
    #[arg(long, value_name = "FILE", env = "CUZK_R1CS")]
    pub(crate) r1cs: Option<PathBuf>,
    /// Make a circuit of 2^LOG_N rows with key and witness in memory, and prove that
    #[arg(long, value_name = "LOG_N", env = "CUZK_SYNTHETIC", value_parser = clap::value_parser!(u32).range(1..=28))]
    pub(crate) synthetic: Option<u32>,
    /// What the synthetic circuit looks like [default: porep]
    #[arg(long, value_enum, env = "CUZK_SHAPE")]
    pub(crate) shape: Option<Shape>,
    /// Whose conventions the synthetic key follows [default: circom]
    #[arg(long, value_enum, env = "CUZK_FAMILY")]
    pub(crate) family: Option<Family>,
    /// Give the synthetic key the bases of the quotient of four transforms
    #[arg(long, env = "CUZK_FOUR_TRANSFORMS", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) four_transforms: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    pub(crate) inputs: InputArgs,

    /// Where the proof goes; without it the result on stdout has it
    #[arg(
        long,
        value_name = "FILE",
        env = "CUZK_PROOF",
        help_heading = "Outputs"
    )]
    pub(crate) proof: Option<PathBuf>,
    /// Where the public values go, as JSON; without it the result on stdout has them
    #[arg(
        long,
        value_name = "FILE",
        env = "CUZK_PUBLIC",
        help_heading = "Outputs"
    )]
    pub(crate) public: Option<PathBuf>,
    /// How the proof is written. auto: JSON into a file that ends in .json, bytes into one that
    /// ends in .bin, else as the key's own tools do
    #[arg(
        long,
        value_enum,
        env = "CUZK_PROOF_FORMAT",
        default_value = "auto",
        help_heading = "Outputs"
    )]
    pub(crate) proof_format: ProofFormat,
    /// Print the result as one JSON object; of many proofs one a line as they come, and a last one
    #[arg(long, env = "CUZK_JSON", help_heading = "Outputs", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) many: ManyArgs,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Accept a .wtns whose section length is wrong while all values are there: a defect of the
    /// JavaScript witness generator for witnesses of 4 GiB and more
    #[arg(long, env = "CUZK_ACCEPT_WTNS_LENGTH_DEFECT", help_heading = "Reading", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) accept_wtns_length_defect: bool,
    /// Refuse the key unless its file has this BLAKE3 hash, in hexadecimal (`cuzk inspect --hash`
    /// prints it)
    #[arg(long, value_name = "HASH", env = "CUZK_KEY_BLAKE3", help_heading = "Reading", value_parser = parse_hash)]
    pub(crate) key_blake3: Option<blake3::Hash>,

    #[command(flatten)]
    pub(crate) resources: ResourceArgs,
    /// Hand out the proof without verifying it; the result says so
    #[arg(long, env = "CUZK_NO_VERIFY", help_heading = "Resources", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) no_verify: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyArgs {
    /// Verifying key: verification_key.json, or one of bellman or arkworks; a proving key will do,
    /// too
    #[arg(long, value_name = "FILE", env = "CUZK_VK", help_heading = "Inputs")]
    pub(crate) vk: Option<PathBuf>,
    /// Take the verifying key from this .zkey
    #[arg(long, value_name = "FILE", env = "CUZK_ZKEY", help_heading = "Inputs")]
    pub(crate) zkey: Option<PathBuf>,
    /// Take the verifying key from these bellman parameters
    #[arg(
        long,
        value_name = "FILE",
        env = "CUZK_PARAMS",
        help_heading = "Inputs"
    )]
    pub(crate) params: Option<PathBuf>,
    /// Take the verifying key from this arkworks proving key
    #[arg(long, value_name = "FILE", env = "CUZK_PK", help_heading = "Inputs")]
    pub(crate) pk: Option<PathBuf>,
    /// Proof: proof.json, or 192 or 384 bytes
    #[arg(long, value_name = "FILE", env = "CUZK_PROOF", help_heading = "Inputs")]
    pub(crate) proof: PathBuf,
    /// Public values: public.json
    #[arg(
        long,
        value_name = "FILE",
        env = "CUZK_PUBLIC",
        help_heading = "Inputs"
    )]
    pub(crate) public: PathBuf,
    /// Refuse what is otherwise accepted with a warning, as public values that no proof depends on
    #[arg(long, env = "CUZK_STRICT", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) strict: bool,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InspectArgs {
    /// The file, of any kind that cuzk reads
    pub(crate) file: PathBuf,
    /// Read all of it: walk the constraints of a .r1cs in constant memory, load and check a whole
    /// key or witness. Without this flag headers and counts are read, at once for a file of any size
    #[arg(long, env = "CUZK_SCAN", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) scan: bool,
    /// Print the file's BLAKE3 hash, for --key-blake3
    #[arg(long, env = "CUZK_HASH", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) hash: bool,
    /// Refuse what is otherwise accepted with a note
    #[arg(long, env = "CUZK_STRICT", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) strict: bool,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DevicesArgs {
    /// Run small kernels with known answers on every GPU; exit 5 if one fails, or there is none
    #[arg(long, env = "CUZK_SELF_TEST", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) self_test: bool,
    /// Print the result as one JSON object
    #[arg(long, env = "CUZK_JSON", value_parser = BoolishValueParser::new(), action = ArgAction::SetTrue)]
    pub(crate) json: bool,
}

/// What a synthetic circuit looks like.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// As a Filecoin PoRep partition: nearly all values are bits
    Porep,
    /// Every value full-size and in both A and B
    Dense,
}

/// Whose conventions a synthetic key follows.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// snarkjs
    Circom,
    /// arkworks
    Arkworks,
    /// bellman
    Bellman,
}

/// How a proof is written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProofFormat {
    /// By the file's name and the key's kind
    Auto,
    /// proof.json
    Snarkjs,
    /// 192 bytes, points compressed
    Bellman,
    /// The same 192 bytes: ark-serialize, compressed
    Arkworks,
}

fn parse_hash(text: &str) -> Result<blake3::Hash, String> {
    blake3::Hash::from_hex(text).map_err(|_| "a BLAKE3 hash has 64 hexadecimal digits".into())
}

/// A usage error found after parsing.
pub(crate) fn usage(text: impl Into<String>) -> exit::Failure {
    exit::Failure::Usage(text.into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_long_flag_has_its_variable() {
        let command = Cli::command();
        for command in command.get_subcommands() {
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let expected = format!("CUZK_{}", long.to_ascii_uppercase().replace('-', "_"));
                let found = arg.get_env().and_then(|name| name.to_str());
                assert_eq!(found, Some(expected.as_str()), "{}", command.get_name());
            }
        }
    }
}

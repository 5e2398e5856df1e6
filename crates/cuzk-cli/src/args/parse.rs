//! From the command line and the environment to arguments: a flag wins over any variable.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use super::{Cli, Command, InputArgs, Invocation, PrepareArgs, VerifyArgs};
use crate::environment;
use crate::exit::{Exit, Failure};

/// Parses the command line. What clap has to say (help, version, errors) it says here.
pub(crate) fn parse() -> Result<Invocation, Exit> {
    parse_from(std::env::args_os()).map_err(|error| {
        let exit = if error.use_stderr() {
            Exit::Usage
        } else {
            Exit::Success
        };
        let printed = error.print();
        environment::explain(&error);
        if exit == Exit::Usage && wants_json() {
            let text = error.render().to_string();
            return Failure::Usage(text).print_json(exit);
        }
        crate::after_printing(printed, exit)
    })
}

/// Whether the result was to be JSON, as far as that can be told of what does not parse.
fn wants_json() -> bool {
    let is_set = std::env::var("CUZK_JSON").is_ok_and(|value| {
        let value = value.to_ascii_lowercase();
        ["1", "true", "yes", "y", "on", "t"].contains(&value.as_str())
    });
    is_set || std::env::args_os().any(|arg| arg == "--json")
}

fn parse_from(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, clap::Error> {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(args)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    let mut command = cli.command;
    if let Some((_, matches)) = matches.subcommand() {
        let from_environment =
            |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        match &mut command {
            Command::Prove(args) => {
                args.inputs.let_flags_win(matches, from_environment);
                // One witness named by a flag is not one of many named in the environment.
                if any_flag(matches, &["wtns", "synthetic"]) {
                    drop_if(&mut args.many.witnesses, from_environment("witnesses"));
                }
                if any_flag(matches, &["wtns"]) {
                    drop_if(&mut args.many.partitions, from_environment("partitions"));
                }
                if any_flag(matches, &["witnesses"]) {
                    drop_if(&mut args.inputs.wtns, from_environment("wtns"));
                }
                if args.many.is_batch() {
                    drop_if(&mut args.proof, from_environment("proof"));
                    drop_if(&mut args.public, from_environment("public"));
                } else {
                    drop_if(&mut args.many.out_dir, from_environment("out_dir"));
                }
            }
            Command::Prepare(args) => args.let_flags_win(matches, from_environment),
            Command::Verify(args) => args.let_flags_win(matches, from_environment),
            Command::Inspect(_)
            | Command::Devices(_)
            | Command::Synth(_)
            | Command::Timeline(_) => {}
        }
    }
    Ok(Invocation {
        command,
        logs: cli.logs,
    })
}

/// The arguments of `prove`, as they stand behind the command's name.
#[cfg(test)]
pub(crate) fn prove_args(args: &[&str]) -> super::ProveArgs {
    let args = ["cuzk", "prove"].iter().chain(args).map(OsString::from);
    match parse_from(args).unwrap().command {
        Command::Prove(args) => *args,
        other => panic!("{other:?}"),
    }
}

/// Whether any of `ids` stands on the command line itself.
fn any_flag(matches: &ArgMatches, ids: &[&str]) -> bool {
    ids.iter()
        .any(|id| matches.value_source(id) == Some(ValueSource::CommandLine))
}

impl InputArgs {
    /// A key named by a flag wins over keys of other kinds named in the environment.
    fn let_flags_win(&mut self, matches: &ArgMatches, from_environment: impl Fn(&str) -> bool) {
        if any_flag(matches, &["zkey", "params", "pk", "prepared", "synthetic"]) {
            drop_if(&mut self.zkey, from_environment("zkey"));
            drop_if(&mut self.params, from_environment("params"));
            drop_if(&mut self.pk, from_environment("pk"));
            drop_if(&mut self.prepared, from_environment("prepared"));
            drop_if(&mut self.synthetic, from_environment("synthetic"));
        }
        if self.synthetic.is_some() {
            drop_if(&mut self.wtns, from_environment("wtns"));
            drop_if(&mut self.r1cs, from_environment("r1cs"));
        } else {
            drop_if(&mut self.shape, from_environment("shape"));
            drop_if(&mut self.family, from_environment("family"));
            // For `prepare` it says something of any key.
            self.four_transforms &= !from_environment("four_transforms");
        }
    }
}

impl PrepareArgs {
    fn let_flags_win(&mut self, matches: &ArgMatches, from_environment: impl Fn(&str) -> bool) {
        if any_flag(matches, &["zkey", "params", "pk", "synthetic"]) {
            drop_if(&mut self.zkey, from_environment("zkey"));
            drop_if(&mut self.params, from_environment("params"));
            drop_if(&mut self.pk, from_environment("pk"));
            drop_if(&mut self.synthetic, from_environment("synthetic"));
        }
        if self.synthetic.is_some() {
            drop_if(&mut self.r1cs, from_environment("r1cs"));
        } else {
            drop_if(&mut self.shape, from_environment("shape"));
            drop_if(&mut self.family, from_environment("family"));
        }
    }
}

impl VerifyArgs {
    fn let_flags_win(&mut self, matches: &ArgMatches, from_environment: impl Fn(&str) -> bool) {
        if any_flag(matches, &["vk", "zkey", "params", "pk"]) {
            drop_if(&mut self.vk, from_environment("vk"));
            drop_if(&mut self.zkey, from_environment("zkey"));
            drop_if(&mut self.params, from_environment("params"));
            drop_if(&mut self.pk, from_environment("pk"));
        }
    }
}

fn drop_if<T>(value: &mut Option<T>, drop: bool) {
    if drop {
        *value = None;
    }
}

/// The names of all environment variables that stand in for a flag.
pub(crate) fn variables() -> Vec<String> {
    let command = Cli::command();
    let all = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .chain(command.get_arguments());
    let mut names: Vec<String> = all
        .filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The environment variable of a flag as clap writes it in errors: `--threads <N>`.
pub(crate) fn variable_of(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?.split([' ', '=']).next()?;
    let variable = format!("CUZK_{}", name.to_ascii_uppercase().replace('-', "_"));
    variables().contains(&variable).then_some(variable)
}

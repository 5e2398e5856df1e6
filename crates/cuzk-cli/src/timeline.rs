//! `cuzk timeline`: what a recorded run says, as text, trace and picture.

use cuzk_formats::{FileSource, ReadAt as _};
use cuzk_sched::timeline::{Report, Run, chrome, svg};
use serde_json::json;

use crate::args::TimelineArgs;
use crate::exit::Failure;
use crate::output::{self, Output, Target};
use crate::report::Outcome;

/// Far above any run: a record takes some 150 bytes.
const BYTES_MAX: u64 = 2 << 30;

/// Runs the command.
pub(crate) fn run(args: &TimelineArgs) -> Result<Outcome, Failure> {
    let target = |flag, path| Target { flag, path };
    let trace = args.trace.as_deref().map(|path| target("--trace", path));
    let picture = args.svg.as_deref().map(|path| target("--svg", path));
    let targets: Vec<Target<'_>> = trace.into_iter().chain(picture).collect();
    output::check(&targets, &[&args.file])?;

    let run = read(args)?;
    let report = Report::of(&run);
    let picture_text = picture.map(|target| (target, svg::waterfall(&run)));
    let mut outputs = Vec::new();
    if let Some((target, text)) = &picture_text {
        outputs.push(Output::of(*target, text.as_bytes()));
    }
    if let Some(target) = trace {
        let fail = |error| Failure::Output {
            path: target.path.to_owned(),
            error,
        };
        let run = &run;
        outputs.push(Output {
            target,
            write: Box::new(move |out| chrome::write(run, out).map_err(fail)),
        });
    }
    output::write_all(outputs)?;

    let devices = report.devices.iter().map(|device| {
        json!({
            "device": device.device,
            "name": device.name,
            "has_kernels": device.has_kernels,
            "busy_ms": device.busy_ms,
            "steady_ms": device.steady_ms,
            "total_ms": device.total_ms,
            "share": device.share(),
            "kernel_sum_ms": device.kernel_sum_ms,
            "hidden_upload_share": device.hidden_upload_share,
            "stalls": device.stalls.iter().map(|stall| json!({
                "cause": stall.cause.to_string(),
                "ms": stall.ms,
                "count": stall.count,
                "longest_ms": stall.longest_ms,
            })).collect::<Vec<_>>(),
        })
    });
    let json = json!({
        "command": "timeline",
        "version": env!("CARGO_PKG_VERSION"),
        "devices": devices.collect::<Vec<_>>(),
        "notes": run.notes,
    });
    let mut text = report.to_string();
    for note in &run.notes {
        text.push_str(&format!("note: {}\n", note.escape_debug()));
    }
    Ok(Outcome::success(json, text))
}

fn read(args: &TimelineArgs) -> Result<Run, Failure> {
    let source = FileSource::open(&args.file)?;
    let bad = |what: String| Failure::BadInput {
        file: source.name().to_owned(),
        what,
    };
    if source.len() > BYTES_MAX {
        return Err(bad(format!(
            "a timeline has at most {BYTES_MAX} bytes, this file {}",
            source.len()
        )));
    }
    let mut text = Vec::new();
    text.try_reserve_exact(source.len() as usize)
        .map_err(|_| Failure::OutOfMemory(format!("no memory for {}", source.name())))?;
    text.resize(source.len() as usize, 0);
    source.read_exact_at(0, &mut text)?;
    Run::from_json(&text).map_err(|what| {
        bad(format!(
            "it is no timeline as `cuzk prove --timeline` writes it: {what}"
        ))
    })
}

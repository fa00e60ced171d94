//! `switchboard conformance` (`check`): whether an agent keeps to the specification, with reasons.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use switchboard_check::{Check, Counts, Finding, Group, Options, Outcome, Report};

use crate::cli::CallFlags;
use crate::commands::calling::{Call, Failure, agent_and_words, clean, run as run_async};
use crate::config::time_span::TimeSpan;
use crate::printer::Printer;

/// What to check, and where the report goes.
#[derive(Debug, Clone, clap::Args)]
pub struct Wishes {
    /// What to say to the agent; a text that keeps it busy for a few seconds shows more
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    text: String,

    /// Check one group only: card, operations, errors, list, streaming, version, push or security; can be repeated
    #[arg(long, value_name = "GROUP", value_parser = group)]
    only: Vec<Group>,

    /// Time for each answer, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::time)]
    patience: TimeSpan,

    /// Fail also where advice of the specification is not followed
    #[arg(long)]
    strict: bool,

    /// Write the report to a file as well, in the form that build servers read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

fn group(text: &str) -> Result<Group, String> {
    let names = || Group::ALL.map(Group::as_str).join(", ");
    Group::from_name(text).ok_or_else(|| format!("write one of {}", names()))
}

/// Checks an agent.
#[must_use]
pub fn run(words: Vec<String>, wishes: &Wishes, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, []) = agent_and_words(words, flags, [])?;
        let call = Call::open(&agent, flags).await?;
        let options =
            Options { text: wishes.text.clone(), patience: wishes.patience.duration(), only: wishes.only.clone() };
        let progress = Progress { is_shown: std::io::stderr().is_terminal() && !printer.is_json(), printer };
        let work = switchboard_check::check(call.egress.clone(), call.client.peer(), &options, |check| {
            progress.begins(check);
        });
        let report = call.ask(work).await;
        progress.ends();
        let report = report?;
        if let Some(file) = &wishes.junit {
            let written = std::fs::write(file, report.junit());
            written.map_err(|error| Failure::internal(format!("{} cannot be written: {error}", file.display())))?;
        }
        match printer.is_json() {
            true => printer.json(&report),
            false => print(&report, printer),
        }
        Ok(if report.failed(wishes.strict) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

/// The check that is under way, on one line of a terminal.
struct Progress {
    is_shown: bool,
    printer: Printer,
}

impl Progress {
    fn begins(&self, check: &Check) {
        if self.is_shown {
            self.printer.draw(&format!("\r\u{1b}[K{}: {}", check.group.as_str(), check.id));
        }
    }

    fn ends(&self) {
        if self.is_shown {
            self.printer.draw("\r\u{1b}[K");
        }
    }
}

fn print(report: &Report, printer: Printer) {
    printer.line(format!("agent: {}", clean::line(&report.agent)));
    printer.line(format!("card: {}", clean::line(&report.card_url)));
    for interface in &report.interfaces {
        printer.line(format!("called: {}", clean::line(interface)));
    }
    for group in Group::ALL {
        let mut findings = report.findings.iter().filter(|finding| finding.group == group).peekable();
        if findings.peek().is_none() {
            continue;
        }
        printer.line("");
        printer.line(format!("{}:", group.as_str()));
        for finding in findings {
            print_finding(finding, printer);
        }
    }
    printer.line("");
    printer.line(summary(&report.counts));
}

fn print_finding(finding: &Finding, printer: Printer) {
    let Finding { id, title, rule, severity, sent, seen, fix, .. } = finding;
    match finding.outcome {
        Outcome::Pass => printer.line(format!("  pass  {id}: {title}")),
        Outcome::NotApplicable => printer.line(format!("  n/a   {id}: {}", clean::line(seen))),
        Outcome::Fail => {
            printer.line(format!("  FAIL  {id}: not true that {title}"));
            printer.line(format!("        rule: {rule} ({})", severity.as_str()));
            printer.line(format!("        sent: {}", clean::line(sent)));
            printer.line(format!("        seen: {}", clean::line(seen)));
            printer.line(format!("        fix:  {fix}"));
        }
    }
}

fn summary(counts: &Counts) -> String {
    let Counts { pass, fail_must, fail_should, fail_quality, not_applicable } = counts;
    let failed = fail_must + fail_should + fail_quality;
    let kinds = match failed {
        0 => String::new(),
        _ => format!(" ({fail_must} must, {fail_should} should, {fail_quality} quality)"),
    };
    format!("{pass} passed, {failed} failed{kinds}, {not_applicable} not applicable")
}

//! `switchboard conformance` (`check`): whether an agent keeps to the specification, with reasons.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use switchboard_check::{Check, Counts, Finding, Group, Options, Outcome, Report};
use switchboard_client::{Credentials, Secret};

use crate::cli::CallFlags;
use crate::commands::calling::{Call, Failure, agent_and_words, clean, run as run_async};
use crate::config::time_span::TimeSpan;
use crate::printer::Printer;

/// Where the secrets of the second caller are looked for that no flag names.
const OTHER_BEARER: &str = "A2ACLI_OTHER_BEARER";
const OTHER_API_KEY: &str = "A2ACLI_OTHER_API_KEY";

/// What to check, and where the report goes.
#[derive(Clone, clap::Args)]
pub struct Wishes {
    /// What to say to the agent; a text that keeps it busy for a few seconds shows more
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    text: String,

    /// Check one group only: card, operations, errors, list, streaming, version, extensions, push or security; can be
    /// repeated
    #[arg(long, value_name = "GROUP", value_parser = group)]
    only: Vec<Group>,

    /// Time for each answer, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::time)]
    patience: TimeSpan,

    /// Bearer token of a second caller, who must not get at the tasks of the first. Safer in A2ACLI_OTHER_BEARER
    #[arg(long, value_name = "TOKEN")]
    other_bearer: Option<String>,

    /// The same with an API key, sent in the header of the first one's. Safer in A2ACLI_OTHER_API_KEY
    #[arg(long, value_name = "KEY", conflicts_with = "other_bearer")]
    other_api_key: Option<String>,

    /// Fail also where advice of the specification is not followed
    #[arg(long)]
    strict: bool,

    /// Write the report to a file as well, in the form that build servers read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl std::fmt::Debug for Wishes {
    /// Without the secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Wishes").field("text", &self.text).field("only", &self.only).finish_non_exhaustive()
    }
}

/// Who the second caller is: by a flag, or else by a variable.
fn other(wishes: &Wishes, flags: &CallFlags) -> Credentials {
    let variable = |name: &str| {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        is_set.then(|| Secret::Environment(name.to_owned()))
    };
    let plain = |secret: &Option<String>| secret.clone().map(Secret::Plain);
    let has_flag = wishes.other_bearer.is_some() || wishes.other_api_key.is_some();
    let bearer = plain(&wishes.other_bearer).or_else(|| variable(OTHER_BEARER).filter(|_| !has_flag));
    let api_key = plain(&wishes.other_api_key).or_else(|| variable(OTHER_API_KEY).filter(|_| !has_flag));
    match (bearer, api_key) {
        (Some(bearer), _) => Credentials::Bearer(bearer),
        (None, Some(key)) => Credentials::ApiKey { header: flags.api_key_header.clone(), key },
        (None, None) => Credentials::None,
    }
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
        let options = Options {
            text: wishes.text.clone(),
            patience: wishes.patience.duration(),
            other: other(wishes, flags),
            only: wishes.only.clone(),
            ..Options::default()
        };
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

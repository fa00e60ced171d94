//! `switchboard conformance` (`check`): whether an agent keeps to the specification, with reasons.

use std::path::PathBuf;

use switchboard_check::{Check, CheckOptions, CheckOutcome, CheckReport, Counts, Finding, Group};
use switchboard_client::{CardAttempt, ClientError, Credentials, Peer, Secret};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::printer::{Output, Printer};

use crate::commands::StatusLine;
use crate::commands::calling::failure::FAILED;
use crate::commands::calling::interrupt::{INTERRUPTED, Interrupt};
use crate::commands::calling::{AgentCall, Failure, sanitize};

/// Where the secrets of the second caller are looked for that no flag names.
const OTHER_BEARER: &str = "A2ACLI_OTHER_BEARER";
const OTHER_API_KEY: &str = "A2ACLI_OTHER_API_KEY";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConformanceOptions {
    /// What to say to the agent; a text that keeps it busy for a few seconds shows more
    #[arg(long, value_name = "TEXT", default_value = "hello", allow_hyphen_values = true)]
    text: String,

    /// Check one group only: card, operations, errors, list, streaming, version, extensions, push or security; can be
    /// repeated
    #[arg(long, value_name = "GROUP", value_parser = group)]
    only: Vec<Group>,

    /// Time for each answer, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::time)]
    patience: TimeSpan,

    /// Bearer token of a second caller, who must not get at the tasks of the first. Safer in A2ACLI_OTHER_BEARER
    #[arg(long, value_name = "TOKEN", value_parser = crate::cli::secret)]
    other_bearer: Option<Secret>,

    /// The same with an API key, sent in the header of the first one's. Safer in A2ACLI_OTHER_API_KEY
    #[arg(long, value_name = "KEY", conflicts_with = "other_bearer", value_parser = crate::cli::secret)]
    other_api_key: Option<Secret>,

    /// Fail also where advice of the specification is not followed
    #[arg(long)]
    strict: bool,

    /// Write the report to a file as well, in the form that build servers read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Who the second caller is: by a flag, or else by a variable.
fn other(options: &ConformanceOptions, call: &AgentCall<'_>) -> Credentials {
    let has_flag = options.other_bearer.is_some() || options.other_api_key.is_some();
    let secret = |typed: &Option<Secret>, name: &str| {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        typed.clone().or_else(|| (is_set && !has_flag).then(|| Secret::Environment(name.to_owned())))
    };
    if let Some(bearer) = secret(&options.other_bearer, OTHER_BEARER) {
        return Credentials::Bearer(bearer);
    }
    let key = secret(&options.other_api_key, OTHER_API_KEY);
    let in_header = |key| Credentials::ApiKey { header: call.flags.api_key_header.clone(), key };
    key.map_or(Credentials::None, in_header)
}

fn group(text: &str) -> Result<Group, String> {
    let names = || Group::all().map(Group::as_str).collect::<Vec<_>>().join(", ");
    Group::from_name(text).ok_or_else(|| format!("write one of {}", names()))
}

pub(crate) async fn run(call: AgentCall<'_>, []: [String; 0], options: ConformanceOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let check_options = CheckOptions {
        text: options.text.clone(),
        patience: options.patience.duration(),
        other: other(&options, &call),
        only: options.only.clone(),
        ..CheckOptions::default()
    };
    let mut progress = StatusLine::new(printer);
    let peer = peer(&call);
    let mut interrupt = Interrupt::new();
    let mut stopped = None;
    let stop = async {
        stopped = Some(tokio::select! {
            error = call.time_is_up() => Stopped::TimeIsUp(error),
            () = interrupt.pressed() => Stopped::Interrupted,
        });
    };
    let work = switchboard_check::check(call.egress.clone(), &peer, &check_options, stop, |check| {
        progress.draw(&format!("{}: {}", check.group.as_str(), check.id));
    });
    let report = work.await;
    drop(progress);
    let report = match report {
        Ok(report) => report,
        Err(error) => return Err(failed(&error, &call).await),
    };
    let mut beside = printer;
    if report.complete || !report.findings.is_empty() {
        match printer.is_json() {
            true => printer.json(&report),
            false => print(&report, printer),
        }
        // The report is on standard output, so later failures are text on standard error.
        beside = Printer::new(Output::Text);
    }
    if let Some(file) = &options.junit
        && let Err(error) = std::fs::write(file, report.junit())
    {
        let failure = Failure::internal(format!("{} cannot be written: {error}", file.display()));
        return Err(failure.printed(beside));
    }
    match stopped {
        Some(Stopped::TimeIsUp(error)) => Err(call.failed(&error).await.with_hint(MORE_TIME).printed(beside)),
        Some(Stopped::Interrupted) => {
            beside.note("stopped; the tasks of the check were canceled");
            Err(Failure::silent(INTERRUPTED))
        }
        None if report.failed(options.strict) => Err(Failure::silent(FAILED)),
        None => Ok(()),
    }
}

/// Why checking ended before all was checked.
enum Stopped {
    TimeIsUp(ClientError),
    Interrupted,
}

const MORE_TIME: &str =
    "the tasks of the check were canceled; give it more time with --timeout, or check less with --only";

/// The agent with the credentials that its card wants, or that are kept for it.
fn peer(call: &AgentCall<'_>) -> Peer {
    let peer = call.client.peer().clone();
    match &call.context.credentials {
        Some(credentials) => Peer { credentials: credentials.clone(), ..peer },
        None => peer,
    }
}

/// Without a readable card there is no agent to check, whatever else answers at its address.
async fn failed(error: &ClientError, call: &AgentCall<'_>) -> Failure {
    let is_refused = |place: &CardAttempt| matches!(place.status, Some(401 | 403));
    match error {
        ClientError::NoCard(places) if !places.iter().any(is_refused) => {
            Failure::no_agent(error.to_string(), "check the address: its card must be at /.well-known/agent-card.json")
        }
        _ => call.failed(error).await,
    }
}

fn print(report: &CheckReport, printer: Printer) {
    printer.line(format!("agent: {}", sanitize::line(&report.agent)));
    printer.line(format!("card: {}", sanitize::line(&report.card_url)));
    for interface in &report.interfaces {
        printer.line(format!("called: {}", sanitize::line(interface)));
    }
    for group in Group::all() {
        let mut findings = report.findings.iter().filter(|finding| finding.check.group == group).peekable();
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
    let unfinished = if report.complete { "" } else { "; not everything was checked" };
    printer.line(format!("{}{unfinished}", summary(&report.counts)));
}

fn print_finding(finding: &Finding, printer: Printer) {
    let Finding { check: Check { id, title, rule, severity, .. }, sent, seen, fix, .. } = finding;
    match finding.outcome {
        CheckOutcome::Pass => printer.line(format!("  pass  {id}: {title}")),
        CheckOutcome::NotApplicable => printer.line(format!("  n/a   {id}: {}", sanitize::line(seen))),
        CheckOutcome::Fail => {
            printer.line(format!("  FAIL  {id}: not true that {title}"));
            printer.line(format!("        rule: {rule} ({})", severity.as_str()));
            printer.line(format!("        sent: {}", sanitize::line(sent)));
            printer.line(format!("        seen: {}", sanitize::line(seen)));
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

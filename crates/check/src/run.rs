//! Runs the checks one after the other, so that the agent never has more load than one careful caller causes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use switchboard_client::{ClientError, Credentials, Peer};
use switchboard_egress::Egress;
use tokio::time::timeout;

use crate::agent::TestedAgent;
use crate::checks::{Check, Group, Run, checks};
use crate::interface::TestedInterface;
use crate::report::{CheckReport, Finding};
use crate::verdict::{CheckResult, NotPassed, skip};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The text of the messages.
    pub text: String,
    /// The timeout of a request.
    pub patience: Duration,
    /// How long a stream may be silent; proxies give up on one after half a minute or more.
    pub silence: Duration,
    /// The credentials of a second caller, who must not get at the tasks of the first.
    pub other: Credentials,
    /// The groups to check; empty for all.
    pub only: Vec<Group>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            text: "hello".to_owned(),
            patience: Duration::from_secs(10),
            silence: Duration::from_secs(20),
            other: Credentials::None,
            only: Vec::new(),
        }
    }
}

/// What a check may take beside its requests: watching a task, waiting for streams to close.
const WATCH_TIME: Duration = Duration::from_secs(5);
/// How long canceling the tasks that are left may take, after a whole run and after one that was stopped.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);
const CLEANUP_TIMEOUT_STOPPED: Duration = Duration::from_secs(5);

/// Checks an agent. `on_start` is called before each check. When `stop` completes, the report holds the findings so
/// far; tasks that were started are canceled either way.
///
/// # Errors
/// When the agent has no readable card, or no interface on it can be called.
pub async fn check(
    egress: Egress,
    peer: &Peer,
    options: &CheckOptions,
    stop: impl Future<Output = ()>,
    mut on_start: impl FnMut(&'static Check),
) -> Result<CheckReport, ClientError> {
    let mut stop = pin!(stop);
    let (agent, declared) = tokio::select! {
        found = TestedAgent::find(egress, peer, options) => found?,
        () = &mut stop => return Ok(CheckReport::new(String::new(), String::new(), Vec::new(), Vec::new()).stopped()),
    };
    let agent = Arc::new(agent);
    let interfaces: Vec<TestedInterface> =
        declared.into_iter().map(|endpoint| TestedInterface::new(Arc::clone(&agent), endpoint)).collect();
    let mut findings = Vec::new();
    let mut is_stopped = false;
    let work = async {
        // Without credentials that are accepted only these groups can be checked.
        let needs_no_access = |group: &Group| matches!(group, Group::Card | Group::Security);
        if options.only.is_empty() || !options.only.iter().all(needs_no_access) {
            check_access(&interfaces).await?;
        }
        for check in checks().filter(|check| options.only.is_empty() || options.only.contains(&check.group)) {
            on_start(check);
            findings.push(Finding::new(check, run_check(check, &agent, &interfaces).await, &agent));
        }
        Ok::<(), ClientError>(())
    };
    tokio::select! {
        done = work => done?,
        () = &mut stop => is_stopped = true,
    }
    let time = if is_stopped { CLEANUP_TIMEOUT_STOPPED } else { CLEANUP_TIMEOUT };
    let _ = timeout(time, cancel_leftovers(&interfaces)).await;
    let called = interfaces.iter().map(|interface| agent.sanitize_line(&interface.describe()));
    let (name, url) = (agent.sanitize(&agent.name), agent.sanitize(&agent.card_url));
    let report = CheckReport::new(name, url, called.collect(), findings);
    Ok(if is_stopped { report.stopped() } else { report })
}

/// Cancels all tasks of ours that may be running.
async fn cancel_leftovers(interfaces: &[TestedInterface]) {
    for interface in interfaces {
        interface.cancel_leftovers().await;
    }
    // Version 0.3 has no list in which the task of an unanswered message could be found.
    let Some(lister) = interfaces.iter().find(|interface| interface.is_v1()) else { return };
    for message in interfaces.iter().filter(|interface| !interface.is_v1()).flat_map(TestedInterface::unresolved) {
        let task = lister.task_of(&message).await;
        if let Some(id) = task.ok().and_then(|task| task["id"].as_str().map(str::to_owned)) {
            lister.cancel(&id).await;
        }
    }
}

/// Fails early if our credentials are not accepted.
async fn check_access(interfaces: &[TestedInterface]) -> Result<(), ClientError> {
    for interface in interfaces {
        let Ok(test_request) = interface.harmless_request() else { continue };
        let reply = interface.ask(&test_request).await;
        if matches!(reply.status, 401 | 403) {
            let origin = url::Url::parse(&interface.endpoint.url).map(|url| url.origin().ascii_serialization());
            return Err(ClientError::Credentials {
                origin: origin.unwrap_or_default(),
                status: reply.status,
                problem: "no check can be made without credentials that are accepted".to_owned(),
            });
        }
    }
    Ok(())
}

/// The first interface that fails decides; otherwise one that passes.
async fn run_check(check: &Check, agent: &TestedAgent, interfaces: &[TestedInterface]) -> CheckResult {
    // The tasks a check needs may take as long as one request, and the check itself a few more.
    let limit = agent.patience * 4 + WATCH_TIME;
    let late = || skip(format!("it could not be told within {} s", limit.as_secs()));
    let run = match check.run {
        Run::Agent(run) => return timeout(limit, run(agent)).await.unwrap_or_else(|_| late()),
        Run::Interface(run) => run,
    };
    let mut result = None;
    for interface in interfaces {
        let next = timeout(limit, run(interface)).await.unwrap_or_else(|_| late());
        match unless_purged(interface, next).await {
            Err(problem) if problem.is_failure => {
                let seen = format!("{}: {}", interface.name(), problem.seen);
                return Err(NotPassed { seen, ..problem });
            }
            Ok(()) => result = Some(Ok(())),
            skipped => drop(result.get_or_insert(skipped)),
        }
    }
    result.unwrap_or_else(|| skip("the agent has no interface that can be called"))
}

/// Agents may purge ended tasks, and answer nothing about them after that.
async fn unless_purged(interface: &TestedInterface, result: CheckResult) -> CheckResult {
    match &result {
        Err(NotPassed { is_failure: true, task: Some(task), .. }) if interface.has_purged(task).await => {
            skip("the agent does not keep tasks that have ended")
        }
        _ => result,
    }
}

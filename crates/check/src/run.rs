//! Makes the checks, one after the other, so that an agent never has more to do than one careful caller would give it.

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
use crate::report::{Finding, Outcome, Report};
use crate::verdict::Verdict;

/// How to check.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to say to the agent.
    pub text: String,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long a stream may be silent; proxies give up on one after half a minute or more.
    pub silence: Duration,
    /// A second caller, who must not get at the tasks of the first.
    pub other: Credentials,
    /// The groups to check; empty for all.
    pub only: Vec<Group>,
}

impl Default for Options {
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

/// What every check may take beside its answers: looking whether something changes, waiting for streams to close.
const LOOKING: Duration = Duration::from_secs(5);
/// How long the tasks that are left may take to be canceled, by somebody who waits and by somebody who does not.
const TIDYING: Duration = Duration::from_secs(30);
const TIDYING_QUICKLY: Duration = Duration::from_secs(5);

/// Checks an agent. `on_start` is told of each check before it is made. When `stop` comes, what is known by then is the
/// report; what was begun is ended either way.
///
/// # Errors
/// When the agent has no card that can be read, or nothing on it that is spoken here.
pub async fn check(
    egress: Egress,
    peer: &Peer,
    options: &Options,
    stop: impl Future<Output = ()>,
    mut on_start: impl FnMut(&'static Check),
) -> Result<Report, ClientError> {
    let mut stop = pin!(stop);
    let (agent, places) = tokio::select! {
        found = TestedAgent::find(egress, peer, options) => found?,
        () = &mut stop => return Ok(Report::new(String::new(), String::new(), Vec::new(), Vec::new()).stopped()),
    };
    let agent = Arc::new(agent);
    let interfaces: Vec<TestedInterface> =
        places.into_iter().map(|place| TestedInterface::new(Arc::clone(&agent), place)).collect();
    let mut findings = Vec::new();
    let mut is_stopped = false;
    let work = async {
        // Whoever is refused at the door learns nothing about the house.
        let is_outside = |group: &Group| matches!(group, Group::Card | Group::Security);
        if options.only.is_empty() || !options.only.iter().all(is_outside) {
            check_access(&interfaces).await?;
        }
        for check in checks().filter(|check| options.only.is_empty() || options.only.contains(&check.group)) {
            on_start(check);
            findings.push(Finding::new(check, &made(check, &agent, &interfaces).await, &agent));
        }
        Ok::<(), ClientError>(())
    };
    tokio::select! {
        done = work => done?,
        () = &mut stop => is_stopped = true,
    }
    // Whoever has stopped it wants to be gone soon.
    let time = if is_stopped { TIDYING_QUICKLY } else { TIDYING };
    let _ = timeout(time, cancel_leftovers(&interfaces)).await;
    let called = interfaces.iter().map(|interface| agent.sanitize_line(&interface.place()));
    let (name, url) = (agent.sanitize(&agent.name), agent.sanitize(&agent.card_url));
    let report = Report::new(name, url, called.collect(), findings);
    Ok(if is_stopped { report.stopped() } else { report })
}

/// Leaves nothing of ours at work.
async fn cancel_leftovers(interfaces: &[TestedInterface]) {
    for interface in interfaces {
        interface.cancel_leftovers().await;
    }
    // Version 0.3 has no lists, and what was never answered has no other name than its message.
    let Some(lister) = interfaces.iter().find(|interface| interface.is_v1()) else { return };
    for message in interfaces.iter().filter(|interface| !interface.is_v1()).flat_map(TestedInterface::unresolved) {
        let task = lister.task_of(&message).await;
        if let Some(id) = task.ok().and_then(|task| task["id"].as_str().map(str::to_owned)) {
            lister.cancel(&id).await;
        }
    }
}

/// Whether we are known well enough to be answered.
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

/// Of several interfaces, the first that fails is told of.
async fn made(check: &Check, agent: &TestedAgent, interfaces: &[TestedInterface]) -> Verdict {
    // What a check needs may take as long as one answer, and the check itself a few more.
    let limit = agent.patience * 4 + LOOKING;
    let late = || Verdict::not_applicable(format!("it could not be told within {} s", limit.as_secs()));
    let run = match check.run {
        Run::Agent(run) => return timeout(limit, run(agent)).await.unwrap_or_else(|_| late()),
        Run::Interface(run) => run,
    };
    let mut verdict: Option<Verdict> = None;
    for interface in interfaces {
        let next = timeout(limit, run(interface)).await.unwrap_or_else(|_| late());
        let mut next = unless_purged(interface, next).await;
        if next.is_failure() {
            next.seen = format!("{}: {}", interface.name(), next.seen);
            return next;
        }
        if verdict
            .as_ref()
            .is_none_or(|verdict| verdict.outcome == Outcome::NotApplicable && next.outcome == Outcome::Pass)
        {
            verdict = Some(next);
        }
    }
    verdict.unwrap_or_else(|| Verdict::not_applicable("the agent has no interface that can be called"))
}

/// Agents may throw ended tasks away, and have nothing to say about them after that.
async fn unless_purged(interface: &TestedInterface, verdict: Verdict) -> Verdict {
    match &verdict.task {
        Some(task) if verdict.is_failure() && interface.has_purged(task).await => {
            Verdict::not_applicable("the agent does not keep tasks that have ended")
        }
        _ => verdict,
    }
}

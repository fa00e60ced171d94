//! Asks the server for what it has committed, and holds every webhook to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::HANG_GUARD;
use crate::calls::{self, TaskFacts};
use crate::compare::Problems;
use crate::http::Connection;
use crate::webhooks::expected::{Asked, Pages};
use crate::webhooks::judge::{Entry, Tally, judge};
use crate::webhooks::log::Log;

const PAUSE: Duration = Duration::from_millis(50);

/// How much there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Tasks in the store that came with a webhook.
    pub tasks: usize,
    /// Webhooks of these.
    pub hooks: usize,
    /// What was compared.
    pub tally: Tally,
}

/// Brings every task to its end: those that still work or wait are canceled.
///
/// The server takes up its tasks again meanwhile, which moves them to the front of the list: a listing that goes on may pass
/// over them. So it is done when two listings in a row hold as many tasks, and none that has not ended.
pub fn end_all(address: SocketAddr, pages: &Pages) -> anyhow::Result<Problems> {
    let mut problems = Problems::new();
    let mut connection = Connection::open(address)?;
    let (begun, mut ended) = (Instant::now(), None);
    while begun.elapsed() < HANG_GUARD {
        let all = calls::list(&mut connection, &json!({}))?;
        let count = all.len();
        let live: Vec<TaskFacts> =
            all.into_iter().map(|(facts, _)| facts).filter(|facts| is_live(pages, facts)).collect();
        if live.is_empty() && ended.replace(count) == Some(count) {
            return Ok(problems);
        }
        for facts in &live {
            ended = None;
            match calls::cancel(&mut connection, "/a2a", &facts.id)? {
                // It ended by itself meanwhile.
                Err(refusal) if refusal.code != -32002 => problems.push(format!("task {}: {refusal:?}", facts.id)),
                _ => {}
            }
        }
    }
    problems.push(format!("for {HANG_GUARD:?} there were tasks that do not end"));
    Ok(problems)
}

fn is_live(pages: &Pages, facts: &TaskFacts) -> bool {
    !facts.is_terminal() && asked(pages, facts).is_some()
}

/// Waits until every webhook has been told everything. There is nothing to be told by, so this asks again and again.
pub fn drained(address: SocketAddr) -> anyhow::Result<Problems> {
    let mut connection = Connection::open(address)?;
    // Delivering everything may take long; only where nothing happens any more does it hang.
    let (mut changed, mut before) = (Instant::now(), Vec::new());
    loop {
        let active = webhooks(&mut connection, "?state=active&pageSize=100")?;
        if active.is_empty() {
            break;
        }
        if active != before {
            (changed, before) = (Instant::now(), active);
        }
        if changed.elapsed() > HANG_GUARD {
            return Ok(vec![format!("for {HANG_GUARD:?} nothing was delivered of {}", json!(before))]);
        }
        std::thread::sleep(PAUSE);
    }
    let unfinished = |webhook: &&Value| {
        webhook["state"] != "finished" || webhook["lags"] == true || webhook["dead"].as_u64() != Some(0)
    };
    let all = webhooks(&mut connection, "?pageSize=100")?;
    let mut problems: Problems =
        all.iter().filter(unfinished).map(|webhook| format!("a webhook is not finished: {webhook}")).collect();
    let metrics = connection.send("GET", "/metrics", &[], "")?.text()?;
    if !metrics.lines().any(|line| line == "a2a_webhook_backlog 0") {
        let said: Vec<&str> = metrics.lines().filter(|line| line.starts_with("a2a_webhook_")).collect();
        problems.push(format!("the metrics do not say that the backlog is 0: {said:?}"));
    }
    Ok(problems)
}

/// All pages of `/api/webhooks`.
fn webhooks(connection: &mut Connection, query: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let response = connection.send("GET", &format!("/api/webhooks{query}&after={after}"), &[], "")?;
        let status = response.status;
        let text = response.text()?;
        anyhow::ensure!(status == 200, "/api/webhooks answered {status}: {text}");
        let mut page: Value = serde_json::from_str(&text)?;
        if let Value::Array(webhooks) = page["webhooks"].take() {
            found.extend(webhooks);
        }
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => return Ok(found),
        }
    }
}

/// Compares every webhook that is there, and looks for those that should be or should not.
pub fn compare(
    address: SocketAddr,
    pages: &Pages,
    inbox: &BTreeMap<String, Vec<Entry>>,
) -> anyhow::Result<(Count, Problems)> {
    let mut problems = Problems::new();
    let mut count = Count::default();
    let mut connection = Connection::open(address)?;
    // By path: the log of its task.
    let mut there: BTreeMap<String, Log> = BTreeMap::new();
    let mut seen = Vec::new();
    for (facts, _) in calls::list(&mut connection, &json!({}))? {
        let Some((message, asked)) = asked(pages, &facts) else { continue };
        count.tasks += 1;
        seen.push(message);
        let log = match log(&mut connection, &facts.id, asked)? {
            Ok(log) => log,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for path in hooks_of(&mut connection, &facts.id, &mut problems)? {
            there.insert(path, log.clone());
        }
    }
    for (message, asked) in
        pages.tasks.iter().filter(|(message, asked)| asked.task.is_some() && !seen.contains(message))
    {
        problems.push(format!("task {:?} of message {message} was acknowledged and is gone", asked.task));
    }
    for (path, hook) in &pages.hooks {
        let is_inline = hook.start == crate::webhooks::judge::Start::First;
        let due = hook.acknowledged || is_inline && seen.contains(&&hook.message);
        if due && !there.contains_key(path) {
            problems.push(format!("webhook {path} is gone: {hook:?}"));
        }
    }
    for (path, log) in &there {
        let Some(hook) = pages.hooks.get(path) else {
            problems.push(format!("no client asked for webhook {path}"));
            continue;
        };
        let entries = inbox.get(path).map_or(&[][..], Vec::as_slice);
        let (tally, found) = judge(log, hook.version, &hook.start, entries);
        count.hooks += 1;
        count.tally.add(tally);
        problems.extend(found.into_iter().map(|problem| format!("webhook {path}: {problem}")));
    }
    for path in inbox.keys().filter(|path| !there.contains_key(*path)) {
        problems.push(format!("something was delivered to {path}, which was never committed"));
    }
    Ok((count, problems))
}

/// What is known of a task, if it came with a webhook.
fn asked<'a>(pages: &'a Pages, facts: &TaskFacts) -> Option<(&'a String, &'a Asked)> {
    pages.tasks.get_key_value(facts.messages.first()?)
}

/// All committed events of a task. The first one is the message that made it, in the epoch in which it was sent.
fn log(connection: &mut Connection, task: &str, asked: &Asked) -> anyhow::Result<Result<Log, String>> {
    let mut frames = Vec::new();
    let cursor = format!("{}.1", asked.epoch);
    let refused = calls::subscribe(connection, "/a2a", task, Some(&cursor), |frame| {
        frames.push(frame);
        true
    })?;
    if let Some(refusal) = refused {
        return Ok(Err(format!("the log of task {task} cannot be read: {refusal:?}")));
    }
    let log = Log::read(task, frames);
    let is_whole = log.events.iter().all(|event| event.is_artifact() || event.status().is_object());
    let ends = log.events.last().and_then(|event| event.status()["state"].as_str()).is_some_and(calls::is_terminal);
    if !is_whole || !ends {
        return Ok(Err(format!("the log of task {task} after {cursor} is not whole: {:?}", log.events)));
    }
    Ok(Ok(log))
}

/// The paths of a task's webhooks.
fn hooks_of(connection: &mut Connection, task: &str, problems: &mut Problems) -> anyhow::Result<Vec<String>> {
    let params = json!({ "taskId": task, "pageSize": 100 });
    let page = match calls::rpc(connection, "/a2a", "1.0", "ListTaskPushNotificationConfigs", &params)? {
        Ok(page) => page,
        Err(refusal) => {
            problems.push(format!("the webhooks of task {task} cannot be listed: {refusal:?}"));
            return Ok(Vec::new());
        }
    };
    let configs = page["configs"].as_array().into_iter().flatten();
    let paths = configs.filter_map(|config| {
        let (_, rest) = config["url"].as_str()?.split_once("://")?;
        Some(rest[rest.find('/')?..].to_owned())
    });
    Ok(paths.collect())
}

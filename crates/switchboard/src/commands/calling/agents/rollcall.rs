//! `switchboard agents rollcall`: looks at every agent, and says whether it can be called. Programs of agents are looked for
//! where they would be started: on the machine of the server, so for the server of the workspace only.

use std::collections::BTreeMap;
use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;
use tokio::task::JoinSet;

use super::refresh::refresh;
use super::{all, entry};
use crate::cli::HubFlags;
use crate::commands::calling::failure::FAILED;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize, target};
use crate::commands::doctor::{ProgramState, look_at_programs};

/// Cards that are fetched at a time.
const AT_ONCE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Warn,
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

pub(crate) fn run(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let (agents, problems) = all(&hub).await.map_err(|error| error.failure(&hub))?;
        let mut agents = look_again(&hub, agents).await;
        let probes = hub.call(Method::GET, hub.url(&["api", "agent-health"]), None).await;
        let probes = probes.map_err(|error| error.failure(&hub))?;
        let programs = look_for_programs(&hub, &agents).await;
        agents.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        let mut judged: Vec<(String, Verdict, String)> = Vec::new();
        for agent in &agents {
            let name = figures::text(&agent["name"]);
            let probe = probes.as_array().into_iter().flatten().find(|probe| probe["agentName"] == agent["name"]);
            let (verdict, why) = judge(agent, probe, programs.get(&name), &hub);
            judged.push((name, verdict, why));
        }
        for problem in &problems {
            let text = problem.as_str().map_or_else(|| problem.to_string(), sanitize::line);
            judged.push(("-".to_owned(), Verdict::Warn, text));
        }
        print(&judged, printer);
        match judged.iter().any(|(_, verdict, _)| *verdict == Verdict::Fail) {
            true => Err(Failure::silent(FAILED)),
            false => Ok(()),
        }
    })
}

/// The agents after a look at the cards of those elsewhere. Without the role for it they are as they were.
async fn look_again(hub: &HubClient, agents: Vec<Value>) -> Vec<Value> {
    let mut looked = Vec::with_capacity(agents.len());
    let mut waiting = agents.into_iter();
    let mut looks: JoinSet<Value> = JoinSet::new();
    loop {
        while looks.len() < AT_ONCE
            && let Some(agent) = waiting.next()
        {
            let hub = hub.clone();
            looks.spawn(async move {
                let name = agent["name"].as_str().filter(|_| agent["kind"] == "url");
                match name {
                    Some(name) => refresh(&hub, name).await.unwrap_or(agent),
                    None => agent,
                }
            });
        }
        match looks.join_next().await {
            Some(Ok(agent)) => looked.push(agent),
            Some(Err(_)) => {}
            None => return looked,
        }
    }
}

/// The programs of the agents that start one, by name.
async fn look_for_programs(hub: &HubClient, agents: &[Value]) -> BTreeMap<String, ProgramState> {
    let starts_one = |name: &str| agents.iter().any(|agent| agent["name"] == name && agent["kind"] == "cli");
    if !hub.is_local || agents.iter().all(|agent| agent["kind"] != "cli") {
        return BTreeMap::new();
    }
    // What is wrong with the files is among the problems that the server tells.
    let Ok(fleet) = target::load(&hub.flags.workspace) else { return BTreeMap::new() };
    let configured: Vec<_> = fleet.agents.into_iter().filter(|agent| starts_one(agent.name.as_str())).collect();
    let names: Vec<String> = configured.iter().map(|agent| agent.name.to_string()).collect();
    look_at_programs(configured).await.unwrap_or_else(|error| {
        let state = ProgramState::Doubtful(format!("its program was not looked for: {error}"));
        names.into_iter().map(|name| (name, state.clone())).collect()
    })
}

fn judge(agent: &Value, probe: Option<&Value>, program: Option<&ProgramState>, hub: &HubClient) -> (Verdict, String) {
    let name = figures::text(&agent["name"]);
    if let Some(ProgramState::Unusable(problem)) = program {
        return (Verdict::Fail, problem.clone());
    }
    if let Some(probe) = probe {
        if probe["lastProbedAt"].is_null() {
            return (Verdict::Warn, "not looked at yet".to_owned());
        }
        if probe["reachable"] != true {
            let error = probe["error"].as_str().map(sanitize::line);
            return (Verdict::Fail, error.unwrap_or_else(|| "cannot be reached".to_owned()));
        }
    }
    match agent["breaker"].as_str() {
        Some("open") => {
            return (Verdict::Fail, "the circuit breaker is open after failed calls: no message is sent".to_owned());
        }
        Some("half_open") => {
            return (Verdict::Warn, "the circuit breaker is half open: the next call decides".to_owned());
        }
        _ => {}
    }
    if agent["held"].is_object() {
        let accept = hub.command("agents accept", &name);
        return (Verdict::Warn, format!("its card has changed and is held: {accept}"));
    }
    if agent["shadowed"] == true {
        let problem = "a registration of this name has no effect, because a file has an agent of this name";
        return (Verdict::Warn, problem.to_owned());
    }
    if agent["served"] == false {
        return (Verdict::Pass, "answers; not served here (serve: false)".to_owned());
    }
    if agent["skills"].as_array().is_none_or(Vec::is_empty) {
        return (Verdict::Warn, "has no skills: only its name and conversations lead to it".to_owned());
    }
    if let Some(ProgramState::Doubtful(warning)) = program {
        return (Verdict::Warn, warning.clone());
    }
    let answered = probe.map(|probe| format!("answers in {}; ", figures::duration(&probe["latencyMs"])));
    let answered = answered.or_else(|| program.map(|_| "its program is there; ".to_owned()));
    (Verdict::Pass, format!("{}skills: {}", answered.unwrap_or_default(), entry::skills(agent)))
}

fn print(judged: &[(String, Verdict, String)], printer: Printer) {
    let count = |wanted: Verdict| judged.iter().filter(|(_, verdict, _)| *verdict == wanted).count();
    let (pass, warn, fail) = (count(Verdict::Pass), count(Verdict::Warn), count(Verdict::Fail));
    if printer.is_json() {
        let agents = judged.iter().map(|(name, verdict, why)| {
            let name = Some(name).filter(|name| *name != "-");
            json!({ "name": name, "verdict": verdict.word(), "detail": why })
        });
        let agents: Vec<Value> = agents.collect();
        return printer.json(&json!({ "agents": agents, "pass": pass, "warn": warn, "fail": fail }));
    }
    let rows = judged.iter().map(|(name, verdict, why)| [verdict.word().to_owned(), name.clone(), why.clone()]);
    printer.table(&rows.collect::<Vec<_>>());
    printer.note(&format!("{pass} pass, {warn} warn, {fail} fail"));
}

//! Alerts: each fires at a threshold and resolves at a lower one, so that what hovers around it does not flap. The state is
//! kept beside the projector's cursor, and each change is a line of the journal in the same transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{earlier, later};
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::HealthBy;
use switchboard_host::config::hub::Alerts;

use crate::health::{Sum, Sums, Window};
use crate::metric_definitions as metric;

/// The alerts there are.
const NAMES: [&str; 10] = [
    "agent_stuck",
    "cost_over_budget",
    "skill_orphaned",
    "agent_down",
    "breaker_open",
    INBOX_WAITING,
    "projector_behind",
    "drop_storm",
    "effect_drift",
    ROUTE_FAILING,
];
/// An agent has asked, and nobody has answered.
pub(crate) const INBOX_WAITING: &str = "inbox_waiting";
/// The one that is about a route.
const ROUTE_FAILING: &str = "route_failing";
/// Below this much of the threshold it may resolve.
const STUCK_CALM: f64 = 0.8;
const BUDGET_CALM: f64 = 0.9;
/// Resolved alerts are shown so long.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);
/// At most so many are kept, resolved ones first to go.
const KEPT: usize = 500;
/// Times of drops that are kept of a key; older ones count with the next one.
const DROP_TIMES: usize = 64;
/// Of a name that others choose so much stands in a subject and in a detail: callers choose the keys of what is dropped, and
/// skills may have ids of any length.
const NAME_CHARS: usize = 128;
/// Alerts about an agent or a route that end with it.
const ENDS_WITH_SUBJECT: [&str; 5] = ["agent_down", "breaker_open", "effect_drift", INBOX_WAITING, ROUTE_FAILING];

/// By `name:subject`.
pub(crate) type AlertStates = BTreeMap<String, AlertState>;

/// An alert that fires, or has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlertState {
    pub(crate) alert: String,
    /// The agent it is about, or what else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) subject: String,
    pub(crate) firing: bool,
    /// What it is about was noticed and is not over: it fires as soon as it may again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) holds: bool,
    pub(crate) fired_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolved_at: Option<Timestamp>,
    /// Since when it has been below what it resolves at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calm_since: Option<Timestamp>,
    /// Of a storm: when there were drops, and how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) drops: Vec<(Timestamp, u64)>,
    pub(crate) detail: Value,
}

/// A message that was dropped, as the journal says.
#[derive(Clone, Debug)]
pub(crate) struct Drop {
    key: String,
    at: Timestamp,
    count: u64,
}

impl Drop {
    pub(crate) fn of(line: &JournalLine) -> Option<Self> {
        let reason = line.topic.strip_prefix("dispatch.dropped.")?;
        let payload: Value = serde_json::from_slice(&line.payload).unwrap_or_default();
        let key = ["key", "cooldownKey", "skill"].iter().find_map(|name| payload[*name].as_str());
        let key = shortened_name(&format!("{reason}:{}", key.unwrap_or("-")));
        Some(Self { key, at: line.at, count: payload["count"].as_u64().unwrap_or(1).max(1) })
    }
}

/// What a line of the journal says about an agent or a route.
#[derive(Clone, Debug)]
pub(crate) enum Noticed {
    Condition(Condition),
    /// An agent is not there any more.
    Gone(String),
}

/// Something that was noticed: an agent is down, or its breaker is open, or not any more; or a route fails.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) alert: &'static str,
    pub(crate) agent: Option<String>,
    /// The agent, or what of it; or the route.
    pub(crate) subject: String,
    pub(crate) holds: bool,
    pub(crate) detail: Value,
}

impl Noticed {
    /// The agent that it is about.
    pub(crate) fn agent(&self) -> Option<&str> {
        match self {
            Self::Condition(condition) => condition.agent.as_deref(),
            Self::Gone(agent) => Some(agent),
        }
    }

    pub(crate) fn of(line: &JournalLine) -> Option<Self> {
        if let Some(agent) = line.topic.strip_prefix("hub.agent.removed.") {
            return Some(Self::Gone(agent.to_owned()));
        }
        let known = [
            ("hub.agent.down.", "agent_down", true),
            ("hub.agent.up.", "agent_down", false),
            ("hub.breaker.opened.", "breaker_open", true),
            ("hub.breaker.closed.", "breaker_open", false),
        ];
        known.into_iter().find_map(|(prefix, alert, holds)| {
            let agent = line.topic.strip_prefix(prefix)?.to_owned();
            let (subject, detail) = (agent.clone(), json!({}));
            Some(Self::Condition(Condition { alert, agent: Some(agent), subject, holds, detail }))
        })
    }

    /// That a route fails. Whether it works again is known to the process that delivers.
    pub(crate) fn of_route(line: &JournalLine) -> Option<Self> {
        let change = line.topic.strip_prefix("hub.route.")?;
        let (change, route) = change.split_once('.')?;
        if !["dropped", "failing", "paused"].contains(&change) {
            return None;
        }
        let payload: Value = serde_json::from_slice(&line.payload).unwrap_or_default();
        let problem = match change {
            "paused" => Value::from("it owes too much, and is paused"),
            _ => payload["problem"].clone(),
        };
        let detail = json!({ "problem": problem });
        let condition = Condition { alert: ROUTE_FAILING, agent: None, subject: route.to_owned(), holds: true, detail };
        Some(Self::Condition(condition))
    }
}

/// What alerts are decided by.
pub(crate) struct Evaluation<'a> {
    pub(crate) now: Timestamp,
    pub(crate) settings: &'a Alerts,
    pub(crate) sums: &'a Sums,
    pub(crate) lag: Duration,
    pub(crate) drops: &'a [Drop],
    pub(crate) noticed: &'a [Noticed],
    /// Whether what an alert is about an agent or a route is over, as this process sees it now. What is known of one begins
    /// anew with the process and with its definition, so its end is not always noticed.
    pub(crate) is_over: &'a dyn Fn(&str, &str) -> bool,
}

/// What an alert should do now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Fire,
    /// Between the thresholds: as it is.
    Hold,
    Resolve,
}

/// Decides every alert, and returns the lines that say what has changed.
pub(crate) fn evaluate(states: &mut AlertStates, given: &Evaluation<'_>) -> Vec<JournalLine> {
    let mut board = Board { states, given, lines: Vec::new() };
    board.stuck_agents();
    board.cost();
    board.orphaned_skills();
    for noticed in given.noticed {
        match noticed {
            Noticed::Condition(condition) => board.notice(condition),
            Noticed::Gone(agent) => board.end(|alert, of| alert != ROUTE_FAILING && of == agent),
        }
    }
    board.end(given.is_over);
    board.fire_what_holds();
    let level = if given.lag > given.settings.behind.duration() { Level::Fire } else { Level::Resolve };
    board.decide("projector_behind", None, "projector", level, json!({ "lagMs": given.lag.as_millis() as u64 }));
    board.storms();
    let lines = board.lines;
    forget(states, given.now);
    lines
}

/// Sets the gauges.
pub(crate) fn measure(states: &AlertStates) {
    for name in NAMES {
        let firing = states.values().filter(|state| state.firing && state.alert == name).count();
        metrics::gauge!(metric::ALERTS_FIRING, "alert" => name).set(firing as f64);
    }
}

struct Board<'a> {
    states: &'a mut AlertStates,
    given: &'a Evaluation<'a>,
    lines: Vec<JournalLine>,
}

impl Board<'_> {
    fn stuck_agents(&mut self) {
        let threshold = self.given.settings.failure_rate.get();
        let now = self.given.now;
        let mut seen = self.given.sums.window(now, Window::Hour, HealthBy::All);
        for agent in self.subjects("agent_stuck") {
            seen.entry((agent, String::new())).or_default();
        }
        for ((agent, _), sum) in seen {
            let rate = sum.failure_rate();
            let level = if rate > threshold && sum.decided() >= self.given.settings.stuck_outcomes.get() as u64 {
                Level::Fire
            } else if rate < threshold * STUCK_CALM && self.is_calm("agent_stuck", &agent) {
                Level::Resolve
            } else {
                if rate >= threshold * STUCK_CALM {
                    self.disturb("agent_stuck", &agent);
                }
                Level::Hold
            };
            let detail = json!({ "failureRate1h": rate, "outcomes": sum.decided() });
            self.decide("agent_stuck", Some(&agent), &agent, level, detail);
        }
    }

    fn cost(&mut self) {
        let budget = self.given.settings.daily_usd.get();
        let by_agent = self.given.sums.window(self.given.now, Window::Day, HealthBy::All);
        let cost: f64 = by_agent.values().map(Sum::cost_usd).sum();
        let level = match cost {
            cost if cost > budget => Level::Fire,
            cost if cost < budget * BUDGET_CALM => Level::Resolve,
            _ => Level::Hold,
        };
        self.decide("cost_over_budget", None, "all", level, json!({ "costUsd24h": cost, "budgetUsd": budget }));
    }

    fn orphaned_skills(&mut self) {
        let mut seen: BTreeMap<(String, String), Sum> = BTreeMap::new();
        for ((agent, skill), sum) in self.given.sums.window(self.given.now, Window::Day, HealthBy::Skill) {
            // Skills whose ids begin alike for so long share an alert.
            seen.entry((agent, shortened_name(&skill))).or_default().merge(&sum);
        }
        for subject in self.subjects("skill_orphaned") {
            if let Some((agent, skill)) = subject.split_once('/') {
                seen.entry((agent.to_owned(), skill.to_owned())).or_default();
            }
        }
        for ((agent, skill), sum) in seen {
            let level = if sum.successes > 0 || sum.decided() == 0 {
                Level::Resolve
            } else if sum.decided() >= self.given.settings.orphan_outcomes.get() as u64 && skill != "-" {
                Level::Fire
            } else {
                Level::Hold
            };
            let detail = json!({ "skill": skill, "outcomes": sum.decided() });
            self.decide("skill_orphaned", Some(&agent), &format!("{agent}/{skill}"), level, detail);
        }
    }

    fn storms(&mut self) {
        let (limit, window) = (self.given.settings.drops.get() as u64, self.given.settings.drop_window.duration());
        let since = earlier(self.given.now, window);
        for dropped in self.given.drops {
            let key = format!("drop_storm:{}", dropped.key);
            let state = self.states.entry(key).or_insert_with(|| AlertState {
                alert: "drop_storm".to_owned(),
                agent: None,
                subject: dropped.key.clone(),
                firing: false,
                holds: false,
                fired_at: Timestamp(0),
                resolved_at: None,
                calm_since: None,
                drops: Vec::new(),
                detail: json!({}),
            });
            state.drops.push((dropped.at, dropped.count));
        }
        for subject in self.subjects("drop_storm") {
            let Some(state) = self.states.get_mut(&format!("drop_storm:{subject}")) else { continue };
            state.drops.retain(|(at, _)| *at > since);
            let excess = state.drops.len().saturating_sub(DROP_TIMES);
            let older: u64 = state.drops.drain(..excess).map(|(_, count)| count).sum();
            if let Some((_, count)) = state.drops.first_mut() {
                *count = count.saturating_add(older);
            }
            let count: u64 = state.drops.iter().map(|(_, count)| count).sum();
            let level = match count {
                count if count >= limit => Level::Fire,
                0 => Level::Resolve,
                _ => Level::Hold,
            };
            self.decide("drop_storm", None, &subject, level, json!({ "key": subject, "drops": count }));
        }
    }

    /// Takes what was noticed. What holds within the cooldown of its alert is remembered, so that it fires after it.
    fn notice(&mut self, condition: &Condition) {
        let Condition { alert, agent, subject, holds, detail } = condition;
        let level = if *holds { Level::Fire } else { Level::Resolve };
        self.decide(alert, agent.as_deref(), subject, level, detail.clone());
        if let Some(state) = self.states.get_mut(&format!("{alert}:{subject}")) {
            state.holds = *holds;
        }
    }

    /// Resolves alerts about agents and routes that are gone, or whose end this process knows of.
    fn end(&mut self, is_over: impl Fn(&str, &str) -> bool) {
        let over: Vec<AlertState> = self
            .states
            .values_mut()
            .filter(|state| ENDS_WITH_SUBJECT.contains(&state.alert.as_str()) && (state.firing || state.holds))
            .filter(|state| is_over(&state.alert, state.agent.as_deref().unwrap_or(&state.subject)))
            .map(|state| {
                state.holds = false;
                state.clone()
            })
            .collect();
        for AlertState { alert, agent, subject, detail, .. } in over {
            self.decide(&alert, agent.as_deref(), &subject, Level::Resolve, detail);
        }
    }

    fn fire_what_holds(&mut self) {
        let waiting: Vec<AlertState> =
            self.states.values().filter(|state| state.holds && !state.firing).cloned().collect();
        for AlertState { alert, agent, subject, detail, .. } in waiting {
            self.decide(&alert, agent.as_deref(), &subject, Level::Fire, detail);
        }
    }

    fn subjects(&self, alert: &str) -> Vec<String> {
        self.states.values().filter(|state| state.alert == alert).map(|state| state.subject.clone()).collect()
    }

    /// Whether an alert has been calm for long enough; notes when that began.
    fn is_calm(&mut self, alert: &str, subject: &str) -> bool {
        let now = self.given.now;
        let Some(state) = self.states.get_mut(&format!("{alert}:{subject}")) else { return false };
        let since = *state.calm_since.get_or_insert(now);
        later(since, self.given.settings.calm.duration()) <= now
    }

    fn disturb(&mut self, alert: &str, subject: &str) {
        if let Some(state) = self.states.get_mut(&format!("{alert}:{subject}")) {
            state.calm_since = None;
        }
    }

    fn decide(&mut self, alert: &str, agent: Option<&str>, subject: &str, level: Level, detail: Value) {
        let key = format!("{alert}:{subject}");
        let now = self.given.now;
        let known = self.states.get(&key);
        let (is_firing, fired_at) = known.map_or((false, None), |state| (state.firing, Some(state.fired_at)));
        let holds = known.is_some_and(|state| state.holds);
        let drops = known.map(|state| state.drops.clone()).unwrap_or_default();
        match level {
            Level::Fire if !is_firing => {
                let cooldown = self.given.settings.cooldown.duration();
                if fired_at.is_some_and(|at| at.0 != 0 && later(at, cooldown) > now) {
                    return;
                }
                self.line(alert, "fired", agent, subject, &detail);
                let state = AlertState {
                    alert: alert.to_owned(),
                    agent: agent.map(str::to_owned),
                    subject: subject.to_owned(),
                    firing: true,
                    holds,
                    fired_at: now,
                    resolved_at: None,
                    calm_since: None,
                    drops,
                    detail,
                };
                self.states.insert(key, state);
            }
            Level::Resolve if is_firing => {
                self.line(alert, "resolved", agent, subject, &detail);
                if let Some(state) = self.states.get_mut(&key) {
                    state.firing = false;
                    state.resolved_at = Some(now);
                    state.calm_since = None;
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, alert: &str, change: &str, agent: Option<&str>, subject: &str, detail: &Value) {
        let mut payload = json!({ "alert": alert, "subject": subject, "detail": detail });
        if let Some(agent) = agent {
            payload["agent"] = agent.into();
        }
        self.lines.push(JournalLine {
            at: self.given.now,
            owner: None,
            task: None,
            topic: format!("alert.{alert}.{change}"),
            payload: Bytes::from(payload.to_string()),
        });
    }
}

/// The beginning of a name, as subjects and details have it.
pub(crate) fn shortened_name(name: &str) -> String {
    name.chars().take(NAME_CHARS).collect()
}

/// Forgets what has been resolved for a day, and what never fired.
fn forget(states: &mut AlertStates, now: Timestamp) {
    let since = earlier(now, SHOWN);
    let is_kept = |state: &AlertState| state.firing || state.holds || !state.drops.is_empty();
    states.retain(|_, state| is_kept(state) || state.resolved_at.is_some_and(|at| at > since));
    while states.len() > KEPT {
        let oldest = states.iter().min_by_key(|(_, state)| (state.firing, state.fired_at));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
        states.remove(&key);
    }
}

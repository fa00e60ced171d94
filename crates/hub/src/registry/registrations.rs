//! Agents that are registered while the server runs: stored, versioned, and read by the same reader as `agents.yaml`.
//!
//! Secrets are only named, and only by variables that the operator has listed: what may register an agent could otherwise
//! have any variable of this process sent to a host of its choice.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{PutRegistration, RegistrationRow};
use switchboard_engine::store::{ServerStore, StoreError};
use switchboard_engine::{AgentName, Caller};
use switchboard_fleet::config::agent_files::read_item;
use switchboard_fleet::config::agents::Entry;
use switchboard_fleet::config::remote_agent::RemoteAgent;
use switchboard_host::config::Problem;
use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::redact;

use super::Registry;
use super::apply::{Definitions, Registered};
use super::card_policies::{self, CARD_POLICIES};
use super::probe::{CARD, fetch_card};
use super::remote_state::KnownCard;
use super::roster::EntrySource;
use crate::audit::{Act, Actor};

/// The kind of a registration that is an agent.
pub(super) const AGENT: &str = "agent";
/// Registrations that are read at a time.
const PAGE: usize = 500;
/// The longest of a definition before and after a change that the audit repeats: both have to fit its line.
const AUDITED_BYTES: usize = 24 << 10;
/// What a problem of a request's body names as its origin.
const BODY: &str = "body";

/// Why a registration is refused.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error("{}", sentence(.0))]
    Invalid(Vec<Problem>),
    #[error("there is an agent {0} already: change it, or choose another name")]
    Exists(String),
    #[error("agent {0} is in a file of the workspace: change it there")]
    InFile(String),
    #[error("there is no registered agent {0}")]
    NotFound(String),
    #[error("agent {name} has version {current} now: read it again")]
    Version { name: String, current: u64 },
    #[error("agent {name} has {live} tasks that have not ended: wait for them, or remove it with force")]
    Busy { name: String, live: usize },
    #[error("{0}")]
    Unreachable(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What removing an agent has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Gone,
    /// Its tasks run to their end.
    Draining,
}

impl Registry {
    /// Registers an agent that answers with a card, or any with `force`.
    pub async fn register(
        self: &Arc<Self>,
        actor: &Actor,
        item: &Value,
        force: bool,
    ) -> Result<(String, u64), RegistrationError> {
        let caller = &actor.caller;
        let agent = self.read_registration(item)?;
        let name = agent.name.to_string();
        // Who takes a name that is in use hears that, and not first that the agent cannot be reached.
        self.check_free(&name, &*self.definitions.lock().await)?;
        let card = self.probed(&agent, force).await?;
        let mut definitions = self.definitions.lock().await;
        // The name may have been taken meanwhile.
        self.check_free(&name, &definitions)?;
        if definitions.registrations.len() >= self.parts.config.hub.registrations.max.get() {
            let wrong = format!("there are {} registrations already", definitions.registrations.len());
            return Err(invalid("name", &wrong, "remove one, or raise hub.registrations.max"));
        }
        let body = Some(json!({ "item": item }));
        let tombstone = definitions.tombstones.get(&name).copied().unwrap_or(0);
        let line = self.audit("agents.add", actor, &name, None, Some(item));
        let version = self.put(caller, &name, tombstone, body, line).await?;
        definitions.tombstones.remove(&name);
        let registered = Registered { version, owner: caller.id.clone(), agent, item: item.clone() };
        definitions.registrations.insert(name.clone(), registered);
        match card {
            Some(card) => {
                self.forget_counted(&AgentName::from(name.as_str())).await;
                self.store_card(&AgentName::from(name.as_str()), Some(card.json.clone())).await;
                definitions.cards.insert(name.clone(), card);
            }
            // What an earlier agent of this name has shown is not this one's.
            None => self.delete_card(&mut definitions, &name).await,
        }
        self.applied(&definitions).await;
        Ok((name, version))
    }

    /// Refuses a name that another agent has.
    fn check_free(&self, name: &str, definitions: &Definitions) -> Result<(), RegistrationError> {
        match self.roster().entry(name).map(|entry| entry.source.clone()) {
            Some(EntrySource::File) => Err(RegistrationError::InFile(name.to_owned())),
            Some(EntrySource::Registration { .. }) => Err(RegistrationError::Exists(name.to_owned())),
            None if definitions.registrations.contains_key(name) => Err(RegistrationError::Exists(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Replaces a registration, if it has the expected version.
    pub async fn update(
        self: &Arc<Self>,
        actor: &Actor,
        name: &str,
        item: &Value,
        expected: Option<u64>,
    ) -> Result<u64, RegistrationError> {
        let caller = &actor.caller;
        let agent = self.read_registration(item)?;
        if agent.name.as_str() != name {
            let wrong = format!("\"{}\" is not the name in the path", agent.name);
            return Err(invalid("name", &wrong, &format!("write {name}: agents are not renamed")));
        }
        let mut definitions = self.definitions.lock().await;
        let known = self.registered(&definitions, name)?;
        if expected.is_some_and(|expected| expected != known.version) {
            return Err(RegistrationError::Version { name: name.to_owned(), current: known.version });
        }
        // Both as they are written: what is the same in both has not been changed.
        let line = self.audit("agents.update", actor, name, Some(known.item), Some(item));
        let version = self.put(caller, name, known.version, Some(json!({ "item": item })), line).await?;
        if known.agent.url != agent.url {
            self.delete_card(&mut definitions, name).await;
        }
        let registered = Registered { version, owner: caller.id.clone(), agent, item: item.clone() };
        definitions.registrations.insert(name.to_owned(), registered);
        self.applied(&definitions).await;
        Ok(version)
    }

    /// Removes a registration. With `force` also one whose tasks have not ended, which then drains.
    pub async fn remove(
        self: &Arc<Self>,
        actor: &Actor,
        name: &str,
        force: bool,
    ) -> Result<Removal, RegistrationError> {
        let caller = &actor.caller;
        let mut definitions = self.definitions.lock().await;
        let known = self.registered(&definitions, name)?;
        let live = self.live_tasks(&AgentName::from(name)).await?;
        if live > 0 && !force {
            return Err(RegistrationError::Busy { name: name.to_owned(), live });
        }
        let line = self.audit("agents.remove", actor, name, Some(known.item.clone()), None);
        // Its address is kept as a tombstone: while a task or a job names it, a restart must find the way to it.
        let tombstone = json!({ "item": known.item, "removed": true });
        let version = self.put(caller, name, known.version, Some(tombstone), line).await?;
        definitions.registrations.remove(name);
        definitions.tombstones.insert(name.to_owned(), version);
        self.applied(&definitions).await;
        Ok(if live > 0 { Removal::Draining } else { Removal::Gone })
    }

    fn registered(&self, definitions: &Definitions, name: &str) -> Result<Registered, RegistrationError> {
        let source = self.roster().entry(name).map(|entry| entry.source.clone());
        match definitions.registrations.get(name) {
            Some(registered) => Ok(registered.clone()),
            None if source == Some(EntrySource::File) => Err(RegistrationError::InFile(name.to_owned())),
            None => Err(RegistrationError::NotFound(name.to_owned())),
        }
    }

    async fn applied(self: &Arc<Self>, definitions: &Definitions) {
        let changes = self.apply(definitions);
        let lines = self.change_lines(&changes);
        self.write_journal(lines).await;
    }

    async fn put(
        &self,
        caller: &Caller,
        name: &str,
        known_version: u64,
        body: Option<Value>,
        line: JournalLine,
    ) -> Result<u64, RegistrationError> {
        let put = PutRegistration {
            kind: AGENT.to_owned(),
            name: name.to_owned(),
            expected_version: known_version,
            owner: caller.id.clone(),
            at: self.parts.clock.now(),
            body: body.map(|body| Bytes::from(body.to_string())),
            job: None,
            journal: vec![line],
        };
        Ok(self.put_row(put).await?)
    }

    /// The card of an agent that is to be registered.
    async fn probed(&self, agent: &RemoteAgent, force: bool) -> Result<Option<KnownCard>, RegistrationError> {
        let failed = |error: String| match force {
            true => Ok(None),
            false => Err(RegistrationError::Unreachable(error)),
        };
        let client = match self.clients.permitted(agent, &self.variables.permit()) {
            Ok(client) => client,
            Err(error) => return failed(error.to_string()),
        };
        match fetch_card(&client, self.probe_settings().timeout).await {
            Ok(found) => Ok(Some(KnownCard::new(found.card.clone(), found.json.clone()))),
            Err(error) => failed(error.to_string()),
        }
    }

    /// An agent as a request brings it: elsewhere, and without secrets.
    pub fn read_registration(&self, item: &Value) -> Result<RemoteAgent, RegistrationError> {
        let has = |key: &str| item.get(key).is_some_and(|value| !value.is_null());
        // Before what is said of its value: none would be right.
        if let Some(key) = ["cli", "builtin"].into_iter().find(|key| has(key)) {
            let right = "name the url of an agent elsewhere, or configure this one in agents.yaml";
            return Err(invalid(key, "is not for registrations", right));
        }
        if !has("url") {
            return Err(RegistrationError::Invalid(without_url(item)));
        }
        let entry = read_item(BODY, &item.to_string()).map_err(RegistrationError::Invalid)?;
        let Entry::Remote(agent) = entry else {
            return Err(invalid("url", "is missing", "the address of the agent, such as https://agents.example.com"));
        };
        let mut problems = Vec::new();
        for (key, variable) in self.unlisted_variables(&agent) {
            let wrong = format!("{variable} is not a variable that registrations may use");
            problems.push(problem(key, &wrong, "list it in hub.registrations.env, or choose one of that list"));
        }
        let is_secret = |header: &(HeaderName, HeaderValue)| {
            is_credential(header.0.as_str()) || holds_credential(header.1.to_str().unwrap_or_default())
        };
        for (name, _) in agent.headers.iter().filter(is_secret) {
            let right = "name a variable of hub.registrations.env with bearerEnv or apiKeyEnv";
            problems.push(problem(&format!("headers.{name}"), "holds a credential", right));
        }
        if agent.url.as_str().split_once('?').is_some_and(|(_, query)| query.split('&').any(is_secret_parameter)) {
            problems.push(problem("url", "has a credential in its query", "use apiKeyEnv for secrets"));
        }
        if agent.tls.cert.is_some() {
            problems.push(problem("tls", "names files of the server", "configure this agent in agents.yaml"));
        }
        if problems.is_empty() { Ok(*agent) } else { Err(RegistrationError::Invalid(problems)) }
    }

    /// Variables that an agent names and that registrations may not use, under their keys.
    pub(super) fn unlisted_variables<'a>(&self, agent: &'a RemoteAgent) -> Vec<(&'static str, &'a str)> {
        let oauth = ("oauth.clientSecretEnv", &agent.oauth.client_secret_env);
        let named =
            [("apiKeyEnv", &agent.api_key_env), ("bearerEnv", &agent.bearer_env), ("hmacEnv", &agent.hmac_env), oauth];
        let unlisted = named.into_iter().filter_map(|(key, variable)| {
            let variable = variable.as_ref().filter(|variable| !self.variables.lists(variable))?;
            Some((key, variable.as_str()))
        });
        unlisted.collect()
    }

    /// Reads what earlier processes have stored, before the kernel recovers their tasks.
    pub(super) async fn load_registrations(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut definitions = self.definitions.lock().await;
        for row in all_registrations(&*self.parts.store, CARD).await? {
            if let Ok(card) = switchboard_a2a::card::AgentCard::decode(&row.body) {
                definitions.cards.insert(row.name, KnownCard::new(card, row.body));
            }
        }
        for row in all_registrations(&*self.parts.store, CARD_POLICIES).await? {
            self.stored_counted.lock().insert(AgentName::from(row.name.as_str()));
            let Some(card) = definitions.cards.get_mut(&row.name) else { continue };
            match card_policies::decode(&row.body) {
                Some(counted) => card.counted = Some(counted),
                None => tracing::error!(agent = row.name, "what its cards have asked of reviewers cannot be read"),
            }
        }
        let mut tombstones = Vec::new();
        for row in all_registrations(&*self.parts.store, AGENT).await? {
            let Some((item, is_removed)) = stored_item(&row.body) else {
                tracing::error!(agent = row.name, "its registration cannot be read and is left out");
                continue;
            };
            if is_removed {
                definitions.tombstones.insert(row.name.clone(), row.version);
                tombstones.push((AgentName::from(row.name.as_str()), item, super::tombstones::is_of_file(&row.body)));
                continue;
            }
            // It was checked when it was registered; which variables it may name is checked when it is served.
            match read_item(BODY, &item.to_string()) {
                Ok(Entry::Remote(agent)) => {
                    let registered = Registered { version: row.version, owner: row.owner, agent: *agent, item };
                    definitions.registrations.insert(row.name, registered);
                }
                _ => tracing::error!(agent = row.name, "its registration is not one of this version and is left out"),
            }
        }
        self.bury(&definitions, tombstones);
        self.load_file_definitions(&mut definitions).await
    }

    pub(super) fn audit(
        &self,
        act: &str,
        actor: &Actor,
        subject: &str,
        before: Option<Value>,
        after: Option<&Value>,
    ) -> JournalLine {
        let (before, after) = (audited(before.unwrap_or_default()), audited(after.cloned().unwrap_or_default()));
        let act = Act { name: act, subject, agent: Some(subject), task: None, before, after };
        actor.did(self.parts.clock.now(), act)
    }
}

/// A definition as the audit repeats it: one that is too long for its line is only measured.
fn audited(definition: Value) -> Value {
    match definition.to_string().len() {
        bytes if bytes > AUDITED_BYTES => json!({ "name": definition["name"], "bytes": bytes }),
        _ => definition,
    }
}

/// All that is wrong with an agent that has no address.
fn without_url(item: &Value) -> Vec<Problem> {
    let mut complete = item.clone();
    if let Some(members) = complete.as_object_mut() {
        members.insert("url".to_owned(), "http://localhost".into());
    }
    let mut problems = read_item(BODY, &complete.to_string()).err().unwrap_or_default();
    problems.push(problem("url", "is missing", "the address of the agent, such as https://agents.example.com/a2a"));
    problems
}

/// The item of a stored registration, and whether it is a tombstone.
fn stored_item(body: &[u8]) -> Option<(Value, bool)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some((body.get("item")?.clone(), body.get("removed").and_then(Value::as_bool).unwrap_or(false)))
}

fn problem(key: &str, wrong: &str, right: &str) -> Problem {
    let origin = Origin::File { file: Arc::from(BODY), line: None };
    Problem::new(origin, key, Mismatch::new(wrong, right))
}

fn invalid(key: &str, wrong: &str, right: &str) -> RegistrationError {
    RegistrationError::Invalid(vec![problem(key, wrong, right)])
}

/// All registrations of a kind by name, read in pages.
pub(crate) async fn all_registrations(store: &dyn ServerStore, kind: &str) -> Result<Vec<RegistrationRow>, StoreError> {
    let mut all: Vec<RegistrationRow> = Vec::new();
    loop {
        let after = all.last().map_or("", |row| &row.name);
        let page = store.registrations(kind, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

fn sentence(problems: &[Problem]) -> String {
    let one = |problem: &Problem| format!("{}: {}: {}", problem.key, problem.wrong, problem.right);
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Headers that hold credentials by their name.
pub(super) fn is_credential(header: &str) -> bool {
    let words = ["authorization", "cookie", "key", "token", "secret", "password", "credential", "signature"];
    words.iter().any(|word| header.to_ascii_lowercase().contains(word))
}

/// Values that look like one, whatever their header is called.
pub(super) fn holds_credential(value: &str) -> bool {
    let scheme = value.trim().split_once(' ').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("basic");
    is_scheme || redact::text(value) != value
}

/// Parameters of a query that hold a credential by their name.
pub(crate) fn is_secret_parameter(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    is_credential(name) || name.eq_ignore_ascii_case("auth") || name.eq_ignore_ascii_case("sig")
}

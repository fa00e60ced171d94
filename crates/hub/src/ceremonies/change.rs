//! Ceremonies that are created, changed and removed while the server runs: stored, versioned, with the job of the next run in
//! the same transaction, and read by the same reader as the files.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::hub::{NewJob, PutRegistration};
use switchboard_engine::{AgentName, AgentScope, Caller, CallerId, CallerRole};

use super::definition::Definition;
use super::journal::change_line;
use super::notifier::Notifier;
use super::progress::job_name;
use super::table::{Ceremony, Source};
use super::{Ceremonies, CeremonyError};
use crate::audit::{Act, Actor};
use crate::definition_reader::quoted;
use crate::hub::HubState;
use crate::registry::all_registrations;
use crate::routing::ALL;

/// The kind of a registration that is a ceremony.
const KIND: &str = "ceremony";
/// The longest of a definition before and after a change that the audit repeats: both have to fit its line.
const AUDITED_BYTES: usize = 24 << 10;

impl Ceremonies {
    /// Creates a ceremony, which belongs to who has asked for it.
    pub(crate) async fn create(
        &self,
        hub: &HubState,
        actor: &Actor,
        given: &Value,
    ) -> Result<Arc<Ceremony>, CeremonyError> {
        if is_task(&actor.caller) {
            let problem = "the token of a task orders no runs: they would go on when the task has ended";
            return Err(CeremonyError::Forbidden(problem.to_owned()));
        }
        let definition = Definition::read(given, None).map_err(CeremonyError::Invalid)?;
        // A key that is not stored, such as one of another server, could never send.
        let Some(owner) = self.caller(&actor.caller.id) else {
            let problem = "this credential is not one of a key of this server: have a key made, and use that";
            return Err(CeremonyError::Forbidden(problem.to_owned()));
        };
        self.check(&owner, &definition)?;
        check_agents(hub, &definition)?;
        self.check_time(&definition)?;
        let id = definition.id.to_string();
        let _followed = self.followed.lock().await;
        if self.table.is_in_file(&id) {
            return Err(CeremonyError::InFile(id));
        }
        if self.table.registered(&id).is_some() {
            return Err(CeremonyError::Exists(id));
        }
        let settings = &self.parts.config.hub.ceremonies;
        let count = self.table.len();
        if count >= settings.max.get() {
            let wrong = format!("is one more than the {count} ceremonies that there are");
            return Err(CeremonyError::invalid("id", wrong, "delete one, or raise hub.ceremonies.max"));
        }
        if owner.scopes.role < CallerRole::Admin && self.table.count_of(&owner.id) >= settings.per_owner.get() {
            let wrong = format!("is one more than the {} that a caller may have", settings.per_owner.get());
            return Err(CeremonyError::invalid("id", wrong, "delete one (hub.ceremonies.perOwner)"));
        }
        let job = self.next_job(&definition).await?;
        let change = Change { act: "ceremonies.create", change: "added", before: None, after: Some(&definition) };
        let version = match self.put(actor, &id, (0, owner.id.clone()), change, Some(job)).await {
            Err(StoreError::VersionConflict { .. }) => return Err(CeremonyError::Exists(id)),
            put => put?,
        };
        Ok(self.registered(owner.id, version, definition))
    }

    /// Changes members of a ceremony: those that are given, of which null ones are taken away. Its id and its owner stay.
    pub(crate) async fn update(
        &self,
        hub: &HubState,
        actor: &Actor,
        id: &str,
        patch: Map<String, Value>,
        expected: Option<u64>,
    ) -> Result<Arc<Ceremony>, CeremonyError> {
        check_patch(&patch)?;
        let _followed = self.followed.lock().await;
        let (known, version) = self.changeable(actor, id, CallerRole::Admin, expected)?;
        let before = &known.definition;
        let patched = patched(before.written(), &known.owner, patch)?;
        let definition = Definition::read(&patched, None).map_err(CeremonyError::Invalid)?;
        // Its owner may do less than who changes it.
        let owner = self.caller(&known.owner).ok_or_else(|| {
            CeremonyError::Forbidden("the key of its owner is revoked: delete it, and create it anew".to_owned())
        })?;
        self.check(&owner, &definition)?;
        if definition.targets != before.targets || definition.notify != before.notify {
            check_agents(hub, &definition)?;
        }
        let job = match definition.timing() == before.timing() {
            true => None,
            false => {
                self.check_time(&definition)?;
                Some(self.next_job(&definition).await?)
            }
        };
        let change =
            Change { act: "ceremonies.update", change: "changed", before: Some(before), after: Some(&definition) };
        let version =
            self.put(actor, id, (version, owner.id.clone()), change, job).await.map_err(|error| conflict(id, error))?;
        Ok(self.registered(owner.id, version, definition))
    }

    /// Removes a ceremony. What it has begun goes on.
    pub(crate) async fn remove(&self, actor: &Actor, id: &str, expected: Option<u64>) -> Result<(), CeremonyError> {
        let _followed = self.followed.lock().await;
        let (known, version) = self.changeable(actor, id, CallerRole::Admin, expected)?;
        let change =
            Change { act: "ceremonies.delete", change: "removed", before: Some(&known.definition), after: None };
        let put = self.put(actor, id, (version, known.owner.clone()), change, None).await;
        put.map_err(|error| conflict(id, error))?;
        self.table.set_registered(id, None);
        if let Err(error) = self.parts.store.remove_jobs(vec![job_name(id)]).await {
            tracing::warn!(ceremony = id, %error, "its job could not be deleted, and ends when it is due");
        }
        Ok(())
    }

    /// A registered ceremony that a caller may change, and its version.
    fn changeable(
        &self,
        actor: &Actor,
        id: &str,
        role: CallerRole,
        expected: Option<u64>,
    ) -> Result<(Arc<Ceremony>, u64), CeremonyError> {
        let known = self.permitted(actor, id, role)?;
        let Source::Registration { version } = known.source else {
            return Err(CeremonyError::InFile(id.to_owned()));
        };
        match expected.filter(|expected| *expected != version) {
            Some(_) => Err(CeremonyError::Version { id: id.to_owned(), current: version }),
            None => Ok((known, version)),
        }
    }

    /// A ceremony that a caller may act on: its own, or one that it has the role for.
    pub(super) fn permitted(&self, actor: &Actor, id: &str, role: CallerRole) -> Result<Arc<Ceremony>, CeremonyError> {
        let caller = &actor.caller;
        if is_task(caller) {
            return Err(CeremonyError::Forbidden("the token of a task changes and runs no ceremonies".to_owned()));
        }
        // What is foreign looks like nothing.
        let known = self.table.find(id).filter(|known| known.is_seen_by(caller));
        let known = known.ok_or_else(|| CeremonyError::NotFound(id.to_owned()))?;
        if known.owner == caller.id || known.has_role(caller, role) {
            return Ok(known);
        }
        Err(CeremonyError::Forbidden(format!("ceremony {id} belongs to another caller, and needs the role {role}")))
    }

    /// Refuses a single time that is over.
    fn check_time(&self, definition: &Definition) -> Result<(), CeremonyError> {
        if definition.enabled && definition.schedule.next_after(self.parts.clock.now()).is_none() {
            let member = if definition.written().get("at").is_some() { "at" } else { "schedule" };
            return Err(CeremonyError::invalid(member, "is over", "a time that comes"));
        }
        Ok(())
    }

    /// Reads what earlier processes, or other nodes, have stored.
    pub(super) async fn load_registrations(&self) -> Result<(), StoreError> {
        for row in all_registrations(&*self.parts.store, KIND).await? {
            let read = serde_json::from_slice::<Value>(&row.body).ok();
            match read.as_ref().map(|given| Definition::read(given, None)) {
                Some(Ok(definition)) => drop(self.registered(row.owner, row.version, definition)),
                _ => {
                    tracing::error!(ceremony = row.name, "its registration is not one of this version and is left out")
                }
            }
        }
        Ok(())
    }

    fn registered(&self, owner: CallerId, version: u64, definition: Definition) -> Arc<Ceremony> {
        let ceremony = Arc::new(Ceremony { definition, owner, source: Source::Registration { version } });
        self.table.set_registered(&ceremony.definition.id, Some(Arc::clone(&ceremony)));
        ceremony
    }

    /// Writes a change with all that follows from it.
    async fn put(
        &self,
        actor: &Actor,
        id: &str,
        (known, owner): (u64, CallerId),
        change: Change<'_>,
        job: Option<NewJob>,
    ) -> Result<u64, StoreError> {
        let now = self.parts.clock.now();
        let (before, after) = (audited(change.before), audited(change.after));
        let audit = actor.did(now, Act { name: change.act, subject: id, agent: None, task: None, before, after });
        let put = PutRegistration {
            kind: KIND.to_owned(),
            name: id.to_owned(),
            expected_version: known,
            owner,
            at: now,
            body: change.after.map(|definition| Bytes::from(definition.written().to_string())),
            job,
            journal: vec![audit, change_line(now, change.change, id)],
        };
        self.parts.store.put_registration(put).await
    }
}

/// A change of a registration.
struct Change<'a> {
    /// Its name in the audit.
    act: &'static str,
    /// The same in the journal.
    change: &'static str,
    before: Option<&'a Definition>,
    after: Option<&'a Definition>,
}

/// A definition as the audit repeats it: one that is too long for its line is only measured.
fn audited(definition: Option<&Definition>) -> Value {
    let Some(definition) = definition else { return Value::Null };
    let written = definition.written();
    match written.to_string().len() {
        bytes if bytes > AUDITED_BYTES => json!({ "id": definition.id, "bytes": bytes }),
        _ => written,
    }
}

/// Whether a running task asks, by its token.
fn is_task(caller: &Caller) -> bool {
    matches!(caller.scopes.agents, AgentScope::Task(_))
}

fn conflict(id: &str, error: StoreError) -> CeremonyError {
    match error {
        StoreError::VersionConflict { current } => CeremonyError::Version { id: id.to_owned(), current },
        error => error.into(),
    }
}

/// Refuses names that no agent has: a run would be refused each time.
fn check_agents(hub: &HubState, definition: &Definition) -> Result<(), CeremonyError> {
    let directory = hub.engine.directory();
    let targets = definition.targets.iter().filter(|name| *name != ALL).map(|name| ("targets", name.as_str()));
    let told = definition.notify.iter().filter_map(|notifier| match notifier {
        Notifier::Agent(agent) => Some(("notify", agent.as_str())),
        _ => None,
    });
    let unknown = targets.chain(told).find(|(_, name)| directory.find(&AgentName::from(*name)).is_none());
    let Some((member, name)) = unknown else { return Ok(()) };
    let right = "the names of agents of this server (GET /api/agents)";
    Err(CeremonyError::invalid(member, format!("has {:?}, which no agent is called", quoted(name)), right))
}

/// Refuses a patch that no ceremony can have, whichever it is for.
fn check_patch(patch: &Map<String, Value>) -> Result<(), CeremonyError> {
    let mut members = json!({ "id": "any", "skill": "any" });
    if patch.get("at").is_none_or(Value::is_null) {
        members["schedule"] = "@daily".into();
    }
    let Value::Object(mut members) = members else { return Ok(()) };
    members.extend(patch.clone().into_iter().filter(|(name, value)| name != "createdBy" && !value.is_null()));
    Definition::read(&Value::Object(members), None).map(drop).map_err(CeremonyError::Invalid)
}

/// A definition with a patch on it. A new way to be due takes the place of the other one.
fn patched(before: Value, owner: &CallerId, patch: Map<String, Value>) -> Result<Value, CeremonyError> {
    let Value::Object(mut members) = before else { return Ok(before) };
    if patch.is_empty() {
        return Err(CeremonyError::invalid("body", "changes nothing", "at least one member"));
    }
    for (fixed, value) in [("id", members.get("id").cloned()), ("createdBy", Some(owner.as_str().into()))] {
        if patch.get(fixed).is_some_and(|given| Some(given) != value.as_ref()) {
            return Err(CeremonyError::invalid(fixed, "never changes", "leave it out"));
        }
    }
    for (new, old) in [("schedule", "at"), ("at", "schedule")] {
        if patch.get(new).is_some_and(|given| !given.is_null()) && !patch.contains_key(old) {
            members.remove(old);
        }
    }
    for (name, value) in patch.into_iter().filter(|(name, _)| name != "createdBy") {
        match value {
            Value::Null => drop(members.remove(&name)),
            value => drop(members.insert(name, value)),
        }
    }
    Ok(Value::Object(members))
}

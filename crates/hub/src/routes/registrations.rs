//! Routes that are registered while the server runs: stored, versioned, and read by the same reader as the files.
//!
//! Secrets are only named, and only by variables that the operator has listed: what may register a route could otherwise have
//! bodies signed with any variable of this process.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::PutRegistration;

use super::definition::{Definition, Then};
use super::error::RouteError;
use super::journal::line;
use super::owed::delivery;
use super::{Registered, Routes};
use crate::audit::{Act, Actor};
use crate::definition_reader::Problem;
use crate::registry::{all_registrations, is_secret_parameter};

/// The kind of a registration that is a route.
const KIND: &str = "route";

impl Routes {
    /// Registers a route.
    pub(crate) async fn add(&self, actor: &Actor, given: &Value) -> Result<(Definition, u64), RouteError> {
        let definition = self.read(given, None)?;
        let name = definition.name.clone();
        let mut defined = self.defined.lock().await;
        if defined.files.found.contains_key(&name) {
            return Err(RouteError::InFile(name));
        }
        if defined.registered.contains_key(&name) {
            return Err(RouteError::Exists(name));
        }
        let count = defined.registered.len() + defined.files.found.len();
        if count >= self.parts.config.hub.routes.max.get() {
            let wrong = format!("is one more than the {count} routes that there are");
            return Err(RouteError::invalid("name", wrong, "delete one, or raise hub.routes.max"));
        }
        let change = Change { act: "routes.add", change: "added", before: None, after: Some(&definition) };
        let version = self.put(actor, &name, 0, change).await?;
        let registered = Registered { version, owner: actor.caller.id.clone(), definition: definition.clone() };
        defined.registered.insert(name, registered);
        self.apply(&defined).await;
        Ok((definition, version))
    }

    /// Replaces a route. What it owes is delivered as it says from now on; its owner is who has replaced it.
    pub(crate) async fn update(
        &self,
        actor: &Actor,
        name: &str,
        given: &Value,
        expected: Option<u64>,
    ) -> Result<(Definition, u64), RouteError> {
        let definition = self.read(given, Some(name))?;
        if definition.name != name {
            let wrong = format!("is {:?}, and the path says {name:?}", definition.name);
            return Err(RouteError::invalid("name", wrong, "the same, or none: routes are not renamed"));
        }
        let mut defined = self.defined.lock().await;
        let known = defined.registered(name, expected)?;
        let change = Change {
            act: "routes.update",
            change: "changed",
            before: Some(&known.definition),
            after: Some(&definition),
        };
        let version = self.put(actor, name, known.version, change).await?;
        let registered = Registered { version, owner: actor.caller.id.clone(), definition: definition.clone() };
        defined.registered.insert(name.to_owned(), registered);
        self.apply(&defined).await;
        if !definition.enabled {
            self.forget_now(name).await;
        }
        Ok((definition, version))
    }

    /// Removes a route and all that it owes.
    pub(crate) async fn remove(&self, actor: &Actor, name: &str, expected: Option<u64>) -> Result<(), RouteError> {
        let mut defined = self.defined.lock().await;
        let known = defined.registered(name, expected)?;
        let change = Change { act: "routes.remove", change: "removed", before: Some(&known.definition), after: None };
        self.put(actor, name, known.version, change).await?;
        defined.registered.remove(name);
        self.apply(&defined).await;
        self.forget_now(name).await;
        Ok(())
    }

    /// The job that was stored with the change does it as well, a moment later; by then the name may be another route's.
    async fn forget_now(&self, name: &str) {
        if let Err(error) = self.forget(name).await {
            tracing::warn!(route = name, %error, "what a route owed is forgotten later");
        }
    }

    /// Reads what earlier processes have stored.
    pub(super) async fn load_registrations(&self) -> Result<(), StoreError> {
        let mut defined = self.defined.lock().await;
        for row in all_registrations(&*self.parts.store, KIND).await? {
            let read = serde_json::from_slice::<Value>(&row.body).ok();
            match read.as_ref().map(|given| Definition::read(given, None)) {
                Some(Ok(definition)) => {
                    let registered = Registered { version: row.version, owner: row.owner, definition };
                    defined.registered.insert(row.name, registered);
                }
                _ => tracing::error!(route = row.name, "its registration is not one of this version and is left out"),
            }
        }
        self.apply(&defined).await;
        Ok(())
    }

    /// A definition as a request brings it.
    fn read(&self, given: &Value, name: Option<&str>) -> Result<Definition, RouteError> {
        let definition = Definition::read(given, name).map_err(RouteError::Invalid)?;
        let Then::Post { url, secret_env } = &definition.then else { return Ok(definition) };
        let mut problems = Vec::new();
        if url.split_once('?').is_some_and(|(_, query)| query.split('&').any(is_secret_parameter)) {
            problems.push(Problem {
                key: "then.url".to_owned(),
                wrong: "has a credential in its query".to_owned(),
                right: "write the route as a file, where it can be ${VARIABLE}".to_owned(),
            });
        }
        let listed = &self.parts.config.hub.registrations.env;
        if let Some(variable) = secret_env.as_ref().filter(|variable| !listed.contains(variable)) {
            problems.push(Problem {
                key: "then.secretEnv".to_owned(),
                wrong: format!("is {variable}, which is not a variable that registrations may use"),
                right: "list it in hub.registrations.env, or choose one of that list".to_owned(),
            });
        }
        if problems.is_empty() { Ok(definition) } else { Err(RouteError::Invalid(problems)) }
    }

    /// Writes a change with all that follows from it: what is owed is looked at again.
    async fn put(&self, actor: &Actor, name: &str, known: u64, change: Change<'_>) -> Result<u64, StoreError> {
        let now = self.parts.clock.now();
        let put = PutRegistration {
            kind: KIND.to_owned(),
            name: name.to_owned(),
            expected_version: known,
            owner: actor.caller.id.clone(),
            at: now,
            body: change.after.map(|definition| Bytes::from(definition.written().to_string())),
            job: (known > 0).then(|| delivery(name, now)),
            journal: vec![self.audit(actor, name, &change), line(now, change.change, name, json!({}))],
        };
        self.parts.store.put_registration(put).await
    }

    fn audit(&self, actor: &Actor, name: &str, change: &Change<'_>) -> JournalLine {
        let shown = |definition: Option<&Definition>| definition.map(Definition::shown).unwrap_or_default();
        let (before, after) = (shown(change.before), shown(change.after));
        actor.did(
            self.parts.clock.now(),
            Act { name: change.act, subject: name, agent: None, task: None, before, after },
        )
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

impl super::Defined {
    fn registered(&self, name: &str, expected: Option<u64>) -> Result<Registered, RouteError> {
        let Some(known) = self.registered.get(name) else {
            let is_in_file = self.files.found.contains_key(name);
            return Err(if is_in_file { RouteError::InFile(name.into()) } else { RouteError::NotFound(name.into()) });
        };
        match expected.filter(|expected| *expected != known.version) {
            Some(_) => Err(RouteError::Version { name: name.to_owned(), current: known.version }),
            None => Ok(known.clone()),
        }
    }
}

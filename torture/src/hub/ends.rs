//! Compares how tasks have ended at the hub and at the agents behind it: what one of the hub's was told of its end is what is
//! there, and no two of them share a task.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::{Value, json};

use crate::calls::{self, TaskFacts};
use crate::compare::Problems;
use crate::http::Connection;
use crate::hub::judge::Remote;
use crate::hub::tally::Tally;

const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// A task of the hub.
#[derive(Debug)]
pub(super) struct Ended {
    /// Where its agent is at the hub.
    pub(super) agent: &'static str,
    pub(super) facts: TaskFacts,
    /// The task that it followed, once it was known.
    pub(super) remote: Option<Followed>,
    /// The word of its reason, if it has one.
    pub(super) detail: Option<String>,
}

/// A task elsewhere, as the hub names it.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) agent: String,
    pub(super) task: String,
    /// How it has ended, if the agent has said so.
    pub(super) state: Option<String>,
}

/// The tasks of the hub.
pub(super) struct Ends(Vec<Ended>);

/// The tasks of one server behind it.
pub(super) struct There(BTreeMap<String, TaskFacts>);

impl Ended {
    fn read(agent: &'static str, task: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let remote = &task["metadata"]["switchboard/remote"];
        let remote = text(&remote["taskId"]).map(|task| Followed {
            agent: text(&remote["agent"]).unwrap_or_default(),
            task,
            state: text(&remote["state"]),
        });
        let detail = text(&task["metadata"]["switchboard/reasonDetail"]);
        let detail = detail.or_else(|| text(&task["metadata"]["switchboard/reason"]));
        Self { agent, facts: TaskFacts::read(task), remote, detail }
    }
}

impl Ends {
    /// Those of these agents, by where they are at the hub.
    pub(super) fn read(connection: &mut Connection, agents: impl Iterator<Item = &'static str>) -> io::Result<Self> {
        let mut ends = Vec::new();
        for agent in agents {
            let mut seen = |task: &Value| ends.push(Ended::read(agent, task));
            calls::list_whole(connection, agent, &json!({ "includeArtifacts": true }), &mut seen)?;
        }
        Ok(Self(ends))
    }

    pub(super) fn all(&self) -> &[Ended] {
        &self.0
    }

    /// Whether one of them follows this task.
    pub(super) fn names(&self, task: &str) -> bool {
        self.0.iter().filter_map(|here| here.remote.as_ref()).any(|remote| remote.task == task)
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for here in &self.0 {
            tally.count(&here.facts.state, here.detail.as_deref());
        }
        tally
    }

    /// A caller's message has an id of its own: it is in one task, once.
    pub(super) fn worked_on_twice(&self) -> Problems {
        worked_on_twice(self.0.iter().map(|here| &here.facts), "the hub")
    }

    /// Holds the tasks of one agent to what is there. Some were canceled by their clients.
    pub(super) fn compare(&self, remote: &Remote, there: &There, canceled: &BTreeSet<String>) -> Problems {
        let mut problems = Problems::new();
        let mut named = BTreeSet::new();
        let mut unnamed_here = 0;
        for Ended { facts, remote: followed, detail, .. } in self.0.iter().filter(|here| here.agent == remote.path) {
            let Some(followed) = followed else {
                unnamed_here += usize::from(facts.state != COMPLETED);
                continue;
            };
            if followed.agent != remote.name {
                problems.push(format!("{facts:?} of {} follows a task of {}", remote.path, followed.agent));
            }
            if !named.insert(&followed.task) {
                problems.push(format!("task {} of {} is followed by two tasks", followed.task, remote.name));
            }
            let Some(end) = there.0.get(&followed.task) else {
                problems.push(format!("{facts:?} follows {}, which {} does not have", followed.task, remote.name));
                continue;
            };
            let is_told = followed.state.as_ref() == Some(&facts.state) && end.state == facts.state;
            let is_same = is_told && (facts.state != COMPLETED || end.text == facts.text);
            // Ended without the agent's word, which then has nothing to do with it. But a result that is there was lost
            // here, unless the task was canceled meanwhile, or says that it does not know what became of its message.
            let may_have_missed = canceled.contains(&facts.id) || detail.as_deref() == Some("send_unknown");
            let is_lost = end.state == COMPLETED && !may_have_missed;
            let is_own = followed.state.is_none() && facts.state != COMPLETED && !is_lost;
            if !is_same && !is_own {
                problems.push(format!("{facts:?} was told {:?}, and {} has {end:?}", followed.state, remote.name));
            }
            if detail.as_deref() == Some("remote_lost") || remote.is_keyed && detail.as_deref() == Some("send_unknown")
            {
                problems.push(format!("{facts:?} says {detail:?}, and {} forgets nothing", remote.name));
            }
        }
        // The rest belongs to tasks that say that it is not known what became of their message.
        let unnamed = there.0.keys().filter(|task| !named.contains(task)).count();
        if unnamed > unnamed_here {
            let name = remote.name;
            problems.push(format!("{unnamed} tasks of {name} belong to none of the hub's, where {unnamed_here} may"));
        }
        problems
    }
}

impl There {
    pub(super) fn read(connection: &mut Connection) -> io::Result<Self> {
        let mut tasks = BTreeMap::new();
        calls::list_whole(connection, "/a2a", &json!({ "includeArtifacts": true }), |task| {
            let facts = TaskFacts::read(task);
            tasks.insert(facts.id.clone(), facts);
        })?;
        Ok(Self(tasks))
    }

    /// A message of the hub has an id of its own, whatever is repeated: two tasks with the same one are one too many.
    pub(super) fn worked_on_twice(&self, name: &str) -> Problems {
        worked_on_twice(self.0.values(), name)
    }
}

fn worked_on_twice<'a>(tasks: impl Iterator<Item = &'a TaskFacts>, name: &str) -> Problems {
    let mut by_message: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for task in tasks {
        for message in &task.messages {
            by_message.entry(message).or_default().push(&task.id);
        }
    }
    let twice = by_message.into_iter().filter(|(_, tasks)| tasks.len() > 1);
    twice.map(|(message, tasks)| format!("message {message} was worked on twice at {name}, by {tasks:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: &str = "/a2a/left";

    fn here(id: &str, state: &str, followed: Option<(&str, Option<&str>)>) -> Ended {
        at(LEFT, id, state, followed)
    }

    fn at(agent: &'static str, id: &str, state: &str, followed: Option<(&str, Option<&str>)>) -> Ended {
        let remote = followed.map(|(task, state)| json!({ "agent": "left", "taskId": task, "state": state }));
        let task = json!({
            "id": id, "status": { "state": state }, "artifacts": [{ "parts": [{ "text": "hello" }] }],
            "metadata": { "switchboard/remote": remote },
        });
        Ended::read(agent, &task)
    }

    fn there(id: &str, state: &str, text: &str, message: &str) -> (String, TaskFacts) {
        let messages = vec![message.to_owned()];
        (id.to_owned(), TaskFacts { id: id.to_owned(), state: state.to_owned(), text: text.to_owned(), messages })
    }

    fn problems(here: Vec<Ended>, there: Vec<(String, TaskFacts)>) -> usize {
        problems_after(&[], here, there)
    }

    /// The same after clients have canceled some tasks of the hub.
    fn problems_after(canceled: &[&str], here: Vec<Ended>, there: Vec<(String, TaskFacts)>) -> usize {
        let canceled = canceled.iter().map(|task| (*task).to_owned()).collect();
        let address = ([127, 0, 0, 1], 1).into();
        let remote = Remote { name: "left", path: LEFT, address, is_keyed: true, lists_tasks: true };
        let there = There(there.into_iter().collect());
        Ends(here).compare(&remote, &there, &canceled).len() + there.worked_on_twice("left").len()
    }

    #[test]
    fn what_the_hub_tells_of_an_end_is_what_is_there() {
        let (done, canceled) = ("TASK_STATE_COMPLETED", "TASK_STATE_CANCELED");
        let told = |state| here("a", state, Some(("x", Some(state))));
        let found = |state, text| vec![there("x", state, text, "m")];
        assert_eq!(problems(vec![told(done)], found(done, "hello")), 0);
        assert_eq!(problems(vec![told(done)], found(done, "another result")), 1);
        assert_eq!(problems(vec![told(canceled)], found(done, "hello")), 1, "another end");
        assert_eq!(problems(vec![told(done)], Vec::new()), 1, "no task");
        let by_force = || vec![here("a", canceled, Some(("x", None)))];
        assert_eq!(problems(by_force(), found(canceled, "")), 0, "ended by force");
        assert_eq!(problems(by_force(), found(done, "hello")), 1, "nobody has told of the result");
        assert_eq!(problems_after(&["a"], by_force(), found(done, "hello")), 0, "its client has canceled it");
        assert_eq!(problems(vec![here("a", done, Some(("x", None)))], found(done, "hello")), 1, "completed by itself");
        assert_eq!(problems(vec![told(done), told(done)], found(done, "hello")), 1, "one task for two");
    }

    #[test]
    fn what_belongs_to_no_task_of_the_hub_is_found() {
        let (done, failed) = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED");
        let stray = || vec![there("x", done, "hello", "m")];
        assert_eq!(problems(Vec::new(), stray()), 1);
        assert_eq!(problems(vec![here("a", failed, None)], stray()), 0, "it says that it does not know");
        assert_eq!(problems(vec![at("/a2a/right", "a", failed, None)], stray()), 1, "that was sent to another agent");
        assert_eq!(problems(vec![here("a", done, None)], stray()), 1, "a result from nowhere");
        let twice = vec![there("x", done, "hello", "m"), there("y", done, "hello", "m")];
        let told = here("a", done, Some(("x", Some(done))));
        assert_eq!(problems(vec![told], twice), 2, "worked on twice, and one of them for nothing");
    }
}

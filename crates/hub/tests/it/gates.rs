//! Approval gates: skills that wait for a person before they begin.

mod addresses;
mod cards;
mod decisions;
mod openers;
mod restarts;
mod times;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, TaskId};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{
    AgentScope, Answered, Caller, CallerRole, Error, Hosted, ReviewAnswer, Scopes, Seq, Settings, Verdict,
};
use switchboard_host::config::Config;
use tempfile::TempDir;

use crate::running::{Running, fanout, folder};

/// `ops` does what its text says. Some of its skills are free, `hello` waits for an operator, `hold` for a minute, and every
/// question of `ask` is an operator's. `open` is the same agent without a policy.
const AGENTS: &str = "agents:
  - name: ops
    builtin: probe
    policy:
      onTimeout: reject
      skills:
        hello: { mode: gated, radius: repo }
        data: { mode: notification, radius: project }
        hold: { mode: veto }
        ask: { mode: compound }
  - { name: open, builtin: probe }
";

pub(super) struct Gates {
    pub(super) running: Running,
    pub(super) clock: SimulatedClock,
    data: TempDir,
    files: TempDir,
}

impl Gates {
    pub(super) async fn start() -> Self {
        Self::with(AGENTS, Vec::new(), |_| {}).await
    }

    pub(super) async fn with(agents: &str, own: Vec<Hosted>, change: impl FnOnce(&mut Config)) -> Self {
        Self::restarted(folder(), agents, own, change, &SimulatedClock::at(crate::running::START)).await
    }

    /// With settings of the kernel.
    pub(super) async fn lasting(agents: &str, settings: Settings) -> Self {
        let (data, files, clock) = (folder(), folder(), SimulatedClock::at(crate::running::START));
        write(files.path(), agents);
        let running = Running::beside(data.path(), files.path(), vec![fanout()], &clock, |_| {}, settings).await;
        Self { running, clock, data, files }
    }

    /// A server on what another one has left.
    pub(super) async fn restarted(
        data: TempDir,
        agents: &str,
        mut own: Vec<Hosted>,
        change: impl FnOnce(&mut Config),
        clock: &SimulatedClock,
    ) -> Self {
        let files = folder();
        write(files.path(), agents);
        own.push(fanout());
        let settings = Settings { cancel_grace: Duration::from_secs(1), ..Settings::default() };
        let running = Running::beside(data.path(), files.path(), own, clock, change, settings).await;
        Self { running, clock: clock.clone(), data, files }
    }

    /// The server is killed, and another one begins on what it leaves, with these agents.
    pub(super) async fn killed(self, agents: &str, own: Vec<Hosted>) -> Self {
        let left = crate::health::left_behind(self.data.path());
        let clock = self.clock.clone();
        // What it does from here on nobody sees.
        drop(self);
        Self::restarted(left, agents, own, |_| {}, &clock).await
    }

    /// Serves other agents from now on.
    pub(super) async fn reload(&self, agents: &str, is_read: impl Fn(&Value) -> bool) {
        write(self.files.path(), agents);
        self.running.reload_now.notify_one();
        self.until("/api/agents/ops", "ann", is_read).await;
    }

    pub(super) async fn stop(self) {
        self.running.stop().await;
    }

    /// Sends a message of bob's for a skill; the task as it is once it has stopped.
    pub(super) async fn send(&self, agent: &str, skill: &str, text: &str) -> Value {
        let metadata = if skill.is_empty() { json!({}) } else { json!({ "skill": skill }) };
        let message = json!({ "parts": [{ "text": text }], "metadata": metadata });
        self.running.send_with("bob", agent, message, &[]).await
    }

    /// The same of one that has to wait; its id.
    pub(super) async fn held(&self, skill: &str, text: &str) -> TaskId {
        let task = self.send("ops", skill, text).await;
        assert_eq!(state(&task), "AUTH_REQUIRED", "{skill}: {task}");
        assert_eq!(task["artifacts"], Value::Null, "{task}");
        TaskId::from(task["id"].as_str().unwrap())
    }

    /// Decides the open question, whose number only the log knows.
    pub(super) async fn decide(&self, key: &str, id: &TaskId, verdict: Verdict, text: &str) -> Result<Answered, Error> {
        let scopes = match key {
            "oli" => Scopes { agents: AgentScope::All, role: CallerRole::Operator },
            "ole" => Scopes { agents: AgentScope::Only(vec!["echo".into()]), role: CallerRole::Operator },
            "vic" => Scopes { agents: AgentScope::All, role: CallerRole::Viewer },
            _ => Scopes { agents: AgentScope::All, role: CallerRole::None },
        };
        let by = Caller { id: key.into(), scopes };
        for question in 1..100 {
            let answer = ReviewAnswer { verdict, message: Message::text(Role::User, text) };
            match self.running.engine.answer(&by, id, Seq(question), answer).await {
                Err(Error::QuestionClosed { .. }) => {}
                answered => return answered,
            }
        }
        panic!("no question of {id} is open");
    }

    /// Asks a path again and again until the answer is as a condition says.
    pub(super) async fn until(&self, path: &str, key: &str, is_met: impl Fn(&Value) -> bool) -> Value {
        let last = parking_lot::Mutex::new(Value::Null);
        let waited = tokio::time::timeout(crate::HANG_GUARD, async {
            loop {
                let (_, shown) = self.running.get(path, key).await;
                if is_met(&shown) {
                    return shown;
                }
                *last.lock() = shown;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{path} stays {}", last.lock()))
    }

    /// Ends a turn that runs on: a server that stops waits for it.
    pub(super) async fn cancel(&self, id: &TaskId) -> Value {
        self.running.post(&format!("/a2a/ops/tasks/{id}:cancel"), "bob", &json!({})).await.1
    }

    /// The task once it is in a state.
    pub(super) async fn reach(&self, id: &TaskId, wanted: &str) -> Value {
        let path = format!("/a2a/tasks/{id}");
        self.until(&path, "bob", |task| state(task) == wanted).await
    }

    /// The same while seconds pass.
    pub(super) async fn reach_in_time(&self, id: &TaskId, wanted: &str) -> Value {
        let path = format!("/a2a/tasks/{id}");
        self.until(&path, "bob", |task| {
            self.clock.advance(Duration::from_secs(1));
            state(task) == wanted
        })
        .await
    }
}

/// Whole or not at all: the server reads whenever it likes.
fn write(folder: &Path, agents: &str) {
    let whole = folder.join("written");
    std::fs::write(&whole, agents).unwrap();
    std::fs::rename(whole, folder.join("agents.yaml")).unwrap();
}

pub(super) fn state(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    state.strip_prefix("TASK_STATE_").unwrap_or(state)
}

pub(super) fn text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

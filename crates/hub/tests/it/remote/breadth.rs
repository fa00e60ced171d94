//! A tree of tasks over two servers: each of them counts what is below its own root, and refuses what is too much.

use switchboard_a2a::{Message, Part, Role};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{
    Agent, AgentError, Call, CallError, DelegationLimits, Error, Hosted, Manifest, SendResult, Settings, TaskHandle,
    Turn,
};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;

use super::depth::ended;
use crate::running::{Running, START, folder};

/// Calls an agent so many times at once and says what came of it.
struct Splitter {
    to: &'static str,
    count: usize,
}

impl Agent for Splitter {
    fn manifest(&self) -> Manifest {
        Manifest::new("Splitter", "Calls another agent many times")
    }

    async fn run(&self, _: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.working().await?;
        let (mut begun, mut refused) = (Vec::new(), Vec::new());
        for _ in 0..self.count {
            match task.call(Call::new(self.to, Message::text(Role::User, "go"))).await {
                Ok(called) => begun.push(called),
                Err(CallError::Refused(Error::Delegation(why))) => {
                    refused.push(format!("{}: {}", why.kind.as_str(), why.problem));
                }
                Err(CallError::Refused(error)) => return Err(AgentError::new(error.to_string())),
                Err(CallError::Stopped(stopped)) => return Err(stopped.into()),
            }
        }
        let mut told = Vec::new();
        for called in begun {
            let ended = task.release_permit_while(called.end()).await?;
            let SendResult::Task(ended) = ended.map_err(|error| AgentError::new(error.to_string()))? else { continue };
            let ended = ended.into_task().map_err(|error| AgentError::new(error.to_string()))?;
            let said = ended.artifacts.iter().flat_map(|made| &made.parts).filter_map(Part::as_text);
            told.push(format!("[{}]", said.collect::<String>()));
        }
        Ok(task.complete_with(format!("{} {}", told.concat(), refused.join("; "))).await?)
    }
}

struct Leaf;

impl Agent for Leaf {
    fn manifest(&self) -> Manifest {
        Manifest::new("Leaf", "Calls nobody")
    }

    async fn run(&self, _: Turn, task: TaskHandle) -> Result<(), AgentError> {
        Ok(task.complete_with("leaf").await?)
    }
}

/// How many tasks an agent has had, by the page of all tasks.
async fn count(running: &Running, agent: &str) -> usize {
    let (status, page) = running.get(&format!("/api/tasks?agent={agent}&pageSize=100"), "ann").await;
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_tree_over_two_servers_has_so_many_tasks_at_each_and_the_next_one_is_refused_before_it_starts() {
    let (data, files, clock) = ([folder(), folder()], [folder(), folder()], SimulatedClock::at(START));
    let limited = |max_tree: usize| Settings {
        delegation: DelegationLimits { max_tree, ..DelegationLimits::default() },
        ..Settings::default()
    };
    let change = |config: &mut Config| config.hub.projector.flush = TimeSpan::ZERO;
    std::fs::write(files[1].path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let own = vec![Hosted::new("far", Splitter { to: "leaf", count: 3 }), Hosted::new("leaf", Leaf)];
    let second = Running::beside(data[1].path(), files[1].path(), own, &clock, change, limited(3)).await;
    let far = format!("http://{}/a2a/far", second.address);
    let agents = format!("agents:\n  - name: far\n    url: {far}\n    headers: {{ Authorization: Bearer ann }}\n");
    std::fs::write(files[0].path().join("agents.yaml"), agents).unwrap();
    let own = vec![Hosted::new("root", Splitter { to: "far", count: 4 })];
    let first = Running::beside(data[0].path(), files[0].path(), own, &clock, change, limited(4)).await;

    let task = ended(&first, &clock, "root").await;
    let told = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    let below = "[[leaf][leaf] delegation_breadth: a tree of tasks has at most 3 tasks (delegation.maxTree)]";
    let here = "delegation_breadth: a tree of tasks has at most 4 tasks (delegation.maxTree)";
    assert_eq!(told, format!("{} {here}", below.repeat(3)));
    // What was refused has begun nothing, at neither server.
    let counts = [count(&first, "root").await, count(&first, "far").await];
    assert_eq!((counts, [count(&second, "far").await, count(&second, "leaf").await]), ([1, 3], [3, 6]));
    let (_, tree) = first.get(&format!("/api/tasks/{}/tree", task["id"].as_str().unwrap()), "ann").await;
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(3), "{tree}");
    assert_eq!(DelegationLimits::default().max_tree, 1_000);
    first.stop().await;
    second.stop().await;
}

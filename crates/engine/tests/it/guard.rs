//! The guard of delegation: loops, depth, breadth and who may call whom, here and across servers.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Json, Message, Metadata, Task, TaskState};
use switchboard_engine::reason::REASON_DETAIL_KEY;
use switchboard_engine::*;

use crate::kernel::*;

/// Calls the first agent that its text names, with the rest of the text, and ends with what comes of it: its own name before
/// the other's words, or why it was refused.
fn relay() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let text = turn.text();
        let Some((to, rest)) = text.split_once(' ') else {
            return Ok(task.complete_with(task.agent().as_str()).await?);
        };
        let (to, skill) = to.split_once('/').map_or((to, None), |(to, skill)| (to, Some(skill.to_owned())));
        let words = match task.call(Call { skill, ..Call::new(to, message(rest)) }).await {
            Ok(called) => status_text(&end(&task, &called).await?),
            Err(CallError::Refused(Error::Delegation(refused))) => {
                format!("{}: {}", refused.kind.as_str(), refused.problem)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(task.complete_with(format!("{} {words}", task.agent())).await?)
    })
}

async fn end(task: &TaskHandle, called: &Called) -> Result<Task, AgentError> {
    let failed = |error: Error| AgentError::new(error.to_string());
    match task.release_permit_while(called.end()).await?.map_err(failed)? {
        SendResult::Task(ended) => ended.into_task().map_err(failed),
        SendResult::Message(_) => Err(AgentError::new("a message instead of a task")),
    }
}

fn limited(delegation: DelegationLimits) -> Settings {
    Settings { delegation, ..Settings::default() }
}

fn kernel(folder: &tempfile::TempDir, names: &[&'static str], settings: Settings) -> Kernel {
    Kernel::serving_all(folder.path(), names.iter().map(|name| Hosted::new(*name, relay())).collect(), settings)
}

async fn say(kernel: &Kernel, agent: &str, text: &str) -> String {
    status_text(&answer_task(&kernel.send_to(agent, text).await.unwrap()).await)
}

#[test]
fn a_loop_and_a_chain_that_is_too_deep_are_refused_and_the_caller_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = kernel(&folder, &["a", "b", "~own"], limited(DelegationLimits::default()));
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let seen = refusals.clone();
    kernel.engine.on_refusal(Box::new(move |refused, caller| {
        assert_eq!(caller.as_str(), "local");
        seen.lock().push((refused.kind, refused.chain.clone()));
    }));
    kernel.run(async {
        assert_eq!(say(&kernel, "a", "b a b end").await, "a b a b", "an agent may be asked back");
        let looped = say(&kernel, "a", "b a b a end").await;
        let expected = "a b a b delegation_loop: agent a is in the chain 2 times, and may be 2 times \
                        (delegation.revisit); the chain is a → b → a → b → a";
        assert_eq!(looped, expected);
        assert_eq!(refusals.lock().as_slice(), [(RefusalKind::Loop, ["a", "b", "a", "b"].map(str::to_owned).to_vec())]);
        let owned = kernel.send_to("a", "~own end").await.unwrap();
        assert!(status_text(&answer_task(&owned).await).contains("no agent \"~own\" here"), "no caller names it");
    });
    kernel.kill();
    let folder = tempfile::tempdir().unwrap();
    let limits = DelegationLimits { revisit: 100, ..DelegationLimits::default() };
    let kernel = self::kernel(&folder, &["a"], limited(limits));
    kernel.run(async {
        let names = |count: usize| format!("{}end", "a ".repeat(count));
        assert_eq!(say(&kernel, "a", &names(11)).await, names(12).trim_end_matches(" end"), "twelve deep");
        let deeper = say(&kernel, "a", &names(12)).await;
        assert!(deeper.contains("delegation_depth: agent a would be task 13 of a chain of at most 12"), "{deeper}");
    });
}

#[test]
fn an_agent_calls_only_those_that_its_list_names() {
    let folder = tempfile::tempdir().unwrap();
    let delegates = ["b", "c/review", "remote:*"].map(|entry| entry.parse().unwrap());
    let limits = LimitOverrides { max_depth: Some(3), ..LimitOverrides::default() };
    let delegation = AgentDelegation { delegates: Delegates::Only(delegates.to_vec()), limits };
    let switches = Switches { delegation, ..Switches::default() };
    let elsewhere = Served::new(relay().with(|manifest| manifest.execution = Execution::Remote));
    let agents = vec![
        Hosted::serving("a", Served::new(relay()).switches(switches)),
        Hosted::new("b", relay()),
        Hosted::new("c", relay()),
        Hosted::serving("far", elsewhere),
    ];
    let kernel = Kernel::serving_all(folder.path(), agents, Settings::default());
    kernel.run(async {
        for (text, answer) in [("b end", "a b"), ("c/review end", "a c"), ("far end", "a far"), ("b a b end", "a b a ")]
        {
            let told = say(&kernel, "a", text).await;
            assert!(told.starts_with(answer), "{text}: {told}");
            assert_eq!(told.contains("a chain of at most 3"), text == "b a b end", "its own limit: {told}");
        }
        for refused in ["c end", "c/deploy end", "a end"] {
            let told = say(&kernel, "a", refused).await;
            assert!(told.contains("delegation_not_allowed: agent a may not call"), "{refused}: {told}");
        }
    });
    for bad in ["", "remote:x", "A", "a/", "~fanout", "a b"] {
        assert!(bad.parse::<Delegate>().is_err(), "{bad}");
    }
}

#[test]
fn the_key_that_pays_must_allow_a_call_where_both_are_asked() {
    struct OneKey(Mutex<Option<AgentScope>>);
    impl Callers for OneKey {
        fn find(&self, id: &CallerId) -> Option<Caller> {
            let agents = self.0.lock().clone()?;
            Some(Caller { id: id.clone(), scopes: Scopes { agents, role: CallerRole::None } })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { delegation_scope: DelegationScope::Both, ..Settings::default() };
    let kernel = kernel(&folder, &["a", "b"], settings);
    let key = Arc::new(OneKey(Mutex::new(Some(AgentScope::Only(vec!["a".into(), "b".into()])))));
    kernel.engine.set_callers(key.clone());
    kernel.run(async {
        assert_eq!(say(&kernel, "a", "b end").await, "a b");
        for scope in [Some(AgentScope::Only(vec!["a".into()])), None] {
            *key.0.lock() = scope;
            let told = say(&kernel, "a", "b end").await;
            assert!(
                told.contains("delegation_not_allowed: the key local, which pays for this, may not call b"),
                "{told}"
            );
        }
    });
}

/// Starts as many children as its text says, all at a time, and says how many began and why the others did not.
fn splitter() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let count: usize = turn.text().parse().unwrap_or(0);
        let calls = (0..count).map(|number| task.call(Call::new(AGENT, message("leaf")).keyed(number.to_string())));
        let (mut begun, mut refused) = (Vec::new(), std::collections::BTreeSet::new());
        for (number, outcome) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
            match outcome {
                Ok(_) => begun.push(number),
                Err(error) => drop(refused.insert(error.to_string())),
            }
        }
        let again = match begun.first() {
            None => 0,
            Some(number) => {
                usize::from(task.call(Call::new(AGENT, message("leaf")).keyed(number.to_string())).await.is_ok())
            }
        };
        let begun = begun.len();
        let refused: Vec<_> = refused.into_iter().collect();
        Ok(task.complete_with(format!("{begun} {again} {}", refused.join("; "))).await?)
    })
}

#[test]
fn a_task_and_a_tree_start_so_many_tasks_and_no_more() {
    let usual = DelegationLimits { max_children: 2_000, ..DelegationLimits::default() };
    let narrow = DelegationLimits { max_children: 3, ..DelegationLimits::default() };
    for (limits, count, told) in [
        // With the root that is a thousand tasks; a key that is repeated joins its task and is not counted again.
        (usual, "1001", "999 1 a tree of tasks has at most 1000 tasks (delegation.maxTree)"),
        (narrow, "4", "3 1 a task starts at most 3 tasks (delegation.maxChildren)"),
        (narrow, "3", "3 1 "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::with_settings(folder.path(), splitter(), limited(limits));
        kernel.run(async { assert_eq!(status_text(&answer_task(&kernel.send(count).await).await), told) });
    }
}

fn with_chain(text: &str, chain: &DelegationChain) -> Message {
    let mut metadata = Metadata::default();
    metadata.insert(CHAIN_KEY, Json::from_serialize(chain).unwrap());
    Message { metadata: Some(metadata), ..message(text) }
}

/// Hands its text to agent `a` of another server, as an agent for that server does.
fn bridge(other: Arc<Mutex<Option<Engine>>>) -> Script {
    Script::new(move |turn: Turn, task: TaskHandle| {
        let other = other.lock().clone();
        async move {
            let failed = |error: Error| AgentError::new(error.to_string());
            let chain = task.delegation_chain().await.map_err(failed)?;
            let Some(other) = other else { return Err(AgentError::new("not connected")) };
            let address = Address::Agent("a".into());
            let incoming = IncomingMessage { address, ..request(with_chain(&turn.text(), &chain)) };
            let routed = other.route(&Caller::local(), incoming).await.map_err(failed)?;
            let sent = other.send(routed).await.map_err(failed)?;
            let ended = task.release_permit_while(answer_task(&sent)).await?;
            let detail = ended.metadata.as_ref().and_then(|metadata| metadata.get(REASON_DETAIL_KEY));
            let detail = detail.map(|detail| detail.as_str().to_owned()).unwrap_or_default();
            let words = status_text(&ended);
            Ok(task.complete_with(format!("⇒ {}{detail} {words}", state_label(ended.status.state))).await?)
        }
    })
}

#[test]
fn a_loop_between_two_servers_is_refused_by_the_server_that_closes_it() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let links: [Arc<Mutex<Option<Engine>>>; 2] = Default::default();
    let serve = |index: usize| {
        let agents = vec![Hosted::new("a", relay()), Hosted::new("bridge", bridge(links[index].clone()))];
        Kernel::serving_all(folders[index].path(), agents, Settings::default())
    };
    let (first, second) = (serve(0), serve(1));
    *links[0].lock() = Some(second.engine.clone());
    *links[1].lock() = Some(first.engine.clone());
    assert_ne!(first.engine.node_id(), second.engine.node_id());
    first.run(async {
        assert_eq!(say(&first, "a", "bridge end").await, "a ⇒ completed a");
        let back = say(&first, "a", "bridge bridge bridge end").await;
        assert_eq!(back, "a ⇒ completed a ⇒ completed a ⇒ completed a", "each has been asked back once");
        let looped = say(&first, "a", "bridge bridge bridge bridge end").await;
        assert!(looped.contains(r#"rejected"delegation_loop" agent a is in the chain 2 times"#), "{looped}");
        assert!(looped.contains("the chain is a → bridge → a@"), "{looped}");
    });
    *links[0].lock() = None;
    *links[1].lock() = None;
}

#[test]
fn a_forged_chain_gains_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (script, runs) = relay().counted();
    let kernel = Kernel::serving_all(folder.path(), vec![Hosted::new("a", script)], Settings::default());
    let node = kernel.engine.node_id().to_owned();
    let root = ChainRoot { node: node.clone(), task: "somebody-elses".to_owned() };
    let hop = |node: &str, agent: &str| Hop { node: node.into(), agent: agent.into(), task: "t".into() };
    let chain = |hops: Vec<Hop>| DelegationChain { root: root.clone(), hops, deadline: None, more: Default::default() };
    kernel.run(async {
        // A claim to be part of another caller's tree begins a tree of one's own.
        let sent = kernel.try_send(with_chain("end", &chain(vec![hop(&node, "boss")]))).await.unwrap();
        assert_eq!(answer_task(&sent).await.status.state, TaskState::Completed);
        // Claims count against the caller that makes them, also in the tasks that its task starts.
        let longer = kernel.try_send(with_chain("a end", &chain(vec![hop(&node, "a")]))).await.unwrap();
        let words = status_text(&answer_task(&longer).await);
        assert!(words.contains("delegation_loop") && words.contains("the chain is a → a → a"), "{words}");
        let visited = with_chain("end", &chain(vec![hop(&node, "a"), hop("n2", "a"), hop(&node, "a")]));
        let deep = with_chain("end", &chain(vec![hop("n2", "x"); 12]));
        for (claim, word) in [(visited, "delegation_loop"), (deep, "delegation_depth")] {
            let sent = kernel.try_send(claim).await.unwrap();
            let task = kernel.get(sent.id()).await.unwrap();
            assert_eq!(task.status.state, TaskState::Rejected);
            let detail = task.metadata.as_ref().unwrap().get(REASON_DETAIL_KEY).unwrap().as_text().unwrap();
            assert_eq!((reason(&task).as_str(), detail.as_str()), ("rejected", word));
            assert_eq!(kernel.log(sent.id()).await.len(), 1, "no agent has begun");
        }
        runs.until_none(|| ()).await;
    });
    let id = kernel.run(async {
        let deep = with_chain("end", &chain(vec![hop("n2", "x"); 12]));
        kernel.try_send(deep).await.unwrap().id().clone()
    });
    kernel.kill();
    let kernel = Kernel::serving_all(folder.path(), vec![Hosted::new("a", relay())], Settings::default());
    kernel.run(async {
        assert_eq!(kernel.engine.node_id(), node, "made once");
        assert_eq!(kernel.get(&id).await.unwrap().status.state, TaskState::Rejected);
    });
}

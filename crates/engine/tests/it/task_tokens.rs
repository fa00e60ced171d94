//! Task tokens: what a program that works on a task may do with one, and for how long.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::store::ListFilter;
use switchboard_engine::*;

use crate::kernel::*;
use crate::races::Dice;

/// How many interleavings of calls and ends of their turn are tried.
const ROUNDS: u64 = 300;

/// The tokens that were issued, in order.
type Tokens = Arc<Mutex<Vec<String>>>;

/// Asks for a token and does as its text says: `hold` works until it is canceled, `paid` too and says that it costs, `ask`
/// asks, `trace` tells its trace, the rest ends at once.
fn holder(tokens: &Tokens) -> Script {
    let tokens = tokens.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let tokens = tokens.clone();
        async move {
            let issued = task.issue_token().await?;
            tokens.lock().extend(issued);
            task.working().await?;
            let text = turn.text();
            match text.as_str() {
                "hold" | "paid" => {
                    if text == "paid" {
                        task.usage(Usage { cost_usd: 0.25, ..Usage::default() }).await?;
                    }
                    task.canceled().await;
                    Err(Stopped::Canceled.into())
                }
                "trace" => {
                    let trace = turn.trace.as_deref().cloned().unwrap_or_default();
                    let traceparent = trace.traceparent.as_ref().map(Traceparent::as_str);
                    Ok(task.complete_with(format!("{:?} {traceparent:?}", trace.correlation_id)).await?)
                }
                "ask" => Ok(task.complete_with(task.ask("which?").await?.joined_text()).await?),
                _ => Ok(task.complete_with("done").await?),
            }
        }
    })
    .recovering(Recovery::Resume)
}

fn serving(folder: &tempfile::TempDir, tokens: &Tokens, settings: Settings) -> Kernel {
    let delegates = Delegates::Only(vec!["helper".parse().unwrap(), "skilled/fold".parse().unwrap()]);
    let delegation = AgentDelegation { delegates, ..AgentDelegation::default() };
    let switches = Switches { delegation, ..Switches::default() };
    let coder = Hosted::serving("coder", Served::new(holder(tokens)).switches(switches));
    let none = AgentDelegation { delegates: Delegates::Only(Vec::new()), ..AgentDelegation::default() };
    let switches = Switches { delegation: none, ..Switches::default() };
    let helper = Hosted::serving("helper", Served::new(holder(tokens)).switches(switches.clone()));
    let skilled = Hosted::serving("skilled", Served::new(holder(tokens)).switches(switches.clone()));
    let other = Hosted::serving("other", Served::new(holder(tokens)).switches(switches));
    Kernel::serving_all(folder.path(), vec![coder, helper, skilled, other], settings)
}

async fn token(kernel: &Kernel, tokens: &Tokens, text: &str) -> (TaskId, String) {
    let known = tokens.lock().len();
    let task = kernel.send_to("coder", text).await.unwrap();
    kernel.reach(task.id(), TaskState::Working).await;
    let token = tokens.lock().get(known).cloned().expect("a token");
    (task.id().clone(), token)
}

fn caller(kernel: &Kernel, token: &str) -> Option<Caller> {
    kernel.engine.task_caller(token).map(|(caller, _)| caller)
}

/// Waits until a child of the agent is in a state.
async fn reach_child(kernel: &Kernel, id: &TaskId, state: TaskState) {
    let id_of_agent = Caller { id: "~coder@local".into(), ..Caller::local() };
    loop {
        let task = kernel.engine.get(&Address::Root, &id_of_agent, id).await.unwrap().into_task().unwrap();
        if task.status.state == state {
            return;
        }
        assert!(!task.status.state.is_terminal(), "ended as {:?}", task.status.state);
        tokio::task::yield_now().await;
    }
}

async fn call(kernel: &Kernel, caller: &Caller, to: &str, text: &str) -> Result<Submitted, Error> {
    let incoming = IncomingMessage { address: Address::Agent(to.into()), ..request(message(text)) };
    let routed = kernel.engine.route(caller, incoming).await?;
    kernel.engine.send(routed).await
}

#[test]
fn a_call_under_a_token_is_a_child_and_the_token_sees_nothing_else() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let kernel = serving(&folder, &tokens, Settings::default());
    kernel.run(async {
        let (parent, token) = token(&kernel, &tokens, "hold").await;
        let (other_parent, other_token) = self::token(&kernel, &tokens, "hold").await;
        let own = caller(&kernel, &token).expect("the run goes on");
        assert_eq!(own.id.as_str(), "~coder@local");
        assert_eq!(own.scopes.role, CallerRole::None);
        let child = call(&kernel, &own, "helper", "hold").await.unwrap();
        reach_child(&kernel, child.id(), TaskState::Working).await;
        assert_eq!(tokens.lock().len(), 2, "an agent that delegates to none gets no token");
        let live = kernel.engine.live_tasks(ids::TaskKey(0), 10).await.unwrap();
        let row = |id: &TaskId| live.iter().find(|task| task.task.id == *id).unwrap();
        let above = row(child.id()).task.lineage.ancestors.unwrap();
        assert_eq!((above.parent, above.root), (row(&parent).key, row(&parent).key));
        assert_eq!(row(child.id()).task.payer().as_str(), "local");

        let (root, other) = (Address::Root, caller(&kernel, &other_token).unwrap());
        kernel.engine.get(&root, &own, child.id()).await.unwrap();
        let page = kernel.engine.list(&root, &own, ListFilter { page_size: 10, ..ListFilter::default() });
        assert_eq!(page.await.unwrap().total, 1);
        let page = kernel.engine.list(&root, &other, ListFilter { page_size: 10, ..ListFilter::default() });
        assert_eq!(page.await.unwrap().total, 0, "the same agent and payer, another task");
        for (who, id) in [(&own, &parent), (&own, &other_parent), (&other, child.id())] {
            assert!(matches!(kernel.engine.get(&root, who, id).await, Err(Error::TaskNotFound(_))));
            assert!(matches!(kernel.engine.cancel(&root, who, id).await, Err(Error::TaskNotFound(_))));
        }
        for to in ["other", "coder"] {
            assert!(call(&kernel, &own, to, "x").await.is_err(), "{to} is none of its delegates");
        }
        let refused = call(&kernel, &own, "skilled", "x").await.map(drop).unwrap_err();
        assert!(matches!(&refused, Error::Delegation(refused) if refused.kind == RefusalKind::NotAllowed), "{refused}");

        kernel.cancel(&parent).await.unwrap();
        reach_child(&kernel, child.id(), TaskState::Canceled).await;
        assert!(caller(&kernel, &token).is_none(), "the run is over");
        assert!(call(&kernel, &own, "helper", "late").await.is_err(), "also for a request that was let in before");
        kernel.cancel(&other_parent).await.unwrap();
    });
}

#[test]
fn a_forged_token_is_no_token() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let kernel = serving(&folder, &tokens, Settings::default());
    kernel.run(async {
        let (parent, token) = token(&kernel, &tokens, "hold").await;
        let (signed, tag) = token.rsplit_once('.').unwrap();
        let last = if tag.ends_with('0') { "1" } else { "0" };
        let changed = format!("{signed}.{}{last}", &tag[..tag.len() - 1]);
        let other_task = token.replacen(parent.as_str(), TaskId::generate().as_str(), 1);
        for forged in [changed, other_task, "swt_".to_owned(), format!("{token}0"), token.to_uppercase()] {
            assert!(caller(&kernel, &forged).is_none(), "{forged}");
        }
        assert!(caller(&kernel, &token).is_some());
        kernel.cancel(&parent).await.unwrap();
    });
}

#[test]
fn an_answer_leaves_the_token_of_the_run_good_and_its_end_does_not() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let kernel = serving(&folder, &tokens, Settings::default());
    kernel.run(async {
        let known = tokens.lock().len();
        let task = kernel.send_to("coder", "ask").await.unwrap();
        kernel.reach(task.id(), TaskState::InputRequired).await;
        let token = tokens.lock()[known].clone();
        assert!(caller(&kernel, &token).is_some());
        kernel.say(task.id(), "this").await.unwrap();
        kernel.reach(task.id(), TaskState::Completed).await;
        assert!(caller(&kernel, &token).is_none());
    });
}

#[test]
fn a_turn_whose_program_waits_for_a_child_leaves_its_permit_to_it() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let settings = Settings { running_tasks: 1, ..Settings::default() };
    let kernel = serving(&folder, &tokens, settings);
    kernel.run(async {
        let (parent, token) = token(&kernel, &tokens, "hold").await;
        let own = caller(&kernel, &token).unwrap();
        for _ in 0..3 {
            let child = call(&kernel, &own, "helper", "quick").await.unwrap();
            assert_eq!(answer_task(&child).await.status.state, TaskState::Completed);
        }
        kernel.cancel(&parent).await.unwrap();
    });
}

/// Whichever comes first, the end of the turn or the call: no child is alive afterwards.
#[test]
fn a_child_ends_with_the_turn_that_called_it_in_every_order() {
    for seed in 0..ROUNDS {
        let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
        let kernel = serving(&folder, &tokens, Settings::default());
        kernel.run(async {
            let dice = Dice::seeded(seed);
            let (parent, token) = token(&kernel, &tokens, "hold").await;
            let own = caller(&kernel, &token).unwrap();
            let (before_call, before_cancel) = (dice.roll(40), dice.roll(40));
            let calling = async {
                yields(before_call).await;
                call(&kernel, &own, "helper", "hold").await.map(drop)
            };
            let canceling = async {
                yields(before_cancel).await;
                kernel.cancel(&parent).await.map(drop)
            };
            let (_, canceled) = tokio::join!(calling, canceling);
            canceled.unwrap();
            while !kernel.engine.live_tasks(ids::TaskKey(0), 10).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        });
    }
}

async fn yields(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_recovered_run_has_a_new_token_and_none_of_the_children_of_the_one_before() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let kernel = serving(&folder, &tokens, Settings::default());
    let (parent, before, child) = kernel.run(async {
        let (parent, token) = token(&kernel, &tokens, "hold").await;
        let own = caller(&kernel, &token).unwrap();
        let child = call(&kernel, &own, "helper", "paid").await.unwrap();
        reach_child(&kernel, child.id(), TaskState::Working).await;
        (parent, token, child.id().clone())
    });
    kernel.kill();
    let kernel = serving(&folder, &tokens, Settings::default());
    kernel.run(async {
        reach_child(&kernel, &child, TaskState::Canceled).await;
        // The children end before the run that has none of them begins.
        while tokens.lock().len() < 2 {
            tokio::task::yield_now().await;
        }
        let after = tokens.lock().last().cloned().unwrap();
        assert_ne!(before, after);
        assert!(caller(&kernel, &before).is_none());
        assert!(caller(&kernel, &after).is_some());
        let canceled = kernel.cancel(&parent).await.unwrap();
        let usage = canceled.metadata.as_ref().and_then(|all| all.get(fold::USAGE_KEY)).expect("the child's");
        let usage: serde_json::Value = usage.read().unwrap();
        assert_eq!((&usage["own"]["costUsd"], &usage["tree"]["costUsd"]), (&0.0.into(), &0.25.into()), "{usage}");
    });
}

#[test]
fn a_token_is_good_until_the_deadline_of_its_task() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    // Less than the sweep's period, so that nothing but the token's own expiry refuses it.
    let deadline = Duration::from_millis(500);
    let kernel = serving(&folder, &tokens, Settings { deadline: Some(deadline), ..Settings::default() });
    kernel.run(async {
        let task = kernel.send_to("coder", "ask").await.unwrap();
        kernel.reach(task.id(), TaskState::InputRequired).await;
        let token = tokens.lock()[0].clone();
        let last = Duration::from_millis(1);
        kernel.clock.advance(deadline - last);
        assert!(caller(&kernel, &token).is_some());
        kernel.clock.advance(last);
        assert!(caller(&kernel, &token).is_none());
    });
}

#[test]
fn what_a_program_does_not_say_of_its_trace_is_that_of_its_task() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::default());
    let kernel = serving(&folder, &tokens, Settings::default());
    let traced = |correlation_id: Option<&str>, traceparent: Option<&str>| {
        let traceparent = traceparent.and_then(Traceparent::parse);
        let correlation_id = correlation_id.map(str::to_owned);
        Some(Arc::new(TraceContext { correlation_id, traceparent, ..TraceContext::default() }))
    };
    let of_task = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let of_program = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    kernel.run(async {
        let incoming = |to: &str, text: &str, trace| IncomingMessage {
            address: Address::Agent(to.into()),
            trace,
            ..request(message(text))
        };
        let root = incoming("coder", "hold", traced(Some("order-17"), Some(of_task)));
        let root = kernel.send_as(&Caller::local(), root).await.unwrap();
        kernel.reach(root.id(), TaskState::Working).await;
        let own = caller(&kernel, &tokens.lock()[0].clone()).unwrap();
        for (told, expected) in [
            (None, ("order-17", of_task)),
            (traced(Some("mine"), None), ("mine", of_task)),
            (traced(None, Some(of_program)), ("order-17", of_program)),
            (traced(Some("mine"), Some(of_program)), ("mine", of_program)),
        ] {
            let child = kernel.send_as(&own, incoming("helper", "trace", told)).await.unwrap();
            let (correlation_id, traceparent) = expected;
            let expected = format!("Some({correlation_id:?}) Some({traceparent:?})");
            assert_eq!(status_text(&answer_task(&child).await), expected);
        }
        kernel.cancel(root.id()).await.unwrap();
    });
}

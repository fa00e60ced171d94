//! Tasks that wait for each other, and say so.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_cli_agents::{Settings, WorktreePolicy};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{
    Address, AgentScope, BLOCKED_BY_KEY, Caller, CallerRole, QUEUE_POSITION_KEY, QUEUE_REASON_KEY, Scopes, Switches,
};

use crate::fixture::Fixture;
use crate::harness::*;

/// Says its prompt and its folder and waits until it may end.
const PATIENT: &str = r#"hear; text "in $(basename "$PWD")"; await end; finish ok"#;

/// When the clock of a test begins, and a minute and a half later.
const BEGAN: &str = "2027-01-15T08:00:00.000Z";
const ASKED: &str = "2027-01-15T08:01:30.000Z";

/// What a task says that waits for another one of its caller.
fn waiting(first: &TaskId, ahead: u32) -> String {
    format!(
        "Waiting: agent coder works in this repository since {BEGAN} ({ahead} ahead). It is task {first}. To stop it: \
         switchboard task cancel coder {first}"
    )
}

/// The same if that one asks.
fn asks(first: &TaskId, since: &str, ahead: u32) -> String {
    format!(
        "Waiting: agent coder works in this repository since {BEGAN} and waits for an answer since {since} ({ahead} \
         ahead). It is task {first}. Answer it: switchboard send coder --task-id {first} ANSWER. Or stop it: switchboard \
         task cancel coder {first}"
    )
}

fn blocked_by(task: &Task) -> Option<Value> {
    task.metadata.as_ref()?.get(BLOCKED_BY_KEY)?.read().ok()
}

fn is_running(task: &Task) -> bool {
    text(task, "assistant-response").is_some()
}

#[test]
fn a_child_that_waits_for_an_answer_keeps_its_place() {
    let fixture = Fixture::new();
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    let settings = Settings { repo_lock: false, ..fixture.settings("hear; ask r1 Bash; hear; finish ok") };
    let harness = Harness::serving(&fixture, settings, switches);
    harness.run(async {
        let asked = harness.send("one").await;
        let second = harness.start("two").await;
        let third = harness.start("three").await;
        for (id, position) in [(&second, "1"), (&third, "2")] {
            let task = harness.get(id).await;
            assert_eq!(task.status.state, TaskState::Submitted);
            let metadata = task.metadata.unwrap();
            assert_eq!(metadata.get(QUEUE_POSITION_KEY).unwrap().as_str(), position);
            let reason = metadata.get(QUEUE_REASON_KEY).unwrap().as_text().unwrap();
            assert_eq!(reason, "the one slot of this agent is taken by a task that waits for an answer");
        }
        assert_eq!(harness.children.running(), 1);
        assert_eq!(harness.reply(&asked, "y").await.status.state, TaskState::Completed);
        harness.until(&second, |task| task.status.state == TaskState::InputRequired).await;
    });
}

#[test]
fn one_task_at_a_time_works_in_a_repository_and_the_others_say_how_many_are_ahead() {
    let fixture = Fixture::new();
    fixture.repository();
    std::fs::create_dir(fixture.work().join("src")).unwrap();
    let settings = Settings { repos: vec![fixture.work()], ..fixture.settings(PATIENT) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let first = harness.start("one").await;
        harness.until(&first, is_running).await;
        let second = harness.start(Said::from("two").with("repo", "src")).await;
        let second = harness.until(&second, |task| task.status.state == TaskState::Working).await;
        assert_eq!(status_text(&second), waiting(&first, 1));
        let third = harness.start("three").await;
        let third = harness.until(&third, |task| task.status.state == TaskState::Working).await;
        assert_eq!(status_text(&third), waiting(&first, 2));
        assert_eq!(harness.children.running(), 1);
        fixture.allow("end");
        for id in [&first, &second.id, &third.id] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
        let prompts = fixture.heard();
        let expected = ["one", "two", "three"].map(|text| format!(r#"{{"kind":"prompt","text":"{text}"}}"#));
        assert_eq!(prompts, expected);
    });
}

#[test]
fn who_waits_for_a_repository_says_whether_the_one_at_work_waits_for_an_answer() {
    let fixture = Fixture::new();
    let program =
        r#"hear; await ask; ask r1 Bash; hear; text on; await "end-$(grep -c prompt "$NOTES/heard")"; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let first = harness.start("one").await;
        harness.wait_for(|| (fixture.heard().len() == 1).then_some(())).await;
        let second = harness.start("two").await;
        harness.until(&second, |task| status_text(task) == waiting(&first, 1)).await;
        harness.clock.advance(Duration::from_secs(90));
        fixture.allow("ask");
        let blocked = harness.until(&second, |task| status_text(task) == asks(&first, ASKED, 1)).await;
        let expected = json!({
            "agent": "coder", "since": BEGAN, "asksSince": ASKED, "taskId": first.as_str(),
            "answer": format!("switchboard send coder --task-id {first} ANSWER"),
            "cancel": format!("switchboard task cancel coder {first}"),
        });
        assert_eq!(blocked_by(&blocked), Some(expected));
        let third = harness.start("three").await;
        harness.until(&third, |task| status_text(task) == asks(&first, ASKED, 2)).await;
        let asked = harness.until(&first, |task| task.status.state == TaskState::InputRequired).await;
        harness.start(Said(switchboard_a2a::Message { task_id: Some(asked.id), ..Said::from("y").0 })).await;
        harness.until(&first, is_running).await;
        harness.until(&second, |task| status_text(task) == waiting(&first, 1)).await;
        harness.until(&third, |task| status_text(task) == waiting(&first, 2)).await;
        fixture.allow("end-1");
        assert_eq!(harness.ended(&first).await.status.state, TaskState::Completed);
        let second = harness.until(&second, |task| task.status.state == TaskState::InputRequired).await;
        assert_eq!(blocked_by(&second), None, "it waits for nothing any more");
        let third = harness.until(&third, |task| status_text(task).contains(second.id.as_str())).await;
        assert_eq!(blocked_by(&third).unwrap()["since"], ASKED, "another one is in the way, and since later");
    });
}

#[test]
fn a_task_that_waits_for_another_callers_says_which_agent_and_since_when_and_operators_see_which_task() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let first = harness.send("the secret work").await.id;
        harness.clock.advance(Duration::from_secs(90));
        let caller = |role, agents| Caller { id: "bob".into(), scopes: Scopes { agents, role } };
        let all = || AgentScope::All;
        let second = harness.send_as(&caller(CallerRole::None, all()), "two").await;
        let read = async |role, agents| {
            let reading = harness.engine.get(&Address::Root, &caller(role, agents), &second).await;
            reading.unwrap().into_task().unwrap()
        };
        let task = loop {
            let task = read(CallerRole::None, all()).await;
            if !status_text(&task).is_empty() {
                break task;
            }
            tokio::task::yield_now().await;
        };
        let said = format!(
            "Waiting: agent coder works in this repository since {BEGAN} and waits for an answer since {BEGAN} (1 ahead). It \
             is another caller's; operators find it with: switchboard task list --all"
        );
        assert_eq!(status_text(&task), said);
        let shown = json!({ "agent": "coder", "since": BEGAN, "asksSince": BEGAN });
        assert_eq!(blocked_by(&task), Some(shown), "the id is its owner's and the operators'");
        assert!(!serde_json::to_string(&task).unwrap().contains(first.as_str()));
        for (role, agents, sees) in [
            (CallerRole::Viewer, all(), false),
            (CallerRole::Operator, all(), true),
            (CallerRole::Operator, AgentScope::Only(vec!["coder".into()]), true),
            (CallerRole::Admin, all(), true),
        ] {
            let about = format!("{role} of {agents:?}");
            let blocked = blocked_by(&read(role, agents).await).unwrap();
            assert_eq!(blocked.get("taskId").is_some_and(|id| id == first.as_str()), sees, "{about}: {blocked}");
        }

        let live = harness.engine.live_tasks(TaskKey(0), 10).await.unwrap();
        let seen: Vec<_> = live.iter().map(|view| (&view.task.id, view.task.owner.as_str(), view.first_words.as_str())).collect();
        assert_eq!(seen, [(&first, "local", "the secret work"), (&second, "bob", "two")]);
        assert_eq!((live[0].state, live[1].state), (TaskState::InputRequired, TaskState::Working));
        assert_eq!(live[1].blocker.as_ref().map(|blocker| &blocker.task), Some(&first));
        assert_eq!(live[0].blocker, None);
        harness.engine.cancel_any(&first).await.unwrap();
        loop {
            let task = read(CallerRole::Admin, all()).await;
            if task.status.state == TaskState::InputRequired {
                assert_eq!(blocked_by(&task), None);
                break;
            }
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_task_that_waits_does_not_repeat_every_question_of_another() {
    let fixture = Fixture::new();
    let program = "hear; for number in $(seq 22); do ask r$number Bash; hear; await go-$number; done
        text on; await end; finish ok";
    let harness = Harness::open(&fixture, fixture.settings(program));
    let asks = |task: &Task| status_text(task).contains("and waits for an answer since");
    harness.run(async {
        let first = harness.send("one").await;
        let second = harness.start("two").await;
        for number in 1..=22 {
            let is_asked = |task: &Task| {
                task.status.state == TaskState::InputRequired && status_text(task).contains(&format!("for r{number}?"))
            };
            harness.until(&first.id, is_asked).await;
            if number <= 20 {
                harness.until(&second, asks).await;
            }
            let yes = switchboard_a2a::Message { task_id: Some(first.id.clone()), ..Said::from("y").0 };
            harness.start(Said(yes)).await;
            harness.until(&second, |task| !asks(task)).await;
            fixture.allow(&format!("go-{number}"));
        }
        harness.until(&first.id, is_running).await;
        harness.cancel(&second).await.unwrap();
        let told = harness.told(&second).await;
        assert_eq!(told.iter().filter(|told| told.contains("and waits for an answer since")).count(), 20, "{told:?}");
    });
}

#[test]
fn a_folder_and_a_repository_below_it_are_not_worked_in_at_once() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.work().join("a")).unwrap();
    let settings = Settings { repos: vec![fixture.work()], ..fixture.settings(PATIENT) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let above = harness.start("one").await;
        harness.until(&above, is_running).await;
        let below = harness.start(Said::from("two").with("repo", "a")).await;
        harness.until(&below, |task| status_text(task).starts_with("Waiting: agent coder works in this")).await;
        let above_again = harness.start("three").await;
        harness.until(&above_again, |task| status_text(task).contains("(2 ahead).")).await;
        assert_eq!(harness.children.running(), 1);
        fixture.allow("end");
        for id in [&above, &below, &above_again] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
    });
}

#[test]
fn other_repositories_and_agents_without_the_lock_do_not_wait() {
    for repo_lock in [true, false] {
        let fixture = Fixture::new();
        for name in ["a", "b"] {
            std::fs::create_dir_all(fixture.work().join(name)).unwrap();
        }
        let settings = Settings { repos: vec![fixture.work()], repo_lock, ..fixture.settings(PATIENT) };
        let harness = Harness::open(&fixture, settings);
        harness.run(async {
            let second = if repo_lock { "b" } else { "a" };
            let first = harness.start(Said::from("one").with("repo", "a")).await;
            let other = harness.start(Said::from("two").with("repo", second)).await;
            harness.until(&first, is_running).await;
            let task = harness.until(&other, is_running).await;
            assert_eq!(text(&task, "assistant-response").unwrap(), format!("in {second}"));
            assert_eq!(harness.children.running(), 2);
            fixture.allow("end");
            harness.ended(&first).await;
            harness.ended(&other).await;
        });
    }
}

#[test]
fn the_tasks_of_one_conversation_work_one_after_the_other() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, Settings { repo_lock: false, ..fixture.settings(PATIENT) });
    harness.run(async {
        let first = harness.start(within("c", "one")).await;
        harness.until(&first, is_running).await;
        let second = harness.start(within("c", "two")).await;
        let waiting = harness.until(&second, |task| task.status.state == TaskState::Working).await;
        assert_eq!(status_text(&waiting), "Waiting: another task of this conversation is running.");
        let elsewhere = harness.start(within("d", "three")).await;
        harness.until(&elsewhere, is_running).await;
        fixture.allow("end");
        for id in [&first, &second, &elsewhere] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
        let prompts = ["one", "three", "two"].map(|text| format!(r#"{{"kind":"prompt","text":"{text}"}}"#));
        assert_eq!(fixture.heard(), prompts, "the second began when the first had ended");
    });
}

#[test]
fn a_message_to_a_task_at_work_is_its_next_turn() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; text on; await end; tell '{\"kind\":\"done\"}'"));
    harness.run(async {
        let id = harness.start("one").await;
        let task = harness.until(&id, is_running).await;
        let more = switchboard_a2a::Message { task_id: Some(task.id.clone()), ..Said::from("two").0 };
        harness.start(Said(more)).await;
        fixture.allow("end");
        let done = harness.ended(&id).await;
        assert_eq!(done.status.state, TaskState::Completed);
        let prompts = fixture.heard();
        let expected = ["one", "two"].map(|text| format!(r#"{{"kind":"prompt","text":"{text}"}}"#));
        assert_eq!(prompts, expected);
        assert_eq!(text(&done, "assistant-response").unwrap(), "on\n\non", "one artifact, two messages");
    });
}

/// The first run ignores the signal that asks it to end; later ones note if it lives.
const STUBBORN: &str = r#"hear; if [ -e "$NOTES/pid" ]; then kill -0 "$(cat "$NOTES/pid")" && note overlap yes; finish ok; exit; fi
    trap '' TERM; note pid $$; text on; while [ ! -e "$NOTES/leave" ]; do sleep 0.02; done"#;

#[test]
fn no_task_is_let_in_while_anything_of_a_canceled_child_is_left() {
    for same_conversation in [true, false] {
        let fixture = Fixture::new();
        let settings = Settings { repo_lock: !same_conversation, ..fixture.settings(STUBBORN) };
        let harness = Harness::patient(&fixture, settings);
        harness.run(async {
            let second = if same_conversation { "c" } else { "d" };
            let first = harness.start(within("c", "one")).await;
            harness.until(&first, is_running).await;
            let second = harness.start(within(second, "two")).await;
            harness.until(&second, |task| status_text(task).starts_with("Waiting:")).await;
            // The kernel's grace is over before the child's is.
            assert_eq!(harness.cancel_at_once(&first).await.status.state, TaskState::Canceled);
            assert_eq!(harness.children.running(), 1, "it still ends");
            fixture.allow("leave");
            assert_eq!(harness.ended(&second).await.status.state, TaskState::Completed);
            assert_eq!(fixture.noted("overlap"), None);
        });
    }
}

#[test]
fn tasks_that_wait_for_others_leave_their_places_to_those_that_can_work() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        std::fs::create_dir_all(fixture.work().join(name)).unwrap();
    }
    let switches = Switches { max_running: Some(2), ..Switches::default() };
    let settings = Settings { repos: vec![fixture.work()], ..fixture.settings(PATIENT) };
    let harness = Harness::serving(&fixture, settings, switches);
    harness.run(async {
        let first = harness.start(within("c", "one").with("repo", "a")).await;
        harness.until(&first, is_running).await;
        let waits = |task: &Task| status_text(task).starts_with("Waiting:");
        let same_repository = harness.start(Said::from("two").with("repo", "a")).await;
        harness.until(&same_repository, waits).await;
        let same_conversation = harness.start(within("c", "three").with("repo", "b")).await;
        harness.until(&same_conversation, waits).await;
        let other = harness.start(Said::from("four").with("repo", "b")).await;
        harness.until(&other, is_running).await;
        fixture.allow("end");
        for id in [&first, &same_repository, &same_conversation, &other] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
    });
}

#[test]
fn tasks_of_a_conversation_work_in_the_order_in_which_they_came() {
    let fixture = Fixture::new();
    let switches = Switches { max_running: Some(4), ..Switches::default() };
    let settings = Settings { repo_lock: false, ..fixture.settings("hear; text on; await end; finish ok") };
    let harness = Harness::serving(&fixture, settings, switches);
    harness.run(async {
        let mut ids = Vec::new();
        for number in 0..12 {
            ids.push(harness.start(within("c", &number.to_string())).await);
        }
        harness.until(&ids[0], is_running).await;
        fixture.allow("end");
        for id in &ids {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
        let expected: Vec<String> = (0..12).map(|number| format!(r#"{{"kind":"prompt","text":"{number}"}}"#)).collect();
        assert_eq!(fixture.heard(), expected);
    });
}

#[test]
fn what_a_canceled_child_writes_at_its_end_is_in_its_branch() {
    let fixture = Fixture::new();
    fixture.repository();
    // What it writes to a closed pipe would end it: the shell tells of commands that a signal has ended.
    let program = "exec 2>/dev/null; trap 'sleep 0.1; echo late > late.txt; exit' TERM; hear; text on
        while :; do sleep 0.02; done";
    let settings = Settings { worktree: WorktreePolicy::Keep, ..fixture.settings(program) };
    let harness = Harness::patient(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, is_running).await;
        harness.cancel_at_once(&id).await;
        let is_removed = || std::fs::read_dir(fixture.data().join("worktrees")).map_or(0, Iterator::count) == 0;
        harness.wait_for(|| (harness.children.running() == 0 && is_removed()).then_some(())).await;
        let committed = fixture.git(&["ls-tree", "-r", "--name-only", &format!("switchboard/{id}")]);
        assert_eq!(committed, "late.txt\nreadme");
    });
}

#[test]
fn who_waits_turns_to_the_task_that_can_be_answered_and_a_like_name_is_another_folder() {
    let fixture = Fixture::new();
    for name in ["a", "a-side", "b"] {
        std::fs::create_dir(fixture.work().join(name)).unwrap();
    }
    let program = r#"hear; case "$PWD" in */b) ask r1 Bash; hear;; esac; text on; await end; finish ok"#;
    let harness = Harness::open(&fixture, Settings { repos: vec![fixture.work()], ..fixture.settings(program) });
    harness.run(async {
        let working = harness.start(Said::from("one").with("repo", "a")).await;
        harness.until(&working, is_running).await;
        let asked = harness.send(Said::from("two").with("repo", "b")).await;
        let above = harness.start("three").await;
        harness.until(&above, |task| status_text(task) == asks(&asked.id, BEGAN, 2)).await;
        let beside = harness.start(Said::from("four").with("repo", "a-side")).await;
        let expected = format!(
            "Waiting: agent coder waits for a part of this repository since {BEGAN} (1 ahead). It is task {above}. To stop \
             it: switchboard task cancel coder {above}"
        );
        harness.until(&beside, |task| status_text(task) == expected).await;
        fixture.allow("end");
        let yes = switchboard_a2a::Message { task_id: Some(asked.id.clone()), ..Said::from("y").0 };
        harness.start(Said(yes)).await;
        for id in [&working, &asked.id, &above, &beside] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
    });
}

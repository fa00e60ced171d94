//! Which agent serves: by address, by target, by skill, by default; and what the agent learns of the caller's routing hints.

use std::sync::Arc;

use switchboard_a2a::{Metadata, TaskState, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};

use crate::faults::Faults;
use crate::kernel::*;

/// An agent of these skills that answers with who it is and what it was told.
fn teller(name: &'static str, skills: &[&str]) -> Hosted {
    let script = Script::new(move |turn: Turn, task: TaskHandle| async move {
        if turn.text() == "ask" {
            task.ask("?").await?;
        }
        let answer = format!("{name} {} {}", turn.skill().unwrap_or("-"), turn.profile().unwrap_or("-"));
        Ok(task.complete_with(answer).await?)
    });
    let tools = skills.iter().map(|skill| Tool { name: (*skill).to_owned(), ..Tool::default() });
    let tools: Vec<_> = tools.collect();
    Hosted::new(name, script.with(|manifest| *manifest = manifest.clone().tools(tools)))
}

/// In this order, so that the order of configuration and that of the names differ.
fn fleet() -> Vec<Hosted> {
    vec![teller("zoe", &["draw", "sing"]), teller("ann", &["sing"]), teller("bob", &["draw", "cook"])]
}

fn metadata(json: &str) -> Option<Metadata> {
    Some(serde_json::from_str(json).unwrap())
}

fn served_by(directory: &FixedDirectory, address: &Address, caller: &Caller, json: &str) -> Result<String, String> {
    let message = switchboard_a2a::Message { metadata: metadata(json), ..message("hi") };
    let hints = RoutingHints::read(address, &message, None).map_err(|error| error.to_string())?;
    let asked = RoutingRequest { message: &message, hints: &hints, last_agent: None, last_decision: None };
    let resolved = directory.resolve(address, caller, Some(asked));
    resolved.map(|resolved| resolved.hosted.name.to_string()).map_err(|error| error.to_string())
}

#[test]
fn at_the_root_a_target_picks_then_a_skill_then_the_default() {
    let directory = FixedDirectory::new(fleet(), Some("bob".into()));
    let caller = Caller::local();
    for (json, expected) in [
        (r#"{}"#, "bob"),
        (r#"{"targets":"zoe"}"#, "zoe"),
        (r#"{"targets":["zed","ann","zoe"],"skill":"draw"}"#, "ann"),
        (r#"{"skill":"draw"}"#, "bob"),
        (r#"{"skill":"sing"}"#, "ann"),
        (r#"{"skillHint":"sing"}"#, "ann"),
        (r#"{"skill":"cook","skillHint":"sing"}"#, "bob"),
        (r#"{"skill":"unheard of"}"#, "bob"),
    ] {
        assert_eq!(served_by(&directory, &Address::Root, &caller, json).as_deref(), Ok(expected), "{json}");
    }
    let unknown = served_by(&directory, &Address::Root, &caller, r#"{"targets":["zed"]}"#).unwrap_err();
    assert!(unknown.contains("zed") && unknown.contains("zoe, ann, bob"), "{unknown}");
    let own = Address::Agent("zoe".into());
    assert_eq!(served_by(&directory, &own, &caller, r#"{"targets":"ann","skill":"cook"}"#).as_deref(), Ok("zoe"));
    let rootless = FixedDirectory::new(fleet(), None);
    assert_eq!(served_by(&rootless, &Address::Root, &caller, r#"{"skill":"draw"}"#).as_deref(), Ok("bob"));
    assert!(served_by(&rootless, &Address::Root, &caller, "{}").is_err());
}

#[test]
fn only_agents_that_the_caller_may_use_are_picked() {
    let directory = FixedDirectory::new(fleet(), Some("bob".into()));
    let only = |names: &[&str]| Caller {
        scopes: Scopes {
            agents: AgentScope::Only(names.iter().map(|name| (*name).into()).collect()),
            role: CallerRole::None,
        },
        ..Caller::local()
    };
    let root = Address::Root;
    assert_eq!(served_by(&directory, &root, &only(&["zoe"]), r#"{"skill":"draw"}"#).as_deref(), Ok("zoe"));
    assert_eq!(served_by(&directory, &root, &only(&["zoe"]), r#"{"targets":["ann","zoe"]}"#).as_deref(), Ok("zoe"));
    let refused = served_by(&directory, &root, &only(&["zoe"]), r#"{"targets":"ann"}"#).unwrap_err();
    assert_eq!(refused, Error::Forbidden("ann".to_owned()).to_string());
    let unknown = served_by(&directory, &root, &only(&["zoe"]), r#"{"targets":"zed"}"#).unwrap_err();
    assert!(!unknown.contains("ann"), "{unknown}");
    let refused = served_by(&directory, &root, &only(&["zoe"]), "{}").unwrap_err();
    assert_eq!(refused, "this key may not call the default agent; name one that it may call", "without its name");
    let refused = served_by(&directory, &Address::Agent("bob".into()), &only(&["zoe"]), "{}").unwrap_err();
    assert_eq!(refused, "this key may not call agent bob");
}

#[test]
fn an_agent_learns_skill_and_profile_and_follow_ups_go_to_their_task() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options {
        durability: Durability::Process,
        max_queue_delay: std::time::Duration::from_secs(3_600),
        ..Options::default()
    };
    let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
    let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
    let directory = Arc::new(FixedDirectory::new(fleet(), Some("bob".into())));
    let started = Engine::start(store, directory, Arc::new(clock.clone()), Settings::default());
    let engine = runtime.block_on(started).unwrap();
    let kernel = Kernel { engine, clock, runtime };
    let caller = Caller::local();
    kernel.run(async {
        let mut send = request(message("hi"));
        send.message.metadata = metadata(r#"{"skillHint":"sing"}"#);
        send.metadata = metadata(r#"{"skill":"cook","profile":"fast"}"#);
        let task = answer_task(&kernel.send_as(&caller, send).await.unwrap()).await;
        assert_eq!(status_text(&task), "ann sing fast", "the message comes before the request");

        let mut ask = request(message("ask"));
        ask.metadata = metadata(r#"{"targets":"zoe"}"#);
        let asked = answer_task(&kernel.send_as(&caller, ask).await.unwrap()).await;
        let mut answer = request(message("here"));
        answer.message.task_id = Some(asked.id.clone());
        answer.metadata = metadata(r#"{"targets":"ann","skill":"cook"}"#);
        let task = answer_task(&kernel.send_as(&caller, answer.clone()).await.unwrap()).await;
        assert_eq!((&task.id, status_text(&task).split(' ').next()), (&asked.id, Some("zoe")));

        for (json, expected) in [("{}", "zoe"), (r#"{"skill":"sing"}"#, "zoe"), (r#"{"skill":"cook"}"#, "bob")] {
            let mut next = request(message("hi"));
            next.message.context_id = Some(asked.context_id.clone());
            next.metadata = metadata(json);
            let task = answer_task(&kernel.send_as(&caller, next).await.unwrap()).await;
            let served_by = status_text(&task).split(' ').next().unwrap().to_owned();
            assert_eq!(served_by, expected, "a conversation stays with its agent, if that has the skill: {json}");
        }

        answer.metadata = metadata(r#"{"profile":["fast"]}"#);
        answer.message.task_id = None;
        for address in [Address::Root, Address::Agent("ann".into())] {
            let refused = kernel.send_as(&caller, IncomingMessage { address, ..answer.clone() }).await.err().unwrap();
            assert!(matches!(refused, Error::Invalid { field: "metadata.profile", .. }), "{refused}");
        }
    });
}

/// Asks, and holds its answer until it is canceled.
fn asker() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        match turn.cause {
            Cause::Begin => task.ask("which?").await.map(drop)?,
            _ => task.canceled().await,
        }
        Ok(())
    })
}

#[test]
fn a_follow_up_at_the_root_to_a_task_that_is_not_in_memory_reads_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    let id = kernel.run(async { answer_task(&kernel.send("begin").await).await.id });
    kernel.kill();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), asker(), Settings::default(), &faults);
    kernel.run(async {
        let answer = request(switchboard_a2a::Message { task_id: Some(id.clone()), ..message("this") });
        let routed = kernel.engine.route(&Caller::local(), answer).await.unwrap();
        assert_eq!(routed.hosted().map(|hosted| hosted.name.as_str()), Some(AGENT));
        assert!(routed.task() == Some(&id) && routed.task_bytes().is_some_and(|bytes| bytes > 0));
        let sent = kernel.engine.send(routed).await.unwrap();
        assert_eq!(sent.id(), &id);
        let SendStream::Task(Subscription { first: Some((_, task)), .. }) =
            sent.stream(StreamEnd::Terminal, None).await
        else {
            panic!("no first frame")
        };
        assert_eq!((task.status.state, task.history.len()), (TaskState::Working, 3));
        assert_eq!((faults.loads(), faults.task_reads()), (1, 1));
    });
}

#[test]
fn a_task_that_changed_and_left_memory_while_it_was_loaded_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    let id = kernel.run(async { answer_task(&kernel.send("begin").await).await.id });
    kernel.kill();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), asker(), Settings::default(), &faults);
    kernel.run(async {
        faults.hold_next_load();
        let engine = kernel.engine.clone();
        let subscribed = {
            let id = id.clone();
            tokio::spawn(async move {
                let (root, caller) = (Address::Root, Caller::local());
                engine.subscribe(&root, &caller, &id, None, |_| StreamEnd::Terminal).await.map(|watched| watched.first)
            })
        };
        faults.until_load_held().await;
        kernel.cancel(&id).await.unwrap();
        faults.release_load();
        let refused = subscribed.await.unwrap().err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("is canceled")), "the subscriber sees the task as it was");
    });
}

#[test]
fn what_was_canceled_while_it_was_loaded_is_shown_as_canceled_to_whoever_looks_in_that_moment() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    let id = kernel.run(async { answer_task(&kernel.send("begin").await).await.id });
    kernel.kill();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), asker(), Settings::default(), &faults);
    let subscribe = || {
        let (engine, id) = (kernel.engine.clone(), id.clone());
        async move {
            let (root, caller) = (Address::Root, Caller::local());
            engine.subscribe(&root, &caller, &id, None, |_| StreamEnd::Terminal).await.map(|watched| watched.first)
        }
    };
    kernel.run(async {
        faults.hold_next_load();
        let first = tokio::spawn(subscribe());
        faults.until_load_held().await;
        kernel.cancel(&id).await.unwrap();
        faults.close_gate();
        faults.release_load();
        // It has loaded the task as it was, and compares it.
        faults.until_held(1).await;
        let opened = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            // Its caller goes away before it has heard.
            first.abort();
            assert!(first.await.unwrap_err().is_cancelled());
            faults.open_gate();
        };
        let (read, subscribed, ()) = tokio::join!(kernel.get(&id), subscribe(), opened);
        assert_eq!(read.unwrap().status.state, TaskState::Canceled);
        let refused = subscribed.err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("is canceled")), "the subscriber sees the task as it was");
    });
}

fn hints(address: &Address, of_message: &str, of_request: &str) -> Result<RoutingHints, Error> {
    let read = |json: &str| serde_json::from_str::<Option<Metadata>>(json).unwrap();
    let message = switchboard_a2a::Message { metadata: read(of_message), ..message("hi") };
    RoutingHints::read(address, &message, read(of_request).as_ref())
}

#[test]
fn hints_of_the_message_come_before_those_of_the_request_and_skill_before_skill_hint() {
    let skill = |message: &str, request: &str| hints(&Address::Root, message, request).unwrap().skill;
    assert_eq!(skill(r#"{"skillHint":"b","skill":"a"}"#, r#"{"skill":"c"}"#).as_deref(), Some("a"));
    assert_eq!(skill(r#"{"skillHint":"b"}"#, r#"{"skill":"c"}"#).as_deref(), Some("b"));
    assert_eq!(skill(r#"{"skill":""}"#, r#"{"skill":null,"skillHint":"d"}"#).as_deref(), Some("d"));
    assert_eq!(skill("null", "null"), None);
    let both = hints(&Address::Root, r#"{"profile":"fast"}"#, r#"{"profile":"slow","targets":"x"}"#).unwrap();
    assert_eq!((both.profile.as_deref(), both.targets), (Some("fast"), vec!["x".into()]));
    let targets = |json: &str| hints(&Address::Root, json, r#"{"targets":["z"]}"#).unwrap().targets;
    assert_eq!(targets(r#"{"targets":"x"}"#), ["x".into()]);
    assert_eq!(targets(r#"{"targets":["x","","y"]}"#), ["x".into(), "y".into()]);
    assert_eq!(targets(r#"{"targets":[]}"#), ["z".into()]);
    let own = hints(&Address::Agent("x".into()), r#"{"targets":["y"]}"#, r#"{"targets":"z"}"#).unwrap();
    assert_eq!(own, RoutingHints::default(), "targets are of use at the root only");
}

#[test]
fn a_hint_of_the_wrong_type_is_named_wherever_it_stands() {
    for (message, request, expected) in [
        (r#"{"skill":7}"#, "null", "message.metadata.skill: must be a string, not 7"),
        (r#"{"skill":"a","skillHint":[]}"#, "null", "message.metadata.skillHint: must be a string, not []"),
        (r#"{"profile":"a"}"#, r#"{"profile":true}"#, "metadata.profile: must be a string, not true"),
        (
            r#"{"targets":["a",1]}"#,
            "null",
            r#"message.metadata.targets: must be the name of an agent or a list of names, not ["a",1]"#,
        ),
    ] {
        for address in [Address::Root, Address::Agent("x".into())] {
            assert_eq!(hints(&address, message, request).unwrap_err().to_string(), expected);
        }
    }
    // At an agent's own address these are the agent's to read.
    let own = Address::Agent("x".into());
    for (field, value, expected) in [
        ("fanout", "1", "a string, not 1"),
        ("force", "\"yes\"", "true or false, not \"yes\""),
        ("cooldownKey", "{}", "a string, not {}"),
    ] {
        let json = format!(r#"{{"{field}":{value}}}"#);
        let refused = hints(&Address::Root, &json, "null").unwrap_err().to_string();
        assert_eq!(refused, format!("message.metadata.{field}: must be {expected}"));
        assert_eq!(hints(&own, &json, "null").unwrap(), RoutingHints::default());
    }
    let long_key = format!(r#"{{"cooldownKey":"{}"}}"#, "k".repeat(257));
    assert!(
        hints(&Address::Root, "null", &long_key).unwrap_err().to_string().starts_with("metadata.cooldownKey: must")
    );
    let long = format!(r#"{{"skill":["{}"]}}"#, "ö".repeat(1_000));
    assert!(hints(&Address::Root, "null", &long).unwrap_err().to_string().ends_with("öö…"));
}

#[test]
fn a_cooldown_key_is_the_callers_own_else_what_the_message_is_about() {
    for (message, request, expected) in [
        (r#"{"cooldownKey":"k","github":{"repo":"r"}}"#, "null", Some("k")),
        (r#"{"github":{"owner":"o","repo":"r","number":5,"sha":"0123456789ab"}}"#, "null", Some("o/r#5@0123456")),
        (r#"{"github":{"owner":"o","repo":"r","number":5}}"#, r#"{"cooldownKey":"k"}"#, Some("o/r#5")),
        ("null", r#"{"github":{"repo":"o/r","sha":"0123456789ab"}}"#, Some("o/r")),
        (r#"{"github":7}"#, r#"{"github":{"number":5}}"#, None),
    ] {
        let read = hints(&Address::Root, message, request).unwrap();
        assert_eq!(read.cooldown_key.as_deref(), expected, "{message} {request}");
    }
}

#[test]
fn a_tool_is_a_skill_under_a_title() {
    let tool = Tool {
        name: "search_repo".to_owned(),
        description: "Finds code".to_owned(),
        capabilities: vec!["search".to_owned()],
        examples: vec!["where is the log opened?".to_owned()],
    };
    let manifest = Manifest::new("Coder", "Codes").tools([tool]).tool_calls();
    let skill = &manifest.skills[0];
    assert_eq!((skill.id.as_str(), skill.name.as_str()), ("search_repo", "Search Repo"));
    assert_eq!((skill.tags.as_slice(), skill.examples.len()), (["search".to_owned()].as_slice(), 1));
    assert!(!skill.private && skill.description == "Finds code");
    assert_eq!((manifest.extensions[0].uri.as_str(), manifest.extensions[0].required), (TOOL_CALL_URI, false));
    for (name, title) in [("a", "A"), ("öl-preis", "Öl Preis"), ("__x__y", "X Y"), ("readFile", "ReadFile"), ("", "")]
    {
        assert_eq!(Skill::from(Tool { name: name.to_owned(), ..Tool::default() }).name, title);
    }
}

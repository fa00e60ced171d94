//! Every operation in both bindings and both versions, against a real server.

use switchboard_a2a::{ErrorKind, ListRequest, PushConfig, SendResponse, StreamResponse, Task, TaskState, Version};
use switchboard_client::{CallContext, Client, ClientError, Conversation, Credentials, Secret, Update, response_text};

use crate::world::{BINDINGS, CHUNKS_PER_STATUS, KEY, World, chunk, client, say, say_and_leave};

const VERSIONS: [Version; 2] = [Version::V1, Version::V03];

/// Clients of an agent in every way to call it.
fn every_way(url: &str) -> Vec<(String, Client)> {
    let mut all = Vec::new();
    for binding in BINDINGS {
        for version in VERSIONS {
            let client = client(url, |peer| (peer.binding, peer.version) = (Some(binding), Some(version)));
            all.push((format!("{} {}", binding.as_str(), version.as_str()), client));
        }
    }
    all
}

fn context() -> CallContext {
    CallContext::default()
}

fn task(response: SendResponse) -> Task {
    match response {
        SendResponse::Task(task) => task,
        SendResponse::Message(message) => panic!("no task but {message:?}"),
    }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> ErrorKind {
    answer.unwrap_err().error_kind().unwrap()
}

/// A task that waits for the gate, seen at work.
async fn waiting(client: &Client) -> Task {
    let waiting = task(client.send(&context(), say_and_leave("wait")).await.unwrap());
    assert!(!waiting.status.state.is_terminal());
    waiting
}

#[tokio::test]
async fn the_card_is_found_from_every_address() {
    let world = World::open().await;
    let base = world.url("echo");
    let card = "/.well-known/agent-card.json";
    // Not the agent that answers for the whole host, so that a client that takes that one's card is found out.
    let other = world.url("asker");
    let urls = [base.clone(), format!("{base}/"), format!("{base}{card}"), format!("{base}/v1")];
    for url in urls.into_iter().chain(["/v1", "/jsonrpc", card].map(|path| format!("{other}{path}"))) {
        let client = client(&url, |_| {});
        let found = client.card(&context()).await.unwrap();
        let name = if url.starts_with(&base) { "echo" } else { "asker" };
        assert_eq!(found.card.name, name, "{url}");
        let interface = client.interface(&context()).await.unwrap();
        assert_eq!(interface.version, Version::V1, "{url}: the newest version goes first");
        assert!(interface.url.ends_with(&format!("/a2a/{name}")), "{url}: {}", interface.url);
    }
    let error = client(world.url("echoo"), |_| {}).card(&context()).await.map(drop).unwrap_err();
    assert!(matches!(error, ClientError::NoCard(_)), "{error}");
    for url in [base.clone(), format!("{base}{card}")] {
        for (way, client) in every_way(&url) {
            let answer = client.send(&context(), say("hello")).await.unwrap();
            assert_eq!(response_text(&answer), "echo: hello", "{way} {url}");
        }
    }
}

#[tokio::test]
async fn a_message_is_sent_and_answered() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("echo")) {
        let outcome = client.send(&context(), say("hello")).await.unwrap();
        assert!(outcome.is_success(), "{way}: {outcome:?}");
        assert_eq!(response_text(&outcome), "echo: hello", "{way}");
    }
    for (way, client) in every_way(&world.url("failing")) {
        let outcome = client.send(&context(), say("hello")).await.unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Failed), "{way}: {outcome:?}");
        assert_eq!(response_text(&outcome), "it broke", "{way}");
    }
}

#[tokio::test]
async fn a_message_is_left_with_the_agent() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("waiting")) {
        let left = waiting(&client).await;
        let followed = client.subscribe(&context(), left.id.clone()).await.unwrap();
        world.gate.add_permits(1);
        let outcome = followed.finish().await.unwrap();
        assert_eq!(response_text(&outcome), "let through", "{way}");
        assert_eq!(outcome.task().unwrap().id, left.id, "{way}");
    }
}

#[tokio::test]
async fn a_stream_has_every_event_once() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("counter")) {
        let mut followed = client.stream(&context(), say("25")).await.unwrap();
        let (mut texts, mut statuses) = (String::new(), Vec::new());
        while let Some(update) = followed.next().await.unwrap() {
            let Update::Event(event) = update else { panic!("{way}: {update:?}") };
            match *event {
                StreamResponse::ArtifactUpdate(update) => {
                    texts.extend(update.artifact.parts.iter().filter_map(|part| part.as_text()));
                }
                StreamResponse::StatusUpdate(update) if update.status.state.is_terminal() => {}
                StreamResponse::StatusUpdate(update) => {
                    statuses.extend(update.status.message.map(|message| message.joined_text()));
                }
                StreamResponse::Task(task) => assert!(!task.status.state.is_terminal(), "{way}"),
                StreamResponse::Message(message) => panic!("{way}: {message:?}"),
            }
        }
        assert_eq!(texts, (1..=25).map(chunk).collect::<String>(), "{way}");
        assert_eq!(statuses, [format!("at {CHUNKS_PER_STATUS}"), format!("at {}", 2 * CHUNKS_PER_STATUS)], "{way}");
        assert_eq!(followed.task().unwrap().status.state, TaskState::Completed, "{way}");
    }
}

#[tokio::test]
async fn what_an_agent_keeps_to_itself_is_not_waited_for() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("noting")) {
        let mut followed = client.stream(&context(), say("go")).await.unwrap();
        let mut texts = Vec::new();
        while let Some(update) = followed.next().await.unwrap() {
            assert!(!matches!(update, Update::Gap(_)), "{way}: {update:?}");
            if let Update::Event(event) = update
                && let StreamResponse::ArtifactUpdate(update) = *event
            {
                // The last chunk is empty.
                let heard =
                    update.artifact.parts.iter().filter_map(|part| part.as_text()).find(|text| !text.is_empty());
                // It goes on only when this was heard.
                world.gate.add_permits(heard.iter().count());
                texts.extend(heard.map(str::to_owned));
            }
        }
        assert_eq!(texts, ["one ", "two ", "three"], "{way}");
        assert_eq!(followed.task().unwrap().status.state, TaskState::Completed, "{way}");
    }
}

#[tokio::test]
async fn a_question_is_answered_in_its_conversation() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("asker")) {
        let mut conversation = Conversation::default();
        let first = client.stream(&context(), say("go")).await.unwrap().finish().await.unwrap();
        conversation.record_response(&first);
        assert_eq!(first.state(), Some(TaskState::InputRequired), "{way}: {first:?}");
        assert_eq!(response_text(&first), "which city?", "{way}");
        let mut answer = say("");
        answer.message = conversation.text("Bern");
        let followed = client.stream(&context(), answer).await.unwrap();
        let outcome = followed.finish().await.unwrap();
        assert_eq!(response_text(&outcome), "city: Bern", "{way}");
        assert_eq!(outcome.task().unwrap().id, first.task().unwrap().id, "{way}");
    }
}

#[tokio::test]
async fn tasks_are_read_and_listed() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("echo")) {
        let sent = task(client.send(&context(), say("hello")).await.unwrap());
        let read = client.get(&context(), &sent.id, None).await.unwrap();
        assert_eq!((&read.id, &read.artifacts), (&sent.id, &sent.artifacts), "{way}");
        assert!(!read.history.is_empty(), "{way}");
        let bare = client.get(&context(), &sent.id, Some(0)).await.unwrap();
        assert!(bare.history.is_empty(), "{way}");
        let of_this = ListRequest { context_id: Some(sent.context_id.clone()), ..ListRequest::default() };
        match client.list(&context(), of_this).await {
            Ok(page) => {
                let ids: Vec<_> = page.tasks.iter().map(|task| &task.id).collect();
                assert_eq!(ids, [&sent.id], "{way}");
            }
            // Version 0.3 has no such operation over REST.
            Err(error) => assert!(way.ends_with("HTTP+JSON 0.3"), "{way}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_task_is_stopped() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("waiting")) {
        let running = waiting(&client).await;
        let stopped = client.cancel(&context(), &running.id, None).await.unwrap();
        assert_eq!(stopped.status.state, TaskState::Canceled, "{way}");
        let again = client.cancel(&context(), &running.id, None).await.unwrap();
        assert_eq!(again.status.state, TaskState::Canceled, "{way}: it is what was wanted");
    }
    for (way, client) in every_way(&world.url("echo")) {
        let ended = task(client.send(&context(), say("hello")).await.unwrap());
        assert_eq!(refusal(client.cancel(&context(), &ended.id, None).await), ErrorKind::TaskNotCancelable, "{way}");
    }
}

#[tokio::test]
async fn an_ended_task_is_told_as_it_is() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("echo")) {
        let ended = task(client.send(&context(), say("hello")).await.unwrap());
        let mut followed = client.subscribe(&context(), ended.id.clone()).await.unwrap();
        let Some(Update::Event(event)) = followed.next().await.unwrap() else { panic!("{way}: nothing") };
        let StreamResponse::Task(told) = *event else { panic!("{way}: {event:?}") };
        assert_eq!(told.artifacts, ended.artifacts, "{way}");
        assert!(followed.next().await.unwrap().is_none(), "{way}");
    }
}

#[tokio::test]
async fn webhooks_are_kept() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("waiting")) {
        let running = waiting(&client).await;
        let config = PushConfig {
            tenant: None,
            id: Some("mine".to_owned()),
            task_id: Some(running.id.to_string()),
            url: format!("http://{}/", world.address),
            token: Some("token".to_owned()),
            authentication: None,
            payload: None,
        };
        let set = client.set_webhook(&context(), config.clone()).await.unwrap();
        assert_eq!((set.id.as_deref(), &set.url), (Some("mine"), &config.url), "{way}");
        let read = client.webhook(&context(), &running.id, Some("mine")).await.unwrap();
        assert_eq!(read.url, config.url, "{way}");
        let all = client.webhooks(&context(), &running.id).await.unwrap();
        assert_eq!(all.iter().map(|config| config.id.as_deref()).collect::<Vec<_>>(), [Some("mine")], "{way}");
        client.delete_webhook(&context(), &running.id, "mine").await.unwrap();
        assert!(client.webhooks(&context(), &running.id).await.unwrap().is_empty(), "{way}");
        client.cancel(&context(), &running.id, None).await.unwrap();
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let world = World::open().await;
    for (way, client) in every_way(&world.url("echo")) {
        let missing = "00000000-0000-7000-8000-000000000000".into();
        assert_eq!(refusal(client.get(&context(), &missing, None).await), ErrorKind::TaskNotFound, "{way}");
        assert_eq!(refusal(client.cancel(&context(), &missing, None).await), ErrorKind::TaskNotFound, "{way}");
        // Version 0.3 refuses within the stream.
        let subscribed = match client.subscribe(&context(), missing.clone()).await {
            Ok(followed) => followed.finish().await.map(drop),
            Err(error) => Err(error),
        };
        assert_eq!(refusal(subscribed), ErrorKind::TaskNotFound, "{way}");
        let extended = refusal(client.extended_card(&context()).await.map(drop));
        let expected = [ErrorKind::ExtendedCardNotConfigured, ErrorKind::UnsupportedOperation];
        assert!(expected.contains(&extended), "{way}: {extended:?}");
    }
}

#[tokio::test]
async fn a_key_is_needed_where_one_is_wanted() {
    let world = World::keyed().await;
    let client = client(world.url("echo"), |_| {});
    let with = |key: &str| CallContext {
        credentials: Some(Credentials::Bearer(Secret::Plain(key.to_owned()))),
        ..CallContext::default()
    };
    for binding in BINDINGS {
        for version in VERSIONS {
            let client = crate::world::client(world.url("echo"), |peer| {
                (peer.binding, peer.version) = (Some(binding), Some(version));
                peer.credentials = Credentials::Bearer(Secret::Plain("wrong".to_owned()));
            });
            let error = client.send(&context(), say("hello")).await.unwrap_err();
            assert!(matches!(error, ClientError::Credentials { status: 401, .. }), "{binding:?} {version:?}: {error}");
            let error = client.stream(&context(), say("hello")).await.map(drop).unwrap_err();
            assert!(matches!(error, ClientError::Credentials { status: 401, .. }), "{binding:?} {version:?}: {error}");
            assert!(!error.to_string().contains("wrong"), "no secret is told: {error}");
            let answer = client.send(&with(KEY), say("hello")).await.unwrap();
            assert_eq!(response_text(&answer), "echo: hello", "the call's own credentials go first");
        }
    }
    let error = client.send(&context(), say("hello")).await.unwrap_err();
    assert!(matches!(error, ClientError::Credentials { status: 401, .. }), "{error}");
}

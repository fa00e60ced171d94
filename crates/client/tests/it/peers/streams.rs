//! Streams of agents that know nothing of ours: how they break, and what is made of them.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{StreamResponse, TaskState};
use switchboard_client::{Client, ClientError, Context, Missing, Outcome, Update};

use super::script::{
    COMPLETED, Reply, WORKING, agent, chunk, error, event, events, events_then_silence, result, status, task,
};
use crate::world::{client, say};

/// What a follower was told, in short.
async fn story(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut story = Vec::new();
    let mut followed = client.stream(&Context::default(), say("hello")).await?;
    while let Some(update) = followed.next().await? {
        story.push(match update {
            Update::Lost { .. } => "lost".to_owned(),
            Update::Gap(gap) => format!("gap: {:?}", gap.missing),
            Update::Event(event) => match *event {
                StreamResponse::Task(task) => format!("task {}", task.status.state.as_str()),
                StreamResponse::StatusUpdate(update) => update.status.state.as_str().to_owned(),
                StreamResponse::ArtifactUpdate(update) => {
                    update.artifact.parts.iter().filter_map(|part| part.as_text()).collect()
                }
                StreamResponse::Message(message) => format!("message {}", message.joined_text()),
            },
        });
    }
    Ok(story)
}

fn working(text: &str) -> String {
    event(json!({"task": task(WORKING, text)}))
}

/// The usual peer: its stream, its subscriptions, and its task.
async fn usual(
    stream: impl Fn() -> Reply + Send + Sync + 'static,
    subscribe: impl Fn(usize) -> Reply + Send + Sync + 'static,
    get: impl Fn(usize) -> Value + Send + Sync + 'static,
) -> super::script::Peer {
    agent(false, move |asked, before| match asked.what().as_str() {
        "SendStreamingMessage" => stream(),
        "SubscribeToTask" => subscribe(before),
        "GetTask" => result(get(before)),
        _ => error(-32601, "no such method"),
    })
    .await
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_gone_on_with_by_asking() {
    let peer = usual(
        || events(&[working(""), event(chunk("one "))]),
        |_| error(-32004, "it has ended"),
        |_| task(COMPLETED, "one two"),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "one ", "lost", "two", "TASK_STATE_COMPLETED"]);
    assert_eq!(peer.story(), ["SendStreamingMessage", "SubscribeToTask", "GetTask"]);
}

#[tokio::test]
async fn numbers_that_begin_again_with_every_answer_are_not_believed() {
    let numbered = |frames: Vec<String>| -> Vec<String> {
        frames.into_iter().enumerate().map(|(number, frame)| format!("id: {number}\n{frame}")).collect()
    };
    let first = numbered(vec![working(""), event(chunk("one ")), event(chunk("two "))]);
    let second = numbered(vec![working("one two three "), event(chunk("four")), event(status(COMPLETED))]);
    let peer = usual(move || events(&first), move |_| events(&second), |_| task(COMPLETED, "one two three four")).await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    let expected = ["task TASK_STATE_WORKING", "one ", "two ", "lost", "three ", "four", "TASK_STATE_COMPLETED"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_does_not_fit_is_told_as_a_gap() {
    let peer = usual(
        || events(&[working(""), event(chunk("one ")), event(chunk("three "))]),
        |_| events(&[working("one two three "), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one two three "),
    )
    .await;
    let client = client(peer.url(), |_| {});
    let told = story(&client).await.unwrap();
    let gap = format!("gap: {:?}", Missing::Artifact("a".to_owned()));
    let whole = "one two three ";
    let expected = ["task TASK_STATE_WORKING", "one ", "three ", "lost", &gap, whole, "TASK_STATE_COMPLETED"];
    assert_eq!(told, expected);
    let followed = client.stream(&Context::default(), say("hello")).await.unwrap();
    let error = followed.finish().await.unwrap_err();
    assert!(matches!(error, ClientError::Gap(_)), "{error}");
}

#[tokio::test]
async fn an_agent_without_subscriptions_is_asked_until_it_has_ended() {
    let peer = usual(
        || events(&[working(""), event(chunk("one "))]),
        |_| error(-32601, "no such method"),
        |before| match before {
            0 => task(WORKING, "one "),
            1 => task(WORKING, "one two "),
            _ => task(COMPLETED, "one two three"),
        },
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    let expected = ["task TASK_STATE_WORKING", "one ", "lost", "two ", "three", "TASK_STATE_COMPLETED"];
    assert_eq!(told, expected);
    assert_eq!(peer.cards().len(), 1, "its card is known by then");
}

#[tokio::test]
async fn whoever_says_when_to_come_back_is_left_alone_until_then() {
    for retry in ["retry: 300\n\n", "retry: 300\n: with the first event\n"] {
        let first = format!("{retry}{}", working(""));
        let peer = usual(
            move || events(std::slice::from_ref(&first)),
            |_| events(&[working("one"), event(status(COMPLETED))]),
            |_| task(COMPLETED, "one"),
        )
        .await;
        let client = client(peer.url(), |peer| peer.retries.longest = Duration::from_millis(200));
        let began = std::time::Instant::now();
        let told = story(&client).await.unwrap();
        assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "one", "TASK_STATE_COMPLETED"]);
        assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_agent_that_can_be_asked_nothing_leaves_a_gap() {
    let peer = agent(false, |asked, _| match asked.what().as_str() {
        "SendStreamingMessage" => events(&[working(""), event(chunk("one "))]),
        _ => error(-32601, "no such method"),
    })
    .await;
    let error = story(&client(peer.url(), |_| {})).await.unwrap_err();
    let ClientError::Gap(gap) = &error else { panic!("{error}") };
    assert!(matches!(gap.missing, Missing::Unknown(_)) && gap.task.as_str() == "t", "{error}");
}

#[tokio::test]
async fn a_stream_that_says_nothing_is_not_taken_for_success() {
    let peer = agent(false, |_, _| events(&[])).await;
    let error = story(&client(peer.url(), |_| {})).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(peer.story(), ["SendStreamingMessage"], "the message may have arrived");
    let peer = agent(true, |asked, _| match asked.what().as_str() {
        "SendMessage" => result(json!({"task": task(COMPLETED, "done")})),
        _ => events(&[]),
    })
    .await;
    assert_eq!(story(&client(peer.url(), |_| {})).await.unwrap(), ["task TASK_STATE_COMPLETED"]);
    let keys: Vec<_> = peer.asked().iter().map(|asked| asked.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

#[tokio::test]
async fn an_error_within_a_stream_is_not_the_end_of_the_task() {
    let gives_up = format!(
        "data: {}\n\n",
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "the stream broke"}})
    );
    let peer = usual(
        move || events(&[working(""), gives_up.clone()]),
        |_| events(&[working("one"), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one"),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "one", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_refusal_within_a_stream_is_one() {
    let refusal =
        format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "wrong"}}));
    let peer = agent(true, move |_, _| events(std::slice::from_ref(&refusal))).await;
    let error = story(&client(peer.url(), |_| {})).await.unwrap_err();
    assert_eq!(error.refusal(), Some(switchboard_a2a::ErrorKind::InvalidParams), "{error}");
    assert_eq!(peer.asked().len(), 1);
}

#[tokio::test]
async fn done_is_an_end_of_the_stream_and_not_of_the_task() {
    let done = || "data: [DONE]\n\n".to_owned();
    let peer = usual(
        move || events(&[working(""), event(status(COMPLETED)), done()]),
        |_| error(-32004, "it has ended"),
        |_| task(COMPLETED, ""),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    let peer = usual(
        move || events_then_silence(&[working(""), done()]),
        |_| error(-32004, "it has ended"),
        |_| task(COMPLETED, "all"),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "all", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn an_event_may_be_too_large() {
    let peer = usual(
        || events(&[working(""), event(chunk(&"x".repeat(10_000)))]),
        |_| error(-32004, "it has ended"),
        |_| task(COMPLETED, ""),
    )
    .await;
    let error = story(&client(peer.url(), |peer| peer.limits.event = 1_000)).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 1_000, .. }), "{error}");
}

#[tokio::test]
async fn a_silent_stream_is_left_and_taken_up_again() {
    let peer = usual(
        || events_then_silence(&[working("")]),
        |_| events(&[working("one"), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one"),
    )
    .await;
    let told = story(&client(peer.url(), |peer| peer.limits.idle = Duration::from_millis(30))).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "one", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_stream_that_never_gets_anywhere_is_given_up() {
    let peer = usual(|| events(&[working("")]), |_| events(&[working("")]), |_| task(WORKING, "")).await;
    let client = client(peer.url(), |_| {});
    let mut followed = client.stream(&Context::default(), say("hello")).await.unwrap();
    let error = loop {
        match followed.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it has ended"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(followed.task().unwrap().status.state, TaskState::Working, "it is known how far it came");
    assert_eq!(peer.asked().len(), 1 + 4);
}

#[tokio::test]
async fn the_time_for_a_whole_stream_is_kept_to() {
    let peer = usual(|| events_then_silence(&[working("")]), |_| Reply::Closes, |_| task(WORKING, "")).await;
    let client = client(peer.url(), |peer| peer.limits.total = Some(Duration::from_millis(50)));
    let error = story(&client).await.unwrap_err();
    let ClientError::Timeout { task: Some(task), .. } = &error else { panic!("{error}") };
    assert_eq!(task.as_str(), "t", "{error}");
}

#[tokio::test]
async fn a_direct_reply_ends_it() {
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello back"}]}});
    let peer = agent(false, move |_, _| events_then_silence(&[event(message.clone())])).await;
    let client = client(peer.url(), |_| {});
    assert_eq!(story(&client).await.unwrap(), ["message hello back"]);
    let followed = client.stream(&Context::default(), say("hello")).await.unwrap();
    assert_eq!(Outcome::from(followed.finish().await.unwrap()).text(), "hello back");
}

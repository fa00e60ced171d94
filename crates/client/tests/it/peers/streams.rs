//! Streams of agents that know nothing of ours: how they break, and what is made of them.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{StreamResponse, TaskState};
use switchboard_client::{CallContext, Client, ClientError, GapReason, Update, response_text};

use super::script::{
    Asked, COMPLETED, Peer, Reply, WORKING, agent, card, chunk, error, event, events, events_then_silence,
    json as answer, result, says, status, task,
};
use crate::world::{client, say};

/// What a follower was told, in short.
pub(super) async fn story(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut story = Vec::new();
    let mut followed = client.stream(&CallContext::default(), say("hello")).await?;
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

pub(super) fn working(text: &str) -> String {
    event(json!({"task": task(WORKING, text)}))
}

/// The usual peer: its stream, its subscriptions, and its task.
pub(super) async fn usual(
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
    let gap = format!("gap: {:?}", GapReason::Artifact("a".to_owned()));
    let whole = "one two three ";
    let expected = ["task TASK_STATE_WORKING", "one ", "three ", "lost", &gap, whole, "TASK_STATE_COMPLETED"];
    assert_eq!(told, expected);
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
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
async fn an_agent_that_says_when_to_come_back_is_left_alone_until_then() {
    for retry in ["retry: 300\n\n", "retry: 300\n: with the first event\n"] {
        let first = format!("{retry}{}", working(""));
        let peer = usual(
            move || events(std::slice::from_ref(&first)),
            |_| events(&[working("one"), event(status(COMPLETED))]),
            |_| task(COMPLETED, "one"),
        )
        .await;
        let client = client(peer.url(), |peer| peer.retries.max_backoff = Duration::from_millis(200));
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
    assert!(matches!(gap.missing, GapReason::Unknown(_)) && gap.task.as_str() == "t", "{error}");
}

#[tokio::test]
async fn a_stream_that_says_nothing_and_ends_in_order_is_no_answer_so_the_message_is_sent_the_other_way() {
    let nothing: [&[String]; 3] = [&[], &[": still here\n\n".to_owned()], &["data: [DONE]\n\n".to_owned()]];
    for nothing in nothing {
        let nothing = nothing.to_vec();
        let peer = agent(false, move |asked, _| match asked.what().as_str() {
            "SendMessage" => result(json!({"task": task(COMPLETED, "done")})),
            _ => events(&nothing),
        })
        .await;
        assert_eq!(story(&client(peer.url(), |_| {})).await.unwrap(), ["task TASK_STATE_COMPLETED"]);
        assert_eq!(peer.story(), ["SendStreamingMessage", "SendMessage"]);
        let same = |of: fn(&Asked) -> String| peer.asked().iter().map(of).collect::<HashSet<_>>().len() == 1;
        assert!(same(|asked| asked.header("idempotency-key").unwrap_or_default().to_owned()), "the key is the same");
        assert!(same(|asked| asked.json()["params"]["message"]["messageId"].to_string()), "and so is the message");
    }
}

#[tokio::test]
async fn a_message_that_is_to_be_sent_once_is_not_sent_again_after_a_stream_that_said_nothing() {
    for (is_idempotent, times) in [(false, 1), (true, 2)] {
        let peer = agent(is_idempotent, move |asked, before| match (asked.what().as_str(), before) {
            ("SendStreamingMessage", 0) => events(&[]),
            ("SendStreamingMessage", _) => events(&[event(json!({"task": task(COMPLETED, "done")}))]),
            _ => result(json!({"task": task(COMPLETED, "done")})),
        })
        .await;
        let context = CallContext { sends_once: true, ..CallContext::default() };
        let stream = client(peer.url(), |_| {}).stream(&context, say("hello")).await.unwrap();
        let finished = stream.finish().await;
        assert_eq!(finished.is_ok(), is_idempotent, "{finished:?}");
        assert!(is_idempotent || matches!(finished, Err(ClientError::Lost { .. })));
        assert_eq!(peer.story().len(), times, "{:?}", peer.story());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_it_says_anything_may_have_begun_something() {
    let torn = || {
        let head = "HTTP/1.1 200 So\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\n";
        Reply::Says(head.as_bytes().to_vec())
    };
    let peer = agent(false, move |_, _| torn()).await;
    let error = story(&client(peer.url(), |_| {})).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(peer.story(), ["SendStreamingMessage"]);
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
    assert_eq!(error.error_kind(), Some(switchboard_a2a::ErrorKind::InvalidParams), "{error}");
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
async fn a_stream_that_never_gets_anywhere_is_given_up_if_the_task_cannot_be_asked_after() {
    let peer = agent(false, |asked, _| match asked.what().as_str() {
        "GetTask" => Reply::Closes,
        _ => events(&[working("")]),
    })
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    let error = loop {
        match followed.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it has ended"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(followed.task().unwrap().status.state, TaskState::Working, "it is known how far it came");
    assert_eq!(followed.task_id().unwrap().as_str(), "t");
    let story = peer.story();
    assert_eq!(story.iter().filter(|what| *what == "SubscribeToTask").count(), 4);
    assert_eq!(story.iter().filter(|what| *what == "GetTask").count(), 5 * 5, "each question is asked again, too");
}

#[tokio::test]
async fn a_quiet_task_whose_streams_are_cut_is_asked_after_until_it_ends() {
    // Subscriptions begin with the task, or with nothing but its status.
    for first in [working(""), event(status(WORKING))] {
        let peer = usual(
            || events(&[working("")]),
            move |_| events(std::slice::from_ref(&first)),
            |before| if before < 6 { task(WORKING, "") } else { task(COMPLETED, "late") },
        )
        .await;
        let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
        let told = story(&client).await.unwrap();
        let told: Vec<_> = told.iter().filter(|update| *update != "lost").collect();
        assert_eq!(told, ["task TASK_STATE_WORKING", "late", "TASK_STATE_COMPLETED"]);
        let story = peer.story();
        assert_eq!(story.iter().filter(|what| *what == "SubscribeToTask").count(), 4, "{story:?}");
    }
}

#[tokio::test]
async fn a_task_whose_subscription_fails_in_an_odd_way_is_asked_after() {
    let peer =
        usual(|| events(&[working("")]), |_| says(418, "content-type: text/plain", "no"), |_| task(COMPLETED, "done"))
            .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "done", "TASK_STATE_COMPLETED"]);
}

fn gives_up() -> String {
    let error = json!({"code": -32050, "message": "the model is gone"});
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "error": error}))
}

#[tokio::test]
async fn an_agent_that_gives_up_within_a_stream_and_keeps_none_is_not_asked_for_ever() {
    // Refused as an answer, within a stream, or not at all but with nothing new.
    let refusals: [fn() -> Reply; 3] =
        [|| error(-32001, "no such task"), || events(&[gives_up()]), || events(&[working("one "), gives_up()])];
    for refusal in refusals {
        let peer = usual(
            || events(&[working(""), event(chunk("one ")), gives_up()]),
            move |_| refusal(),
            |_| task(WORKING, "one "),
        )
        .await;
        let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
        let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        let error = loop {
            match followed.next().await {
                Ok(update) => assert!(update.is_some(), "it has ended"),
                Err(error) => break error,
            }
        };
        assert_eq!((error.code(), followed.task_id()), (Some(-32050), Some("t".into())), "{error}");
        assert!(error.to_string().contains("the model is gone"), "{error}");
    }
}

#[tokio::test]
async fn an_agent_that_gives_up_within_a_stream_may_have_ended_the_task() {
    let peer =
        usual(|| events(&[working(""), gives_up()]), |_| error(-32001, "no such task"), |_| task(COMPLETED, "done"))
            .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "done", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_stream_without_end_is_kept_only_up_to_a_limit() {
    let endless = || {
        let mut frames = vec![working("")];
        frames.extend((0..100).map(|_| event(chunk(&"x".repeat(1_000)))));
        events(&frames)
    };
    let peer = usual(endless, |_| error(-32601, "no"), |_| task(WORKING, "")).await;
    let limited = client(peer.url(), |peer| peer.limits.task = 20_000);
    let mut followed = limited.stream(&CallContext::default(), say("hello")).await.unwrap();
    let error = loop {
        match followed.next().await {
            Ok(update) => assert!(update.is_some(), "it has ended"),
            Err(error) => break error,
        }
    };
    let ClientError::TaskTooLarge { task, limit: 20_000 } = &error else { panic!("{error}") };
    assert_eq!(task.as_str(), "t");
    let kept: usize =
        followed.task().unwrap().artifacts[0].parts.iter().filter_map(|part| part.as_text()).map(str::len).sum();
    assert!((15_000..25_000).contains(&kept), "{kept}");
}

#[tokio::test]
async fn what_is_replaced_does_not_count_towards_the_limit() {
    let replacing = || {
        let frame = |number: usize| {
            let mut whole = chunk(&format!("{number}{}", "x".repeat(1_000)));
            whole["artifactUpdate"]["append"] = json!(false);
            event(whole)
        };
        let mut frames = vec![working("")];
        frames.extend((0..100).map(frame));
        frames.push(event(status(COMPLETED)));
        events(&frames)
    };
    let last = format!("99{}", "x".repeat(1_000));
    let peer = usual(replacing, |_| error(-32601, "no"), move |_| task(COMPLETED, &last)).await;
    let limited = client(peer.url(), |peer| peer.limits.task = 20_000);
    assert_eq!(story(&limited).await.unwrap().len(), 102);
}

#[tokio::test]
async fn the_time_for_a_whole_stream_is_kept_to() {
    let peer = usual(|| events_then_silence(&[working("")]), |_| Reply::Closes, |_| task(WORKING, "")).await;
    let client = client(peer.url(), |peer| peer.limits.total = Some(Duration::from_secs(30)));
    let mut stream = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    assert!(matches!(stream.next().await.unwrap(), Some(Update::Event(_))), "the task");
    // Time passes only once the task is known.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    let error = stream.next().await.unwrap_err();
    let ClientError::Timeout { task: Some(task), .. } = &error else { panic!("{error}") };
    assert_eq!(task.as_str(), "t", "{error}");
}

#[tokio::test]
async fn the_time_for_a_whole_stream_begins_with_the_first_question() {
    // Silent about its card, about the message, and about the message sent the other way.
    for silent in ["/.well-known/", "SendStreamingMessage", "SendMessage"] {
        let peer = Peer::start(move |asked, _| match asked.what().as_str() {
            what if what.contains(silent) => Reply::Stalls(Vec::new()),
            what if what.contains("/.well-known/") => answer(200, &card(false)),
            _ => error(-32601, "no such method"),
        })
        .await;
        let client = client(peer.url(), |peer| peer.limits.total = Some(Duration::from_millis(100)));
        let context = CallContext::default();
        let opening = client.stream(&context, say("hello"));
        let opened = tokio::time::timeout(crate::HANG_GUARD, opening).await.expect(silent);
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, ClientError::Timeout { task: None, .. }), "{silent}: {error}");
        if silent == "/.well-known/" {
            let error = client.subscribe(&context, "t".into()).await.map(drop).unwrap_err();
            assert!(matches!(&error, ClientError::Timeout { task: Some(task), .. } if task.as_str() == "t"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_direct_reply_ends_it() {
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello back"}]}});
    let peer = agent(false, move |_, _| events_then_silence(&[event(message.clone())])).await;
    let client = client(peer.url(), |_| {});
    assert_eq!(story(&client).await.unwrap(), ["message hello back"]);
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(response_text(&followed.finish().await.unwrap()), "hello back");
}

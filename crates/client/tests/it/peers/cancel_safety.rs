//! A client that follows a task may stop waiting for the next update at any time and wait again: nothing is lost, told twice or
//! begun anew.

use std::time::Duration;

use switchboard_a2a::StreamResponse;
use switchboard_client::{CallContext, Client, Update};

use super::script::{COMPLETED, Peer, WORKING, chunk, error, event, events, events_then_silence, status, task};
use super::streams::{usual, working};
use crate::world::{client, say};

/// Shorter than every wait of the client.
const GLANCE: Duration = Duration::from_millis(2);

/// What a client is told that never waits for long, but often.
async fn glanced(client: &Client) -> Vec<String> {
    let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    let mut told = Vec::new();
    let all = async {
        loop {
            let Ok(next) = tokio::time::timeout(GLANCE, followed.next()).await else { continue };
            match next.unwrap() {
                None => break,
                Some(Update::Lost { .. }) => told.push("lost".to_owned()),
                Some(Update::Gap(gap)) => told.push(gap.to_string()),
                Some(Update::Event(event)) => match *event {
                    StreamResponse::Task(_) => told.push("task".to_owned()),
                    StreamResponse::StatusUpdate(update) => told.push(update.status.state.as_str().to_owned()),
                    StreamResponse::ArtifactUpdate(update) => {
                        told.extend(update.artifact.parts.iter().filter_map(|part| part.as_text()).map(str::to_owned));
                    }
                    StreamResponse::Message(message) => told.push(message.joined_text()),
                },
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, all).await.expect("it comes to its end");
    told
}

fn times(peer: &Peer, what: &str) -> usize {
    peer.story().iter().filter(|asked| *asked == what).count()
}

#[tokio::test]
async fn a_silent_stream_is_noticed_and_taken_up_again() {
    let peer = usual(
        || events_then_silence(&[working("")]),
        |_| events(&[working("one"), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one"),
    )
    .await;
    let client = client(peer.url(), |peer| {
        peer.limits.idle = GLANCE * 20;
        (peer.retries.initial_backoff, peer.retries.max_backoff) = (GLANCE * 20, GLANCE * 20);
    });
    assert_eq!(glanced(&client).await, ["task", "lost", "one", COMPLETED]);
    assert_eq!(times(&peer, "SubscribeToTask"), 1);
}

#[tokio::test]
async fn a_task_without_streams_is_asked_after() {
    let peer = usual(
        || events(&[working(""), event(chunk("one "))]),
        |_| error(-32601, "no such method"),
        |before| if before < 2 { task(WORKING, "one ") } else { task(COMPLETED, "one two") },
    )
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(GLANCE * 20));
    assert_eq!(glanced(&client).await, ["task", "one ", "lost", "two", COMPLETED]);
    assert_eq!(times(&peer, "GetTask"), 3);
}

#[tokio::test]
async fn an_end_that_is_being_confirmed_is_not_lost() {
    let peer = usual(
        || events(&[working(""), event(chunk("one "))]),
        |_| events_then_silence(&[working("one "), event(chunk("two")), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one two"),
    )
    .await;
    let client = client(peer.url(), |_| {});
    let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    let mut told = Vec::new();
    // Every step is given up at the first thing that it has to wait for.
    let all = async {
        loop {
            let next = tokio::select! {
                biased;
                next = followed.next() => Some(next),
                () = tokio::task::yield_now() => None,
            };
            match next {
                None => {}
                Some(Ok(None)) => break,
                Some(update) => told.push(matches!(update.unwrap(), Some(Update::Event(_)))),
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, all).await.expect("it comes to its end");
    assert_eq!(told, [true, true, false, true, true], "task, one, lost, two, the end");
    assert_eq!(times(&peer, "GetTask"), 1);
}

//! A reader that was told part of a task goes on with the rest: after its process has died, and whenever something says
//! that there is news. Cut connections, silent ones, pushes and polls come in any order; every event comes once.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{StreamResponse, Task, TaskState};
use switchboard_client::{CallContext, Client, TaskStream, Update};

use super::script::{
    Asked, COMPLETED, Peer, Reply, WORKING, card, chunk, error, event, events, events_then_silence, json as answer,
    result, status, task,
};
use super::streams::{usual, working};
use crate::world::{client, quick, say};

const ITEMS: u64 = 24;
const SEEDS: u64 = 24;
/// After so long without news something says "look".
const PATIENCE: Duration = Duration::from_millis(3);

/// A sequence that is the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % sides
    }
}

fn item(number: u64) -> String {
    format!("<{number}>")
}

fn text(upto: u64) -> String {
    (1..=upto).map(item).collect()
}

/// An agent that gets on with its task whenever it is asked something, and whose connections break as the dice say.
struct Model {
    dice: Dice,
    /// So many items are there; with one more the task is completed.
    made: u64,
    is_numbered: bool,
}

impl Model {
    fn snapshot(&self) -> Value {
        let state = if self.made > ITEMS { COMPLETED } else { WORKING };
        task(state, &text(self.made.min(ITEMS)))
    }

    fn frame(&self, number: u64, result: Value) -> String {
        let id = if self.is_numbered { format!("id: 1.{number}\n") } else { String::new() };
        id + &event(result)
    }

    fn answer(&mut self, asked: &Asked) -> Reply {
        let before = self.made;
        self.made = (self.made + self.dice.roll(3)).min(ITEMS + 1);
        match asked.what().as_str() {
            "GetTask" => result(self.snapshot()),
            "SubscribeToTask" if before > ITEMS => error(-32004, "it has ended"),
            "SubscribeToTask" => self.connection(before, asked.header("last-event-id"), false),
            "SendStreamingMessage" => self.connection(before, None, true),
            _ => error(-32601, "no such method"),
        }
    }

    /// What has happened from the beginning of the connection on, up to where it breaks.
    fn connection(&mut self, before: u64, last_id: Option<&str>, is_first: bool) -> Reply {
        let last = last_id.and_then(|id| id.split_once('.')).and_then(|(_, number)| number.parse().ok());
        let begins_with_task = last.is_none() && (is_first || self.is_numbered || self.dice.roll(3) > 0);
        let first = last.filter(|_| self.is_numbered).unwrap_or(before);
        let mut frames = Vec::new();
        if begins_with_task {
            frames.push(self.frame(first, json!({"task": task(WORKING, &text(first))})));
        }
        let cut = first + self.dice.roll(self.made - first + 1);
        for number in first + 1..=cut {
            frames.push(match number {
                _ if number > ITEMS => self.frame(number, status(COMPLETED)),
                1 => self.frame(1, beginning()),
                _ => self.frame(number, chunk(&item(number))),
            });
        }
        match self.dice.roll(3) {
            0 => events_then_silence(&frames),
            _ => events(&frames),
        }
    }
}

/// The first chunk of an artifact does not append.
fn beginning() -> Value {
    let artifact = json!({"artifactId": "a", "parts": [{"text": item(1)}]});
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": false, "artifact": artifact}})
}

async fn agent(seed: u64, is_numbered: bool) -> (Peer, Arc<Mutex<Model>>) {
    let model = Arc::new(Mutex::new(Model { dice: Dice(seed), made: 0, is_numbered }));
    let shared = model.clone();
    let peer = Peer::start(move |asked, _| {
        if asked.line().contains("/.well-known/") {
            let mut card = card(false);
            if is_numbered {
                card["capabilities"]["extensions"] = json!([{ "uri": RESUMPTION }]);
            }
            return answer(200, &card);
        }
        shared.lock().answer(asked)
    });
    (peer.await, model)
}

/// What a reader has of the task, over any number of streams.
#[derive(Default)]
struct Told {
    task: Option<Task>,
    texts: String,
    ends: usize,
    gaps: Vec<String>,
}

impl Told {
    fn take(&mut self, update: Update) {
        let event = match update {
            Update::Lost { .. } => return,
            Update::Gap(gap) => return self.gaps.push(gap.to_string()),
            Update::Event(event) => *event,
        };
        match &event {
            StreamResponse::Task(task) => {
                assert!(self.task.is_none(), "the task comes whole only at the beginning");
                self.ends += usize::from(task.status.state.is_terminal());
                self.task = Some(task.clone());
            }
            StreamResponse::StatusUpdate(update) => self.ends += usize::from(update.status.state.is_terminal()),
            StreamResponse::ArtifactUpdate(_) | StreamResponse::Message(_) => {}
        }
        if let StreamResponse::ArtifactUpdate(update) = &event {
            self.texts.extend(update.artifact.parts.iter().filter_map(|part| part.as_text()));
        } else if let StreamResponse::Task(task) = &event {
            self.texts
                .extend(task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(|part| part.as_text()));
        }
        match &mut self.task {
            Some(task) => drop(task.apply(&event)),
            None => panic!("{event:?} came before the task"),
        }
    }
}

/// Goes on from what was told, and now and then from a new process.
async fn follow(client: &Client, seed: u64) -> Told {
    let (mut dice, mut told) = (Dice(!seed), Told::default());
    let mut stream: Option<TaskStream> = None;
    let context = CallContext::default();
    loop {
        let following = match &mut stream {
            Some(stream) => stream,
            None => {
                let opened = match told.task.clone() {
                    None => client.stream(&context, say("hello")).await,
                    Some(told) => client.resume(&context, told.id.clone(), told).await,
                };
                stream.insert(opened.unwrap())
            }
        };
        match tokio::time::timeout(PATIENCE, following.next()).await {
            Err(_) => following.look(),
            Ok(Ok(Some(update))) => told.take(update),
            Ok(Ok(None)) => return told,
            Ok(Err(error)) => panic!("{error}"),
        }
        match dice.roll(8) {
            // The process dies: only what was told is left.
            0 if told.task.is_some() => stream = None,
            1 => stream.iter_mut().for_each(TaskStream::look),
            _ => {}
        }
    }
}

#[tokio::test]
async fn every_event_comes_once_whatever_breaks_and_however_often_it_is_looked() {
    for (seed, is_numbered) in (0..SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
        let (peer, model) = agent(seed, is_numbered).await;
        // A message is sent again only where that is safe, and here it is not.
        model.lock().made = 1;
        let client = client(peer.url(), |peer| {
            peer.retries = quick(200);
            peer.limits.poll = Some(PATIENCE * 4);
        });
        let told = tokio::time::timeout(crate::HANG_GUARD, follow(&client, seed)).await.expect("it comes to its end");
        let about = format!("seed {seed}, numbered {is_numbered}, asked {:?}", peer.story());
        assert_eq!(told.texts, text(ITEMS), "{about}");
        assert_eq!((told.ends, told.gaps), (1, Vec::new()), "{about}");
        assert_eq!(told.task.unwrap().status.state, TaskState::Completed, "{about}");
        assert_eq!(peer.story().iter().filter(|asked| *asked == "SendStreamingMessage").count(), 1, "{about}");
    }
}

#[tokio::test]
async fn what_was_told_before_and_is_gone_is_a_gap() {
    let peer = usual(
        || events(&[working("one "), event(chunk("two "))]),
        |_| error(-32004, "it has ended"),
        |_| task(COMPLETED, "one three"),
    )
    .await;
    let client = client(peer.url(), |_| {});
    let told: Task = serde_json::from_value(task(WORKING, "one two ")).unwrap();
    let mut stream = client.resume(&CallContext::default(), "t".into(), told).await.unwrap();
    assert!(matches!(stream.next().await, Ok(Some(Update::Gap(_)))), "it is not what was told");
    let mut told = Told { task: stream.task().cloned(), ..Told::default() };
    while let Some(update) = stream.next().await.unwrap() {
        told.take(update);
    }
    assert_eq!((told.texts.as_str(), told.ends), ("one three", 1), "the artifact comes whole");
    assert_eq!(peer.story(), ["SubscribeToTask", "GetTask"], "nothing is sent");
}

#[tokio::test]
async fn a_look_ends_a_wait_and_finds_the_end_beside_a_silent_connection() {
    for (subscription, asked) in [
        // Without subscriptions the task is polled, the next time in an hour.
        (error as fn(i64, &str) -> Reply, vec!["SubscribeToTask", "GetTask", "GetTask"]),
        (|_, _| events_then_silence(&[working("one ")]), vec!["SubscribeToTask", "GetTask"]),
    ] {
        let polls = asked.len() - 2;
        let peer = usual(
            || error(-32601, "nothing is sent"),
            move |_| subscription(-32004, "there are no subscriptions"),
            move |before| if before < polls { task(WORKING, "one ") } else { task(COMPLETED, "one two") },
        )
        .await;
        let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_secs(3_600)));
        let mut stream = client.subscribe(&CallContext::default(), "t".into()).await.unwrap();
        let Ok(Some(Update::Event(first))) = stream.next().await else { panic!("it begins with the task") };
        assert!(matches!(*first, StreamResponse::Task(_)));
        assert!(tokio::time::timeout(PATIENCE * 10, stream.next()).await.is_err(), "there is no news");
        stream.look();
        let mut told = Told { task: stream.task().cloned(), ..Told::default() };
        let rest = async {
            while let Some(update) = stream.next().await.unwrap() {
                told.take(update);
            }
        };
        tokio::time::timeout(crate::HANG_GUARD, rest).await.expect("the look finds the end");
        assert_eq!((told.texts.as_str(), told.ends), ("two", 1));
        assert_eq!(peer.story(), asked);
    }
}

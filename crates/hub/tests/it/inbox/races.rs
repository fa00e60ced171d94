//! A question is decided once, whoever is there at the same time.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use serde_json::json;
use switchboard_engine::Seq;

use super::{asked, decide, ended, items, say, server, words};
use crate::running::folder;

const ROUNDS: u64 = 6;
const DECIDERS: usize = 100;

/// The order in which all begin.
fn shuffled<T>(seed: u64, mut all: Vec<T>) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for at in (1..all.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.swap(at, state as usize % (at + 1));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_deciders_the_owner_and_an_agent_that_goes_on_by_itself_one_ends_the_wait() {
    let data = folder();
    let running = Arc::new(server(data.path()).await);
    for seed in 0..ROUNDS {
        let id = asked(&running, "bob", "echo", "ask").await;
        let (task, question) =
            id.rsplit_once('.').map(|(task, seq)| (task.to_owned(), Seq(seq.parse().unwrap()))).unwrap();
        let mut all: Vec<BoxFuture<'static, bool>> = Vec::new();
        for number in 0..DECIDERS {
            let (running, id) = (running.clone(), id.clone());
            let key = ["ann", "oli", "ole", "bob", "vic", "bea"][number % 6];
            all.push(Box::pin(async move {
                let decision = json!({ "decision": "answer", "text": format!("decided {number}") });
                let (status, answer) = decide(&running, key, &id, decision).await;
                let right: &[u16] = match key {
                    "vic" => &[403],
                    "bea" => &[404],
                    _ => &[200, 409],
                };
                assert!(right.contains(&status), "{key}: {status} {answer}");
                status == 200
            }));
        }
        for number in 0..3 {
            let (running, task) = (running.clone(), task.clone());
            all.push(Box::pin(async move {
                say(&running, "bob", &task, &format!("said {number}")).await;
                false
            }));
        }
        {
            let (running, task) = (running.clone(), task.clone());
            all.push(Box::pin(async move { running.engine.settled(&task.as_str().into(), question).await.is_ok() }));
        }
        let begun = shuffled(seed, all).into_iter().map(tokio::spawn);
        let won = join_all(begun).await.into_iter().filter(|won| *won.as_ref().unwrap()).count();
        let end = ended(&running, &task).await;
        // What the owner says after the decision is read by the turn after it, which ends the task with it.
        let (_, page) =
            running.get(&format!("/api/feed?from=oldest&pageSize=100&topic=inbox.%23&task={task}"), "ann").await;
        let topics = page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap());
        let (mut opened, mut decided) = (0, 0);
        for topic in topics {
            opened += usize::from(topic == "inbox.opened.echo");
            decided += usize::from(topic == "inbox.decided.echo");
        }
        assert_eq!(opened, 1, "seed {seed}");
        let is_owners = decided == 1 && won == 0;
        let is_anothers = won == 1 && decided <= 1;
        assert!(is_owners || is_anothers, "seed {seed}: {won} have won, {decided} decisions, {}", words(&end));
        assert!(items(&running, "ann", "").await.is_empty());
    }
    Arc::into_inner(running).unwrap().stop().await;
}

//! Two servers that call each other through a peer that drops what would tell them so.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::CHAIN_KEY;
use switchboard_engine::clock::SimulatedClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::world::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

/// Forwards requests one by one, without the delegation chain of their messages.
async fn strip(listener: TcpListener, to: SocketAddr) {
    while let Ok((from, _)) = listener.accept().await {
        tokio::spawn(strip_one(from, to));
    }
}

async fn strip_one(mut from: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if from.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            break (head, bytes.split_off(end + 4));
        }
    };
    let body = match serde_json::from_slice::<Value>(&body) {
        Ok(mut request) => {
            if let Some(metadata) = request["params"]["message"]["metadata"].as_object_mut() {
                metadata.remove(CHAIN_KEY).expect("there is a chain");
            }
            request.to_string()
        }
        Err(_) => String::new(),
    };
    let is_kept = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !["content-length", "connection"].iter().any(|dropped| name.eq_ignore_ascii_case(dropped))
    };
    let head: Vec<&str> = head.lines().filter(is_kept).collect();
    let more = format!("connection: close\r\ncontent-length: {}", body.len());
    let mut there = TcpStream::connect(to).await?;
    there.write_all(format!("{}\r\n{more}\r\n\r\n{body}", head.join("\r\n")).as_bytes()).await?;
    let (mut asks, mut answers) = from.split();
    let (mut answered, _asked) = there.split();
    let mut nothing = Vec::new();
    tokio::select! {
        copied = tokio::io::copy(&mut answered, &mut answers) => copied.map(drop),
        gone = asks.read_to_end(&mut nothing) => gone.map(drop),
    }
}

/// All tasks of a server, by their states.
async fn states(running: &Running) -> Vec<String> {
    let (status, page) = running.get("/api/tasks?pageSize=100", "ann").await;
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["state"].as_str().unwrap().to_owned()).collect()
}

fn have_ended(states: &[String]) -> bool {
    states.iter().all(|state| ["completed", "failed", "canceled", "rejected"].contains(&state.as_str()))
}

#[tokio::test]
async fn a_loop_through_a_peer_that_strips_the_chain_stands_still_and_ends_with_its_root() {
    for is_canceled in [true, false] {
        let (data, files) = ([folder(), folder()], [folder(), folder()]);
        let clock = SimulatedClock::at(START);
        // The first server is told of the second one's address before that has one.
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let write = |index: usize, url: String, more: &str| {
            let headers = "{ Authorization: Bearer ann }";
            let agents = format!("agents:\n  - name: front\n    url: {url}\n    headers: {headers}\n{more}");
            std::fs::write(files[index].path().join("agents.yaml"), agents).unwrap();
        };
        write(0, format!("http://{}/a2a/front", door.local_addr().unwrap()), "    maxParallel: 2\n    deadline: 10m\n");
        let first = Running::of_workspace_at(data[0].path(), files[0].path(), &clock).await;
        write(1, format!("http://{}/a2a/front", first.address), "");
        let second = Running::of_workspace_at(data[1].path(), files[1].path(), &clock).await;
        let stripping = tokio::spawn(strip(door, second.address));
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let (status, answer) = first.post("/a2a/front/message:send", "ann", &body).await;
        assert_eq!(status, 200, "{answer}");
        let root = answer["task"]["id"].as_str().unwrap();
        let full = async { while states(&first).await.len() < 3 {} };
        tokio::time::timeout(crate::HANG_GUARD, full).await.expect("it goes round");
        // Others find their way through both servers meanwhile, and nothing is added.
        for _ in 0..20 {
            assert_eq!((states(&first).await.len(), states(&second).await.len()), (3, 2), "it stands still");
        }
        let ends = async {
            if is_canceled {
                let (status, canceled) = first.post(&format!("/tasks/{root}:cancel"), "ann", &json!({})).await;
                assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
            }
            while !have_ended(&states(&first).await) || !have_ended(&states(&second).await) {}
        };
        passing(&clock, STEP, ends).await;
        let (_, task) = first.get(&format!("/tasks/{root}"), "ann").await;
        let state = if is_canceled { "TASK_STATE_CANCELED" } else { "TASK_STATE_FAILED" };
        assert_eq!(task["status"]["state"], state, "{task}");
        stripping.abort();
        first.stop().await;
        second.stop().await;
    }
}

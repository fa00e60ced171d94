//! The same work asked for again too soon: refused at every way in, with the time to wait; and settings that are read again.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::routing::UnknownSkill;
use switchboard_host::config::time_span::TimeSpan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{Running, START, folder};

fn cooling(config: &mut Config) {
    config.hub.routing.cooldowns.0.insert("acting".to_owned(), TimeSpan::from_minutes(1));
}

/// The status, the header `Retry-After` and the body of an answer.
async fn post(running: &Running, path: &str, body: &Value) -> (u16, Option<String>, Value) {
    let (mut stream, body) = (TcpStream::connect(running.address).await.unwrap(), body.to_string());
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer bob\r\n");
    let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}{length}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("retry-after").then(|| value.to_owned())
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.lines().find_map(header), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn work_that_cools_down_is_refused_with_the_time_to_wait() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = Running::with(data.path(), clock.clone(), cooling, Settings::default()).await;
    let dispatched = json!({ "message": "hello", "skill": "acting", "wait": "30s" });
    let chat = json!({ "agent": "echo", "message": "hello", "skill": "acting" });
    let parts = json!([{ "text": "hello" }]);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": { "skill": "acting" } });
    let a2a = json!({ "message": message });
    assert_eq!(post(&running, "/api/dispatch", &dispatched).await.0, 200);
    clock.advance(Duration::from_secs(20));
    let (status, retry, refusal) = post(&running, "/api/dispatch", &dispatched).await;
    assert_eq!((status, retry.as_deref(), &refusal["code"]), (429, Some("40"), &json!("COOLDOWN")), "{refusal}");
    let (status, retry, refusal) = post(&running, "/api/a2a/chat", &chat).await;
    assert_eq!((status, retry.as_deref(), &refusal["success"]), (429, Some("40"), &json!(false)), "{refusal}");
    assert_eq!(refusal["code"], "COOLDOWN");
    let tool = json!({ "message": "hello", "skill": "acting" });
    let (status, retry, refusal) = post(&running, "/api/tools/a2a_echo", &tool).await;
    assert_eq!((status, retry.as_deref(), &refusal["code"]), (429, Some("40"), &json!("COOLDOWN")), "{refusal}");
    assert_eq!((&refusal["retryable"], refusal["error"].is_string()), (&json!(true), true), "{refusal}");
    let (status, retry, refusal) = post(&running, "/a2a/message:send", &a2a).await;
    assert_eq!((status, retry.as_deref()), (429, Some("40")), "{refusal}");
    assert!(refusal.to_string().contains("COOLDOWN"), "{refusal}");
    // Other work goes on, and so does this once its time is over.
    let mut other = dispatched.clone();
    other["metadata"] = json!({ "cooldownKey": "o/r#5" });
    assert_eq!(post(&running, "/api/dispatch", &other).await.0, 200);
    clock.advance(Duration::from_secs(40));
    assert_eq!(post(&running, "/api/dispatch", &dispatched).await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn rules_of_routing_are_taken_up_when_settings_are_read_again() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let acting = json!({ "message": "hello", "skill": "acting", "wait": "30s" });
    for _ in 0..2 {
        assert_eq!(post(&running, "/api/dispatch", &acting).await.0, 200);
    }
    let unknown = json!({ "message": "hello", "skill": "flying" });
    let (_, _, before) = post(&running, "/api/dispatch", &unknown).await;
    let mut config = Config::default();
    cooling(&mut config);
    config.hub.routing.unknown_skill = UnknownSkill::Refuse;
    running.reloads.tell(&config);
    let (status, _, after) = post(&running, "/api/dispatch", &unknown).await;
    assert_eq!((status, after["error"]["message"].as_str().unwrap().contains("flying")), (404, true), "{after}");
    assert_ne!(before["error"]["message"], after["error"]["message"], "there is no default agent here");
    assert_eq!(post(&running, "/api/dispatch", &acting).await.0, 200);
    assert_eq!(post(&running, "/api/dispatch", &acting).await.0, 429);
    running.reloads.tell(&Config::default());
    assert_eq!(post(&running, "/api/dispatch", &acting).await.0, 200);
    running.stop().await;
}

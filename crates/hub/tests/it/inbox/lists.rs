//! Lists of the inbox: open questions with what they ask, stage by stage and page by page, and what was decided.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use super::{approve, asked, decide, ended, items, server, server_at};
use crate::running::{START, folder};

fn ids(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_question_is_in_the_inbox_with_what_it_asks() {
    let data = folder();
    let clock = SimulatedClock::at(START);
    let running = server_at(data.path(), &clock).await;
    let plain = asked(&running, "bob", "echo", "ask").await;
    clock.advance(Duration::from_secs(1));
    let gate = asked(&running, "bob", "echo", "gate reject 3600").await;
    clock.advance(Duration::from_secs(1));
    let sign_in = asked(&running, "bob", "other", "sign-in").await;
    clock.advance(Duration::from_secs(1));
    let choice = asked(&running, "cat", "echo", "choose").await;

    let all = items(&running, "vic", "").await;
    assert_eq!(ids(&all), [&plain, &gate, &sign_in, &choice].map(String::as_str));
    let member = |name: &str| all.iter().map(|item| item[name].as_str().unwrap_or("-")).collect::<Vec<_>>();
    assert_eq!(member("kind"), ["question", "gate", "auth", "question"]);
    assert_eq!(member("stage"), ["caller", "operator", "caller", "caller"]);
    assert_eq!(member("reviewer"), ["caller", "operator", "caller", "caller"]);
    assert_eq!(member("title"), ["what now?", "may I deploy?", "sign in first", "which colour?"]);
    assert_eq!(member("onTimeout"), ["fail", "reject", "fail", "fail"]);
    assert_eq!(
        (member("owner")[3], member("agent")[2], member("mode")[1], member("skill")[1]),
        ("cat", "other", "gated", "deploy")
    );
    let due = switchboard_engine::clock::later(START, Duration::from_secs(3600)).to_string();
    assert_eq!(all[1]["dueAt"], json!(due), "{}", all[1]);
    let options = json!([{ "id": "red", "label": "red" }, { "id": "b", "label": "Blue" }]);
    assert_eq!((&all[3]["options"], &all[3]["question"]["parts"][0]["text"]), (&options, &json!("which colour?")));

    // The caller has had its time.
    clock.advance(Duration::from_secs(5 * 60 + 1));
    for (query, right) in [
        ("?stage=operator", vec![&plain, &gate, &sign_in, &choice]),
        ("?stage=caller", vec![]),
        ("?kind=gate", vec![&gate]),
        ("?kind=auth&agent=other", vec![&sign_in]),
        ("?agent=none", vec![]),
    ] {
        assert_eq!(
            ids(&items(&running, "vic", query).await),
            right.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
            "{query}"
        );
    }
    let (mut paged, mut query) = (Vec::new(), "?pageSize=3".to_owned());
    loop {
        let (_, page) = running.get(&format!("/api/inbox{query}"), "vic").await;
        paged.extend(ids(page["items"].as_array().unwrap()).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?pageSize=3&after={next}");
    }
    assert_eq!(paged, [plain, gate.clone(), sign_in, choice]);
    for (query, key) in
        [("state=gone", "state"), ("stage=all", "stage"), ("kind=x", "kind"), ("after=x", "after"), ("q=x", "q")]
    {
        let (status, refusal) = running.get(&format!("/api/inbox?{query}"), "vic").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{refusal}");
    }

    let (status, pending) = running.get("/api/hitl/pending", "bob").await;
    let short = &pending["data"]["items"][1];
    assert_eq!(
        (status, &short["requestId"], &short["question"]),
        (200, &json!(gate), &json!("may I deploy?")),
        "{pending}"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_question_that_is_too_long_for_a_list_is_shown_by_its_id() {
    let data = folder();
    let running = server(data.path()).await;
    let id = asked(&running, "bob", "echo", "long").await;
    let listed = items(&running, "bob", "").await;
    assert!(listed[0]["question"].is_null() && listed[0]["questionBytes"].as_u64() > Some(200_000), "it is left out");
    let (status, shown) = running.get(&format!("/api/inbox/{id}"), "bob").await;
    assert_eq!((status, shown["question"]["parts"][0]["text"].as_str().map(str::len)), (200, Some(200_000)));
    running.stop().await;
}

#[tokio::test]
async fn what_was_decided_stays_with_who_decided_it_over_a_restart() {
    let data = folder();
    let running = server(data.path()).await;
    let first = asked(&running, "bob", "echo", "gate").await;
    let second = asked(&running, "bob", "other", "ask").await;
    let rejection = json!({ "decision": "reject", "feedback": "not on a Friday" });
    assert_eq!(decide(&running, "nan", &first, rejection).await.0, 200);
    ended(&running, &first).await;
    running.stop().await;

    // The question of the other one is open as it was.
    let running = server(data.path()).await;
    assert_eq!(ids(&items(&running, "ann", "").await), [second.as_str()]);
    assert_eq!(decide(&running, "oli", &second, approve()).await.0, 200);
    assert!(super::words(&ended(&running, &second).await).starts_with("Approve: approved + "));
    let decided = items(&running, "vic", "?state=decided").await;
    assert_eq!(ids(&decided), [second.as_str(), first.as_str()]);
    let is = &decided[1]["decided"];
    assert_eq!(
        [&is["by"], &is["decision"], &is["text"]],
        [&json!("nan"), &json!("reject"), &json!("not on a Friday")],
        "{is}"
    );
    let (_, shown) = running.get(&format!("/api/inbox/{first}"), "bob").await;
    assert_eq!([&shown["state"], &shown["decided"], &shown["title"]], [&json!("decided"), is, &json!("may I deploy?")]);
    let (_, page) = running.get("/api/feed?from=oldest&topic=audit.inbox.decide", "ann").await;
    let line = &page["items"][0]["payload"];
    let right = json!({ "decision": "reject", "feedback": "not on a Friday" });
    assert_eq!([&line["subject"], &line["after"], &line["caller"]], [&json!(first), &right, &json!("nan")], "{line}");
    let (_, page) = running.get("/api/feed?from=oldest&topic=inbox.decided.*", "ann").await;
    assert_eq!(page["items"][0]["payload"]["decision"], json!("reject"));
    running.stop().await;
}

//! What reviewers decide, and what becomes of it.

use serde_json::{Value, json};
use switchboard_engine::{QUESTION_KEY, Verdict};

use super::{AGENTS, Gates, state, text};

#[tokio::test]
async fn a_gated_skill_begins_as_it_was_approved_or_changed_or_not_at_all() {
    let gates = Gates::start().await;
    // What is free begins at once.
    assert_eq!(state(&gates.send("ops", "file", "").await), "COMPLETED");

    let approved = gates.held("hello", "").await;
    let asked = gates.reach(&approved, "AUTH_REQUIRED").await;
    let question = &asked["metadata"][QUESTION_KEY];
    assert_eq!(
        (&question["reviewer"], &question["mode"], &question["radius"], &question["skill"], &question["then"]),
        (&json!("operator"), &json!("gated"), &json!("repo"), &json!("hello"), &json!("reject"))
    );
    let data = &asked["status"]["message"]["parts"][1]["data"];
    assert_eq!((&data["type"], &data["options"]), (&json!("hitl_request"), &json!(["approve", "reject", "modify"])));
    assert!(text(&asked).starts_with("Approve \"hello\" of agent ops?"), "{asked}");
    gates.decide("oli", &approved, Verdict::Approve, "go ahead").await.unwrap();
    let task = gates.reach(&approved, "COMPLETED").await;
    assert_eq!(task["metadata"]["switchboard/gate"]["turn"], 1, "{task}");
    assert!(task["history"].to_string().contains("go ahead"), "the decision stays in the log: {task}");

    let rejected = gates.held("hello", "").await;
    gates.decide("oli", &rejected, Verdict::Reject, "not on Fridays").await.unwrap();
    assert_eq!(text(&gates.reach(&rejected, "REJECTED").await), "not on Fridays");

    // A reviewer's text takes the place of the caller's.
    let changed = gates.held("", "big:9").await;
    gates.decide("oli", &changed, Verdict::Modify, "data").await.unwrap();
    let task = gates.reach(&changed, "COMPLETED").await;
    assert!(task["artifacts"][0]["parts"][0]["data"].is_object(), "{task}");

    // A gate takes no answer: it asks once more.
    let answered = gates.held("hello", "").await;
    gates.decide("oli", &answered, Verdict::Answer, "yes").await.unwrap();
    gates.until(&format!("/a2a/tasks/{answered}"), "bob", |task| text(task).contains("decides nothing")).await;
    gates.decide("oli", &answered, Verdict::Approve, "").await.unwrap();
    gates.reach(&answered, "COMPLETED").await;
    gates.stop().await;
}

#[tokio::test]
async fn a_notified_skill_begins_at_once_and_says_so_in_the_journal() {
    let gates = Gates::start().await;
    let task = gates.send("ops", "data", "").await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let (_, page) = gates.running.get("/api/feed?from=oldest&topic=inbox.notice.%23", "vic").await;
    let [notice] = page["items"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!(notice["topic"], "inbox.notice.ops");
    let payload = json!({ "agent": "ops", "skill": "data", "mode": "notification", "radius": "project" });
    assert_eq!((&notice["payload"], &notice["source"]["taskId"]), (&payload, &task["id"]), "{notice}");
    let seen = |page: Value| page["items"].as_array().unwrap().len();
    let path = "/api/feed?from=oldest&topic=inbox.notice.%23";
    assert_eq!(seen(gates.running.get(path, "bob").await.1), 1, "it is about bob's task");
    assert_eq!(seen(gates.running.get(path, "bea").await.1), 0);
    assert_eq!(seen(gates.running.get(path, "eva").await.1), 0, "eva sees another agent's");
    gates.stop().await;
}

#[tokio::test]
async fn every_question_of_a_compound_skill_is_a_checkpoint_of_an_operator() {
    let gates = Gates::start().await;
    let id = gates.held("ask", "").await;
    gates.decide("oli", &id, Verdict::Approve, "").await.unwrap();
    let path = format!("/a2a/tasks/{id}");
    let asked = gates.until(&path, "bob", |task| task["metadata"][QUESTION_KEY]["checkpoint"] == 1).await;
    assert_eq!((state(&asked), &asked["metadata"][QUESTION_KEY]["reviewer"]), ("AUTH_REQUIRED", &json!("operator")));
    let owners = json!({ "parts": [{ "text": "the owner's" }], "taskId": id.as_str() });
    gates.running.send_with("bob", "ops", owners, &[]).await;
    assert!(gates.decide("bob", &id, Verdict::Answer, "the owner's").await.is_err());
    gates.decide("oli", &id, Verdict::Answer, "the operator's").await.unwrap();
    // The owner's message is the next turn, which names no skill.
    let told = gates.until(&path, "bob", |task| text(task).contains("of agent ops?")).await;
    assert!(told["artifacts"].to_string().contains("you said: the operator's"), "{told}");
    gates.stop().await;
}

#[tokio::test]
async fn the_roster_shows_how_far_people_take_part() {
    let gates = Gates::start().await;
    let (_, ops) = gates.running.get("/api/agents/ops", "bob").await;
    let policy = &ops["policy"];
    assert_eq!((&policy["mode"], &policy["reviewer"]), (&json!("compound"), &json!("operator")), "{policy}");
    let skill = |name: &str| policy["skills"][name]["mode"].clone();
    assert_eq!(
        ["hello", "data", "hold", "ask", "file"].map(skill),
        ["gated", "notification", "veto", "compound", "autonomous"]
    );
    let hello = json!({ "mode": "gated", "radius": "repo", "reviewer": "operator", "ttlMs": 1_800_000,
        "onTimeout": "reject" });
    assert_eq!((&policy["skills"]["hello"], &policy["skills"]["hold"]["ttlMs"]), (&hello, &json!(60_000)));
    let (_, open) = gates.running.get("/api/agents/open", "bob").await;
    assert_eq!(open["policy"]["mode"], "autonomous", "{open}");
    gates.stop().await;
}

#[tokio::test]
async fn a_radius_sets_the_least_mode_and_the_settings_say_which() {
    let agents = "agents:
  - name: ops
    builtin: probe
    policy:
      skills: { hello: { radius: fleet }, data: { radius: self }, file: { radius: public, mode: autonomous }, tol: { mode: gated } }
";
    let gates =
        Gates::with(agents, Vec::new(), |config| config.hub.inbox.minimum.own = config.hub.inbox.minimum.repo).await;
    let (_, ops) = gates.running.get("/api/agents/ops", "ann").await;
    let mode = |name: &str| ops["policy"]["skills"][name]["mode"].clone();
    assert_eq!(["hello", "data", "file", "tool"].map(mode), ["gated", "veto", "autonomous", "autonomous"]);
    assert_eq!(
        ops["problems"],
        json!(["policy.skills.tol: it has no such skill, so nothing is gated by this"]),
        "a word that is misspelt does not pass in silence"
    );
    gates.held("hello", "").await;
    gates.held("data", "").await;
    assert_eq!(state(&gates.send("ops", "file", "").await), "COMPLETED");
    gates.stop().await;
}

#[tokio::test]
async fn a_policy_that_is_taken_back_leaves_what_was_asked_to_its_reviewer() {
    let gates = Gates::start().await;
    let id = gates.held("hello", "").await;
    let free = "agents: [{ name: ops, builtin: probe }]\n";
    gates.reload(free, |ops| ops["policy"]["mode"] == "autonomous").await;
    assert_eq!(state(&gates.send("ops", "hello", "").await), "COMPLETED");
    gates.decide("oli", &id, Verdict::Approve, "as it was asked").await.unwrap();
    let task = gates.reach(&id, "COMPLETED").await;
    // The agent got what the caller wrote, not the reviewer's words.
    assert!(!task["artifacts"].to_string().contains("as it was asked"), "{task}");
    gates.reload(AGENTS, |ops| ops["policy"]["mode"] == "compound").await;
    gates.held("hello", "").await;
    gates.stop().await;
}

//! `switchboard webhooks` and what it is about: a message with a webhook, a receiver, and an operator between them.

use std::time::Instant;

use serde_json::{Value, json};

use crate::http::PATIENCE;
use crate::program::{Run, Workspace};
use crate::receiver::Receiver;
use crate::server::Server;

/// Loopback receivers may be called, and what fails is given up at once.
const SETTINGS: &str = "webhooks:\n  allowedCidrs: [127.0.0.1/32]\n  retries: []\n";

fn workspace() -> Workspace {
    Workspace::new().file("switchboard.yaml", SETTINGS)
}

/// Sends a message with a webhook; the id of its task.
#[track_caller]
fn send(server: &Server, agent: &str, text: &str, receiver: &Receiver) -> String {
    let answer = server.send_with(agent, text, &receiver.config());
    assert_eq!(answer.status, 200);
    answer.json()["task"]["id"].as_str().unwrap().to_owned()
}

fn list(workspace: &Workspace, arguments: &[&str]) -> Vec<Value> {
    let run = workspace.run(&[&["webhooks", "list", "-o", "json"], arguments].concat());
    run.json()["webhooks"].as_array().unwrap().clone()
}

/// Asks again until the answer is what is waited for.
#[track_caller]
fn until(workspace: &Workspace, arguments: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let answer = workspace.run(arguments).json();
        if wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{arguments:?}: {answer}");
    }
}

#[track_caller]
fn until_finished(workspace: &Workspace, task: &str) -> Value {
    let finished = |answer: &Value| answer["webhooks"][0]["state"] == "finished";
    until(workspace, &["webhooks", "list", "-o", "json", "--task", task], finished)["webhooks"][0].clone()
}

#[track_caller]
fn fails(run: &Run, wanted: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    assert!(run.stderr.contains(wanted), "no {wanted:?} in {}", run.stderr);
}

#[test]
fn a_message_with_a_webhook_arrives_signed_and_operators_see_it_without_secrets() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    let nothing = workspace.run(&["webhooks", "list"]);
    assert!(
        nothing.stdout.starts_with("there are no webhooks; a caller sets one with a message"),
        "{}",
        nothing.stdout
    );
    let task = send(&server, "echo", "hello", &receiver);
    let deliveries = receiver.heard("TASK_STATE_COMPLETED");
    let last = deliveries.last().unwrap();
    assert_eq!(last.json()["statusUpdate"]["taskId"], task.as_str(), "{}", last.body);
    for (name, value) in [
        ("content-type", "application/a2a+json"),
        ("a2a-version", "1.0"),
        ("x-a2a-notification-token", "secret-token"),
        ("authorization", "Basic secret-credentials"),
    ] {
        assert_eq!(last.header(name), value, "{name}");
    }
    let secret = workspace.run(&["webhooks", "secret", "show", "-o", "json"]).json();
    assert_eq!((&secret["caller"], secret["secrets"].as_array().unwrap().len()), (&json!("local"), 1));
    let expected = last.signed_with(secret["secrets"][0].as_str().unwrap());
    assert_eq!(last.signatures(), [expected]);

    let webhook = until_finished(&workspace, &task);
    assert_eq!(webhook["delivered"], deliveries.len());
    assert_eq!(webhook["endpoint"], format!("http://{}", receiver.address));
    let number = webhook["webhook"].to_string();
    let shown = workspace.run(&["webhooks", "show", &number, "-o", "json"]).json();
    assert_eq!(shown["deliveries"][0]["about"], "completed");
    let text = workspace.run(&["webhooks", "show", &number]).stdout;
    assert!(text.contains("there is more to tell  no") && text.contains("delivered"), "{text}");
    let all = [text, shown.to_string(), webhook.to_string(), workspace.run(&["webhooks", "list"]).stdout].concat();
    assert!(!all.contains("secret-"), "{all}");
    let other = workspace.run(&["webhooks", "list", "--state", "paused"]);
    assert_eq!(other.stdout, "no webhook is like that; switchboard webhooks list shows all of them\n");
    server.stop();
}

#[test]
fn dead_letters_say_why_and_are_sent_once_more_beside_a_server_and_by_the_next_one() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    let none = workspace.run(&["webhooks", "dead-letters"]);
    assert_eq!(none.stdout, "there are no dead letters: no delivery was given up\n");
    receiver.answers(404);
    // One after the other, so that the first dead letter is one of this task.
    let task = send(&server, "echo", "one", &receiver);
    let dead = until_finished(&workspace, &task)["dead"].as_u64().unwrap();
    let other = send(&server, "echo", "two", &receiver);
    until_finished(&workspace, &other);
    let refused = receiver.count();
    let listed = workspace.run(&["webhooks", "dead-letters", "-o", "json"]).json();
    let letters = listed["deadLetters"].as_array().unwrap();
    assert_eq!((letters.len(), &listed["next"]), (refused, &Value::Null));
    assert!(letters[0]["problem"].as_str().unwrap().contains("answered 404"), "{listed}");
    let text = workspace.run(&["webhooks", "dead-letters", "--limit", "1"]).stdout;
    let first = letters[0]["delivery"].to_string();
    assert!(text.contains("answered 404") && text.contains(&task), "{text}");
    assert!(text.contains(&format!("there are more: switchboard webhooks dead-letters --after {first}")), "{text}");
    assert!(text.contains("switchboard webhooks retry --all-dead"), "{text}");
    assert!(workspace.run(&["webhooks", "list"]).stdout.contains("switchboard webhooks dead-letters says why"));

    receiver.answers(200);
    let before = receiver.got(refused);
    let run = workspace.run(&["webhooks", "retry", &first]);
    assert!(run.stdout.starts_with("1 delivery is sent once more; "), "{}{}", run.stdout, run.stderr);
    let again = receiver.got(refused + 1).pop().unwrap();
    let same = before.iter().find(|delivery| delivery.header("webhook-id") == again.header("webhook-id"));
    assert_eq!(same.unwrap().body, again.body, "the same under the same name");
    let left = |count: usize| move |answer: &Value| answer["deadLetters"].as_array().unwrap().len() == count;
    until(&workspace, &["webhooks", "dead-letters", "-o", "json"], left(refused - 1));
    server.stop();

    // Each of the two tasks has a dead artifact and a dead end, and one of the four is delivered by now.
    assert_eq!((dead, refused), (2, 4));
    let run = workspace.run(&["webhooks", "retry", "--all-dead", "--task", &task]);
    assert_eq!(run.stdout, "1 delivery is sent once more as soon as a server runs on this data\n");
    let run = workspace.run(&["webhooks", "retry", "--all-dead"]);
    assert_eq!(run.stdout, "2 deliveries are sent once more as soon as a server runs on this data\n");
    assert_eq!(receiver.count(), refused + 1, "nothing is sent without a server");
    let server = Server::start(&workspace);
    receiver.got(refused + 4);
    until(&workspace, &["webhooks", "dead-letters", "-o", "json"], left(0));
    let run = workspace.run(&["webhooks", "retry", "--all-dead"]);
    assert_eq!(run.stdout, "no delivery was given up, so there is nothing to send\n");
    assert_eq!(workspace.run(&["webhooks", "retry", &first, "-o", "json"]).json()["retried"], 1, "a delivered one too");
    receiver.got(refused + 5);
    server.stop();
}

#[test]
fn a_paused_webhook_waits_and_a_resumed_one_goes_on() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    let task = server.send_with("probe", "hold", &receiver.config());
    let task = task.json()["task"]["id"].as_str().unwrap().to_owned();
    receiver.heard("TASK_STATE_WORKING");
    let number = list(&workspace, &[])[0]["webhook"].to_string();
    let run = workspace.run(&["webhooks", "pause", &number]);
    assert_eq!(
        run.stdout,
        format!("webhook {number} is paused; what it is not told waits for switchboard webhooks resume {number}\n")
    );
    let delivered = receiver.count();
    assert_eq!(server.post(&format!("/a2a/probe/tasks/{task}:cancel"), "", "{}").status, 200);
    let paused = list(&workspace, &["--state", "paused"]);
    assert_eq!((paused.len(), &paused[0]["lags"]), (1, &json!(true)));
    fails(&workspace.run(&["webhooks", "pause", &number]), &format!("webhook {number} is already paused"));
    server.stop();

    // The data alone knows as much.
    fails(&workspace.run(&["webhooks", "pause", &number]), &format!("webhook {number} is already paused"));
    let resumed = workspace.run(&["webhooks", "resume", &number, "-o", "json"]).json();
    assert_eq!(resumed["webhook"]["state"], "active");
    fails(&workspace.run(&["webhooks", "resume", &number]), &format!("webhook {number} is already active"));
    assert_eq!(workspace.run(&["webhooks", "pause", &number]).code, Some(0));
    let server = Server::start(&workspace);
    assert_eq!(receiver.count(), delivered);
    let run = workspace.run(&["webhooks", "resume", &number]);
    assert_eq!(run.stdout, format!("webhook {number} goes on where it was\n"));
    receiver.heard("TASK_STATE_CANCELED");
    until_finished(&workspace, &task);
    for command in ["pause", "resume"] {
        let run = workspace.run(&["webhooks", command, &number]);
        fails(&run, &format!("webhook {number} is finished: its task has ended and it was told of everything"));
    }
    server.stop();
}

#[test]
fn rotated_secrets_overlap_for_as_long_as_was_asked() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    let secrets = || {
        let shown = workspace.run(&["webhooks", "secret", "show", "-o", "json"]).json();
        let secrets = shown["secrets"].as_array().unwrap().iter();
        secrets.map(|secret| secret.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = secrets();
    let run = workspace.run(&["webhooks", "secret", "rotate"]);
    assert!(run.stdout.contains("deliveries are signed with the old ones too until 2"), "{}", run.stdout);
    let both = secrets();
    assert!(both.len() == 2 && both[1] == first[0] && both[0] != first[0], "{both:?}");
    send(&server, "echo", "hello", &receiver);
    for delivery in receiver.heard("TASK_STATE_COMPLETED") {
        assert_eq!(delivery.signatures(), [delivery.signed_with(&both[0]), delivery.signed_with(&both[1])]);
    }
    let run = workspace.run(&["webhooks", "secret", "rotate", "--overlap", "0s"]);
    assert!(run.stdout.contains("the old ones are used no more"), "{}", run.stdout);
    let last = secrets();
    assert!(last.len() == 1 && !both.contains(&last[0]), "{last:?}");
    let before = receiver.count();
    send(&server, "echo", "hello", &receiver);
    for delivery in &receiver.got(before + 1)[before..] {
        assert_eq!(delivery.signatures(), [delivery.signed_with(&last[0])]);
    }
    let key = workspace.run(&["keys", "create", "-o", "json"]).json();
    let key = key["key"]["id"].as_str().unwrap();
    let shown = workspace.run(&["webhooks", "secret", "show", "--caller", key]).stdout;
    assert!(shown.contains(key) && shown.contains("whsec_") && !shown.contains(&last[0]), "{shown}");
    fails(&workspace.run(&["webhooks", "secret", "show", "--caller", "key_0"]), "there is no caller \"key_0\"");
    server.stop();
    assert_eq!(secrets(), last, "also without a server");
    let rotated = workspace.run(&["webhooks", "secret", "rotate", "--overlap", "1h", "-o", "json"]).json();
    assert!(rotated["previousUntil"].is_string() && secrets()[1] == last[0], "{rotated}");
}

#[test]
fn what_is_not_there_is_named() {
    let workspace = Workspace::new();
    for command in [&["list"][..], &["dead-letters"], &["show", "7"], &["retry", "--all-dead"], &["secret", "show"]] {
        let run = workspace.run(&[&["webhooks"], command].concat());
        fails(&run, "there is no data in ");
        assert!(run.stderr.contains("next: name the workspace of the server with --workspace"), "{}", run.stderr);
    }
    assert!(!workspace.path().join(".switchboard").exists(), "looking creates nothing");
    assert_eq!(workspace.run(&["keys", "create"]).code, Some(0));
    for command in ["show", "pause", "resume"] {
        fails(&workspace.run(&["webhooks", command, "7"]), "there is no webhook 7\nnext: switchboard webhooks list");
    }
    fails(&workspace.run(&["webhooks", "retry", "7"]), "there is no delivery 7 that was delivered or given up\nnext: ");
    for arguments in [
        &["retry"][..],
        &["retry", "1", "--all-dead"],
        &["retry", "1", "--task", "t"],
        &["list", "--state", "asleep"],
        &["list", "--limit", "0"],
        &["list", "--limit", "1001"],
        &["show", "one"],
        &["secret", "rotate", "--overlap", "24"],
    ] {
        let run = workspace.run(&[&["webhooks"], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    }
    let neither = workspace.run(&["webhooks", "retry"]).stderr;
    assert!(neither.contains("DELIVERY") && neither.contains("--all-dead"), "{neither}");
}

#[test]
fn many_webhooks_are_listed_in_pages() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    for _ in 0..3 {
        send(&server, "echo", "hello", &receiver);
    }
    let text = workspace.run(&["webhooks", "list", "--limit", "2"]).stdout;
    let next = list(&workspace, &[])[1]["webhook"].to_string();
    assert!(text.contains(&format!("there are more: switchboard webhooks list --after {next}")), "{text}");
    assert_eq!(list(&workspace, &["--after", &next]).len(), 1);
    server.stop();
}

#[test]
fn an_endpoint_is_never_paused_for_longer_than_the_longest_pause() {
    let waits = vec!["1ms"; 16].join(", ");
    let settings = format!(
        "webhooks:\n  allowedHosts: [127.0.0.1]\n  retries: [{waits}]\n  pauseAfter: 1\n  pause: 20ms\n  maxPause: 40ms\n"
    );
    let (workspace, receiver) = (Workspace::new().file("switchboard.yaml", settings), Receiver::start());
    receiver.answers(500);
    let server = Server::start(&workspace);
    send(&server, "echo", "hello", &receiver);
    // If the pause doubled each time, the seventeenth try would be twenty minutes away, and the receiver gives up sooner.
    receiver.got(17);
    server.stop();
}

#[test]
fn webhooks_can_be_turned_off() {
    let settings = "webhooks: { enabled: false, allowedHosts: [127.0.0.1] }\n";
    let (workspace, receiver) = (Workspace::new().file("switchboard.yaml", settings), Receiver::start());
    let server = Server::start(&workspace);
    let card = server.get("/a2a/echo/.well-known/agent-card.json", "").json();
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    let refused = server.send_with("echo", "hello", &receiver.config());
    assert!(refused.status == 400 && refused.text().contains("PUSH_NOTIFICATION_NOT_SUPPORTED"));
    server.stop();
}

#[test]
fn what_is_sent_once_more_while_webhooks_are_off_waits_and_says_so() {
    let (workspace, receiver) = (workspace(), Receiver::start());
    let server = Server::start(&workspace);
    receiver.answers(404);
    let other = send(&server, "echo", "hello", &receiver);
    until_finished(&workspace, &other);
    receiver.answers(410);
    let task = send(&server, "echo", "hello", &receiver);
    let disabled = |answer: &Value| answer["webhooks"][0]["state"] == "disabled";
    let listed = until(&workspace, &["webhooks", "list", "-o", "json", "--task", &task], disabled);
    let number = listed["webhooks"][0]["webhook"].to_string();
    let letters = workspace.run(&["webhooks", "dead-letters", "-o", "json"]).json();
    let letters = letters["deadLetters"].as_array().unwrap();
    let deliveries: Vec<String> = letters.iter().map(|letter| letter["delivery"].to_string()).collect();
    let [first, _, delivery] = &deliveries[..] else { panic!("{letters:?}") };
    server.stop();
    let sent = receiver.count();
    receiver.answers(200);

    let until_enabled = "as soon as webhooks are enabled: set webhooks.enabled to true and start the server again";
    let workspace = workspace.file("switchboard.yaml", format!("{SETTINGS}  enabled: false\n"));
    let run = workspace.run(&["webhooks", "retry", delivery]);
    assert_eq!(
        run.stdout,
        format!("1 delivery is sent once more {until_enabled}\n"),
        "without a server: {}",
        run.stderr
    );
    let server = Server::start(&workspace);
    let run = workspace.run(&["webhooks", "resume", &number]);
    assert_eq!(run.stdout, format!("webhook {number} goes on where it was {until_enabled}\n"), "{}", run.stderr);
    let why = json!("webhooks.enabled is false");
    assert_eq!(workspace.run(&["webhooks", "pause", &number, "-o", "json"]).json().get("waits"), None);
    assert_eq!(workspace.run(&["webhooks", "resume", &number, "-o", "json"]).json()["waits"], why);
    let api = |path: &str| server.post(&format!("/api/webhooks{path}"), "", "").json();
    assert_eq!(api(&format!("/deliveries/{first}:retry"))["waits"], why);
    assert_eq!(api(&format!("/dead-letters:retry?taskId={other}")), json!({ "retried": 1, "waits": why }));
    let none = workspace.run(&["webhooks", "retry", "--all-dead", "-o", "json"]).json();
    assert_eq!(none, json!({ "retried": 0 }), "all there are wait already");
    assert_eq!(api(&format!("/{number}:pause")).get("waits"), None);
    let resumed = api(&format!("/{number}:resume"));
    assert_eq!((&resumed["webhook"]["state"], &resumed["waits"]), (&json!("active"), &why));
    assert_eq!(receiver.count(), sent, "nothing is sent");
    server.stop();

    // And so it is.
    let workspace = workspace.file("switchboard.yaml", SETTINGS);
    let server = Server::start(&workspace);
    // Three once more, and the end of the task that was not told of it.
    receiver.got(sent + 4);
    until_finished(&workspace, &task);
    let again = workspace.run(&["webhooks", "retry", delivery, "-o", "json"]).json();
    assert_eq!(again, json!({ "retried": 1 }), "nothing is in its way");
    server.stop();
}

#[test]
fn a_webhook_behind_a_paused_endpoint_is_listed_with_the_end_of_the_pause() {
    let settings =
        "webhooks:\n  allowedHosts: [127.0.0.1]\n  retries: [1s]\n  pauseAfter: 1\n  pause: 1h\n  maxPause: 1h\n";
    let (workspace, receiver) = (Workspace::new().file("switchboard.yaml", settings), Receiver::start());
    receiver.answers(500);
    let server = Server::start(&workspace);
    send(&server, "echo", "one", &receiver);
    let paused = |answer: &Value| answer["webhooks"][0]["endpointPausedUntil"].is_string();
    let listed = until(&workspace, &["webhooks", "list", "-o", "json"], paused);
    let paused_until = listed["webhooks"][0]["endpointPausedUntil"].as_str().unwrap();
    let second = send(&server, "echo", "two", &receiver);
    let lags = |answer: &Value| answer["webhooks"][0]["lags"] == true;
    let second = until(&workspace, &["webhooks", "list", "-o", "json", "--task", &second], lags);
    assert_eq!(second["webhooks"][0].get("pending"), None, "{second}");
    let text = workspace.run(&["webhooks", "list"]).stdout;
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows.iter().all(|row| row.trim_end().ends_with(paused_until)), "{paused_until}: {text}");
    server.stop();
}

#[test]
fn an_agent_says_what_its_webhooks_are_sent() {
    let agents = "agents: [{ name: quiet, builtin: echo, webhooks: { payload: task, events: stops } }]";
    let (workspace, receiver) = (workspace().file("agents.yaml", agents), Receiver::start());
    let server = Server::start(&workspace);
    let task = send(&server, "quiet", "hello", &receiver);
    until_finished(&workspace, &task);
    let deliveries = receiver.got(1);
    assert_eq!(deliveries.len(), 1, "{deliveries:?}");
    assert_eq!(deliveries[0].json()["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", deliveries[0].body);
    server.stop();
}

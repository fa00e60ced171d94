//! `task get`, `list`, `cancel`, `subscribe`: in the words of the protocol for programs, as lines for people.

use serde_json::{Value, json};

use super::Fleet;

#[test]
fn a_task_is_shown_with_what_it_has_produced() {
    let fleet = Fleet::new();
    let id = fleet.run(&["send", "echo", "hello", "--json"]).json()["task"]["id"].as_str().unwrap().to_owned();
    let text = fleet.run(&["task", "get", "echo", &id, "--history", "1"]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    let expected = "artifact: echo\ntext:\n  hello\n\nhistory-user:\n  hello\n\nsince: TIME\ntask: ID1\ncontext: ID2\nstate: completed\n";
    assert_eq!(fleet.stable(&text.stdout), expected);
    let json = fleet.run(&["task", "get", "-a", "echo", &id, "-o", "json"]).json();
    assert_eq!(
        (&json["id"], &json["status"]["state"]),
        (&Value::from(id.as_str()), &Value::from("TASK_STATE_COMPLETED"))
    );
    assert_eq!(json["history"], Value::Null);
    let data = fleet.run(&["send", "probe", "data", "--json"]).json()["task"]["id"].as_str().unwrap().to_owned();
    assert!(
        fleet.run(&["task", "get", "probe", &data]).stdout.contains("data:\n  {\"probe\":true,"),
        "data is readable"
    );
    assert!(fleet.run(&["task", "get", "probe", &data, "--verbose"]).stdout.contains("  {\n    \"probe\": true,\n"));
}

#[test]
fn what_was_begun_is_waited_for_canceled_and_watched() {
    let fleet = Fleet::new();
    let begun = fleet.run(&["send", "probe", "hold", "--async"]);
    assert_eq!(fleet.stable(&begun.stdout).lines().take(2).collect::<Vec<_>>(), ["task: ID1", "context: ID2"]);
    let next = begun.stderr.lines().last().unwrap().strip_prefix("next: switchboard ").unwrap();
    assert_eq!(fleet.stable(next), "task get probe --wait ID1");
    let id = next.rsplit(' ').next().unwrap();
    assert_eq!(fleet.run(&["task", "get", "probe", id]).code, Some(0));

    let watched = std::thread::scope(|scope| {
        let watched = scope.spawn(|| fleet.run(&["task", "subscribe", "probe", id, "-o", "json", "--stream"]));
        let canceled = fleet.run(&["task", "cancel", "probe", id]);
        assert_eq!(fleet.stable(&canceled.stdout), "task: ID1\ncontext: ID2\nstate: canceled\n");
        watched.join().unwrap()
    });
    let last: Value = serde_json::from_str(watched.stdout.lines().last().unwrap()).unwrap();
    let event = last.get("statusUpdate").or(last.get("task")).unwrap();
    assert_eq!((watched.code, &event["status"]["state"]), (Some(0), &Value::from("TASK_STATE_CANCELED")));
    let again = fleet.run(&["task", "subscribe", "probe", id]);
    assert!(again.stdout.contains("state: canceled"), "one that has ended is told as it is: {}", again.stdout);
    let whole = fleet.run(&["task", "subscribe", "probe", id, "-o", "json"]).json();
    assert_eq!((&whole["id"], &whole["status"]["state"]), (&Value::from(id), &Value::from("TASK_STATE_CANCELED")));

    let held = fleet.begin("probe", "hold");
    let canceled = fleet.run(&["task", "cancel", "probe", &held, "--json"]).json();
    assert_eq!(
        (&canceled["id"], &canceled["status"]["state"]),
        (&Value::from(held), &Value::from("TASK_STATE_CANCELED"))
    );
    let slow = fleet.begin("probe", "sleep:300");
    let waited = fleet.run(&["task", "get", "probe", &slow, "--wait", "--json"]);
    assert_eq!(waited.json()["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn tasks_are_listed_a_page_or_all() {
    let fleet = Fleet::new();
    for text in ["one", "two", "three"] {
        fleet.run(&["send", "echo", text]);
    }
    fleet.begin("probe", "hold");
    let page = fleet.run(&["task", "list", "echo", "--limit", "2"]);
    let entry =
        |task: &str, context: &str| format!("task: {task}\ncontext: {context}\nstate: completed\nsince: TIME\n\n");
    let expected = entry("ID1", "ID2") + &entry("ID3", "ID4") + "total: 3\n";
    assert_eq!(fleet.stable(&page.stdout), expected);
    assert!(page.stderr.starts_with("next: switchboard task list echo --page-size 2 --page-token "), "{}", page.stderr);
    let lines = fleet.run(&["task", "list", "echo", "--all", "--json", "--stream"]).stdout;
    assert!(lines.lines().count() == 3 && lines.lines().all(|line| line.starts_with("{\"id\":")), "{lines}");
    let token = page.stderr.trim_end().rsplit(' ').next().unwrap().trim_matches('\'');
    let rest = fleet.run(&["task", "list", "echo", "--page-token", token, "--json"]).json();
    assert_eq!(rest["tasks"].as_array().unwrap().len(), 1, "{rest}");
    let context = rest["tasks"][0]["contextId"].as_str().unwrap();
    fleet.run(&["send", "echo", "four", "--context-id", context]);
    let filtered = ["task", "list", "echo", "--status", "completed", "--context-id", context, "--page-size", "1"];
    let first = fleet.run(&[&filtered[..], &["--transport", "http+json"]].concat());
    let next = first.stderr.trim_end().strip_prefix("next: switchboard ").unwrap();
    assert!(next.contains("--status completed ") && next.contains("--transport http+json "), "{next}");
    let words: Vec<&str> = next.split(' ').map(|word| word.trim_matches('\'')).collect();
    let second = fleet.run(&words);
    assert!(second.code == Some(0) && second.stdout.contains(context), "{next}: {}", second.stderr);
    let all = fleet.run(&["task", "list", "echo", "--all", "--page-size", "1", "--json"]).json();
    assert_eq!((all["tasks"].as_array().unwrap().len(), &all["nextPageToken"]), (4, &Value::from("")));
    let working = fleet.run(&["task", "list", "probe", "--status", "working", "--json"]).json();
    let submitted = fleet.run(&["task", "list", "probe", "--status", "TASK_STATE_COMPLETED", "--json"]).json();
    assert_eq!(submitted["tasks"].as_array().unwrap().len(), 0, "{working}");
    assert_eq!(fleet.run(&["task", "list", "probe", "--status", "busy"]).code, Some(2));
}

#[test]
fn files_are_pointed_at_and_a_task_that_did_not_complete_can_fail_the_command() {
    let fleet = Fleet::new();
    std::fs::write(fleet.workspace.path().join("in.txt"), "content\n").unwrap();
    let sent = fleet.run(&["send", "echo", "--file", "in.txt"]);
    let next = sent.stderr.lines().last().unwrap();
    assert_eq!(fleet.stable(next), "next: switchboard task download echo ID1");
    let words: Vec<&str> = next.strip_prefix("next: switchboard ").unwrap().split(' ').collect();
    let saved = fleet.run(&[&words[..], &["--out", "got"]].concat());
    assert!(saved.stdout.starts_with("saved: got/in.txt\n"), "{}", saved.stderr);
    for (text, code) in [("err", 1), ("hello", 0)] {
        let id = fleet.begin("probe", text);
        assert_eq!(fleet.run(&["task", "get", "probe", &id, "--wait", "--fail"]).code, Some(code), "{text}");
        assert_eq!(fleet.run(&["task", "get", "probe", &id, "--wait"]).code, Some(0), "{text}");
        assert_eq!(fleet.run(&["task", "subscribe", "probe", &id, "--fail"]).code, Some(code), "{text}");
    }
    let held = fleet.begin("probe", "hold");
    let canceled = fleet.run(&["task", "cancel", "probe", &held]);
    let again = fleet.run(&["task", "cancel", "probe", &held]);
    assert_eq!((canceled.code, again.code, &again.stdout), (Some(0), Some(0), &canceled.stdout), "as its help says");
    let error = fleet.run(&["task", "push-config", "get", "probe", &held, "nope", "--json"]).json()["error"].clone();
    assert_eq!(error["hint"], format!("switchboard task push-config list probe {held}"), "{error}");
}

#[test]
fn without_an_agent_all_tasks_are_listed_with_time_state_and_first_words() {
    let fleet = Fleet::new();
    let long = "please read the whole of this message before you say it back to me";
    fleet.run(&["send", "echo", long]);
    fleet.run(&["send", "probe", "ask"]);
    let listed = fleet.run(&["task", "list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let rows: Vec<Vec<String>> = listed
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect())
        .collect();
    assert_eq!(rows[0], ["TIME", "STATE", "AGENT", "TASK", "FIRST WORDS"]);
    assert_eq!([&rows[1][1], &rows[1][2], &rows[1][4]], ["input-required", "probe", "ask"]);
    assert_eq!([&rows[2][1], &rows[2][2]], ["completed", "echo"]);
    assert_eq!(rows[2][4], "please read the whole of this message before you s…");
    assert!(rows[1][0].len() == 20 && rows[1][0].ends_with('Z'), "{:?}", rows[1]);

    let json = fleet.run(&["task", "list", "--json"]).json();
    assert_eq!((&json["totalSize"], &json["tasks"][0]["agent"]), (&json!(2), &json!("probe")), "{json}");
    let one = fleet.run(&["task", "list", "--page-size", "1"]);
    assert_eq!((one.stdout.lines().count(), one.stderr.starts_with("these are 1 of 2; ")), (2, true), "{}", one.stderr);
    let open = fleet.run(&["task", "list", "--status", "input-required", "--json", "--stream"]);
    assert_eq!(open.stdout.lines().count(), 1, "{}", open.stdout);
    assert_eq!(fleet.run(&["task", "list", "--page-token", "x"]).code, Some(2));
    // A server that was started in another folder.
    let here = crate::program::Workspace::new().variable("SWITCHBOARD_SERVER_BIND", &fleet.server.address);
    let there = here.run(&["task", "list"]);
    assert_eq!((there.stdout.lines().count(), there.stderr.lines().count()), (3, 1), "{}", there.stderr);
    // No server at all: no single agent is to blame.
    let free = super::free_address();
    let nowhere = crate::program::Workspace::new().variable("SWITCHBOARD_SERVER_BIND", &free);
    let refused = nowhere.run(&["task", "list", "--data-dir", "elsewhere"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""));
    assert!(refused.stderr.contains(&format!(", and nothing listens at http://{free}\n")), "{}", refused.stderr);
    assert!(refused.stderr.contains("start one with switchboard serve --data-dir elsewhere,"), "{}", refused.stderr);
}

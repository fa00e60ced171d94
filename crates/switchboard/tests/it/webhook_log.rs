//! What the log says of webhooks: a line for every attempt, and nothing that a receiver or a caller keeps to itself.

use std::fs::File;
use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};

use crate::http::PATIENCE;
use crate::program::Workspace;
use crate::receiver::Receiver;
use crate::server::Server;

/// What callers send and may not be found in a log: it begins every secret of the receiver's configuration too.
const SECRET: &str = "secret-";

/// Waits until every webhook has been told of everything, or has given it up.
#[track_caller]
fn settle(workspace: &Workspace, count: usize) {
    let began = Instant::now();
    loop {
        let listed = workspace.run(&["webhooks", "list", "-o", "json", "--state", "finished"]).json();
        if listed["webhooks"].as_array().unwrap().len() == count {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{listed}");
    }
}

/// Everything that can become of a webhook, with a secret in every place; the log of it and the tasks.
fn logged(level: &str, format: &str) -> (String, [String; 3]) {
    let settings = format!(
        "log: {{ level: {level}, format: {format} }}\nwebhooks:\n  allowedCidrs: [127.0.0.1/32]\n  retries: [1ms]\n  pauseAfter: 1000\n"
    );
    let workspace = Workspace::new().file("switchboard.yaml", settings);
    let log = workspace.path().join("log.txt");
    let server = Server::start_logging_to(&workspace, File::create(&log).unwrap());
    let (good, bad) = (Receiver::start(), Receiver::start());
    bad.answers(404);
    let mut nowhere = good.config();
    // The receiver closes every connection.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    nowhere["url"] = json!(format!("http://{}/secret-path?secret-query=1", listener.local_addr().unwrap()));
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let tasks = [good.config(), bad.config(), nowhere].map(|config| {
        let answer = server.send_with("echo", "secret-message", &config);
        assert_eq!(answer.status, 200);
        answer.json()["task"]["id"].as_str().unwrap().to_owned()
    });
    for url in ["http://10.0.0.1/secret-path?secret-query=1", "ftp://secret-user:secret-word@hook.test/secret-path"] {
        let mut refused = good.config();
        refused["url"] = json!(url);
        assert_eq!(server.send_with("echo", "secret-message", &refused).status, 400);
    }
    settle(&workspace, 3);
    assert_eq!(workspace.run(&["webhooks", "retry", "--all-dead"]).code, Some(0));
    server.stop();
    (std::fs::read_to_string(log).unwrap(), tasks)
}

#[test]
fn every_attempt_is_a_line_at_info() {
    let (log, tasks) = logged("info", "json");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (task, status, last_attempt) in [(&tasks[0], 200, 1), (&tasks[1], 404, 1), (&tasks[2], 0, 2)] {
        let of_task = |line: &&Value| line["message"] == "webhook" && line["task"] == task.as_str();
        let attempts: Vec<&Value> = lines.iter().filter(of_task).collect();
        for state in ["artifact", "completed"] {
            let told: Vec<&&Value> = attempts.iter().filter(|line| line["state"] == state).collect();
            assert!(told.len() >= last_attempt, "{state} of {task}: {attempts:?}");
            for (index, line) in told.iter().take(last_attempt).enumerate() {
                assert_eq!((&line["level"], &line["attempt"]), (&json!("INFO"), &json!(index + 1)), "{line}");
                assert_eq!(line["status"], status, "{line}");
                assert!(line["duration_ms"].is_u64() && line["webhook"].is_i64(), "{line}");
                assert!(line["delivery"].is_i64() && line["outcome"].is_string(), "{line}");
            }
        }
    }
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn no_log_has_secrets_paths_queries_or_messages_in_it() {
    for (level, format) in [("info", "text"), ("debug", "json"), ("trace", "text")] {
        let (log, tasks) = logged(level, format);
        assert!(tasks.iter().all(|task| log.contains(task)), "{level}: {log}");
        let found: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
        assert!(found.is_empty(), "{level}: {found:?}");
    }
}

//! A log that cannot be written costs its lines and nothing else, and one that can has nothing else in it.

use std::fs::File;

use crate::program::Workspace;
use crate::server::Server;

fn workspace(format: &str) -> Workspace {
    Workspace::new().file("switchboard.yaml", format!("log: {{ level: trace, format: {format} }}"))
}

/// Sends, a panicking agent and the store work, and the end is in order.
#[track_caller]
fn works(server: Server) {
    let state = |text: &str| {
        let answer = server.message("probe", "send", text, "").json();
        answer["task"]["status"]["state"].as_str().unwrap_or_else(|| panic!("{text}: {answer}")).to_owned()
    };
    for _ in 0..3 {
        assert_eq!(state("hello"), "TASK_STATE_COMPLETED");
        assert_eq!(state("panic"), "TASK_STATE_FAILED");
        assert_eq!(server.get("/readyz", "").status, 200);
    }
    server.stop();
}

/// Only Linux has such a file.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full() {
    for format in ["text", "json"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        works(Server::start_logging_to(&workspace(format), full));
    }
}

#[test]
fn a_pipe_without_a_reader() {
    for format in ["text", "json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        works(Server::start_logging_to(&workspace(format), writer));
    }
}

#[test]
fn a_file_that_may_not_grow() {
    let workspace = workspace("text");
    // As large as a file may become, so that the first line is too much; the database has room.
    let log = File::create(workspace.path().join("full.log")).unwrap();
    log.set_len(64 << 20).unwrap();
    works(Server::start_after(&workspace, "ulimit -f 131072 && exec 2>>full.log"));
    assert_eq!(log.metadata().unwrap().len(), 64 << 20);
}

#[test]
fn a_log_in_json_is_json_line_by_line_even_when_an_agent_panics() {
    let workspace = workspace("json");
    let log = workspace.path().join("log.txt");
    works(Server::start_logging_to(&workspace, File::create(&log).unwrap()));
    let log = std::fs::read_to_string(log).unwrap();
    let (mut panics, mut details) = (0, 0);
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        panics += usize::from(line["message"] == "something panicked" && line["panic"].is_string());
        let is_detail = line["level"] == "DEBUG" || line["level"] == "TRACE";
        details += usize::from(is_detail);
        // Details of libraries would bury ours.
        assert!(!is_detail || line["target"].as_str().unwrap().starts_with("switchboard"), "{line}");
    }
    assert_eq!(panics, 3);
    assert!(details > 0, "{log}");
}

#[test]
fn the_level_decides_what_is_logged() {
    let logged = |level: &str| {
        let workspace = Workspace::new().file("switchboard.yaml", format!("log: {{ level: {level} }}"));
        let log = workspace.path().join("log.txt");
        works(Server::start_logging_to(&workspace, File::create(&log).unwrap()));
        std::fs::read_to_string(log).unwrap()
    };
    let (error, info) = (logged("error"), logged("info"));
    assert!(error.contains("ERROR") && !error.contains(" INFO ") && !error.contains(" WARN "), "{error}");
    assert!(info.contains(" INFO ") && !info.contains("DEBUG"), "{info}");
}

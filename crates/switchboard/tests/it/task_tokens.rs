//! Programs of command-line agents that call other agents with `switchboard send`: what they are given for that, what
//! becomes of it, and what it does not open.

use serde_json::Value;

use crate::program::Workspace;
use crate::server::Server;

/// Sends to the agent that its message names, else answers. `SWITCHBOARD` stands for the program under test.
const PROGRAM: &str = r#"
case "$* $(cat)" in
    *"call helper"*) to=helper ;;
    *"call other"*) to=other ;;
    *) echo "folded with ${SWITCHBOARD_TASK_TOKEN:-no token}"; exit 0 ;;
esac
"SWITCHBOARD" send "$to" "fold this" -o json > answer.json 2> errors.txt </dev/null
echo "$?" > code
echo "$SWITCHBOARD_URL $SWITCHBOARD_TASK_TOKEN" > given
echo "called"
"#;

const AGENTS: &str = r#"
agents:
  - { name: coder, cli: generic, command: [sh, PROGRAM], cwd: ./coder, delegates: [helper], repoLock: false }
  - { name: helper, cli: generic, command: [sh, PROGRAM], cwd: ./helper }
  - { name: other, cli: generic, command: [sh, PROGRAM], cwd: ./other }
"#;

fn workspace() -> Workspace {
    let path = std::env::var("PATH").unwrap();
    let workspace = Workspace::new().file("program.sh", PROGRAM.replace("\"SWITCHBOARD\"", &binary()));
    let program = format!("{:?}", workspace.path().join("program.sh").display().to_string());
    for agent in ["coder", "helper", "other"] {
        std::fs::create_dir(workspace.path().join(agent)).unwrap();
    }
    let workspace = workspace.file("agents.yaml", AGENTS.replace("PROGRAM", &program));
    workspace.variable("PATH", &path).variable("SWITCHBOARD_STORE_DURABILITY", "process")
}

fn binary() -> String {
    format!("{:?}", env!("CARGO_BIN_EXE_switchboard"))
}

/// What the program of `coder` has left.
fn left(workspace: &Workspace, file: &str) -> String {
    std::fs::read_to_string(workspace.path().join("coder").join(file)).unwrap().trim().to_owned()
}

fn task(answer: &Value) -> &Value {
    assert!(answer["task"].is_object(), "{answer}");
    &answer["task"]
}

#[test]
fn what_a_program_sends_is_a_child_of_its_task_and_its_token_ends_with_it() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let answer = server.message("coder", "send", "call helper", "").json();
    let parent = task(&answer);
    assert_eq!(parent["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(left(&workspace, "code"), "0", "{}", left(&workspace, "errors.txt"));
    let called: Value = serde_json::from_str(&left(&workspace, "answer.json")).unwrap();
    let child = task(&called);
    assert!(called.to_string().contains("folded with no token"), "an agent that calls nobody: {called}");

    let given = left(&workspace, "given");
    let (url, token) = given.split_once(' ').unwrap();
    assert!(url.ends_with(&server.address), "{url}");
    assert!(token.starts_with("swt_"), "{token}");
    let id = child["id"].as_str().unwrap();
    for path in [format!("/a2a/helper/tasks/{id}"), "/a2a/tasks".to_owned(), "/api/agents".to_owned()] {
        assert_eq!(server.get(&path, token).status, 401, "{path}: the turn is over");
    }
    assert_eq!(server.message("helper", "send", "late", token).status, 401);
    let seen = server.get(&format!("/a2a/helper/tasks/{id}"), "");
    assert_eq!(seen.status, 404, "it belongs to the agent, not to the caller");
}

#[test]
fn a_program_is_told_which_agents_it_may_not_call() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let answer = server.message("coder", "send", "call other", "").json();
    assert_eq!(task(&answer)["status"]["state"], "TASK_STATE_COMPLETED", "the program goes on: {answer}");
    assert_ne!(left(&workspace, "code"), "0");
    let listed = server.get("/a2a/other/tasks", "").json();
    assert_eq!(listed["totalSize"], 0, "nothing was begun: {listed}");
}

//! `switchboard ceremonies`: runs by a schedule, from a file of the workspace or registered with the server.

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::receiver::Receiver;
use crate::server::Server;

const AGENTS: &str = "agents: [{ name: echo, builtin: echo }, { name: probe, builtin: probe }]\n";
const SETTINGS: &str = "webhooks: { allowedHosts: [127.0.0.1] }\nhub: { projector: { flush: 10ms } }\n";
const SECRET: &str = "whsec_c2VjcmV0IG9mIGEgY2hhdCB0aGF0IGlzIHRvbGQ=";

#[test]
fn the_end_of_a_run_is_told_to_addresses_in_variables_signed_and_in_pieces() {
    let (hook, chat) = (Receiver::start(), Receiver::start());
    let ceremony = "schedule: '0 0 1 1 *'\n\
                    name: Morning report\n\
                    targets: echo\n\
                    content: '{{ name }}: all is well'\n\
                    notify: [{ webhookEnv: HOOK, secretEnv: HOOK_SECRET }]\n\
                    notifyChannel: daily-ops\n";
    let workspace = Workspace::new()
        .file("agents.yaml", AGENTS)
        .file("switchboard.yaml", SETTINGS)
        .file("ceremonies/report.yaml", ceremony)
        .variable("HOOK", &format!("http://{}/secret-path", hook.address))
        .variable("HOOK_SECRET", SECRET)
        .variable("DISCORD_WEBHOOK_DAILY_OPS", &format!("http://{}/chat", chat.address));
    let server = Server::start(&workspace);
    let began = workspace.run(&["ceremonies", "run", "report", "-o", "json"]).json();
    let delivery = hook.got(1).remove(0);
    let told = delivery.json();
    assert_eq!(
        (&told["ceremony"], &told["name"], &told["taskId"], &told["state"], &told["text"]),
        (
            &json!("report"),
            &json!("Morning report"),
            &began["taskId"],
            &json!("completed"),
            &json!("Morning report: all is well")
        )
    );
    assert_eq!(delivery.signatures(), [delivery.signed_with(SECRET)]);
    let message = chat.got(1).remove(0).json();
    assert_eq!(
        message,
        json!({ "content": "**Morning report**: completed\nMorning report: all is well", "allowed_mentions": { "parse": [] } })
    );
    let runs = workspace.run(&["ceremonies", "runs", "report"]);
    assert!(
        runs.stdout.contains("completed") && runs.stdout.contains(began["taskId"].as_str().unwrap()),
        "{}",
        runs.stdout
    );
    drop(server);
}

#[test]
fn ceremonies_are_registered_shown_changed_and_deleted() {
    let workspace = Workspace::new()
        .file("agents.yaml", AGENTS)
        .file("switchboard.yaml", SETTINGS)
        .file("daily.yaml", "schedule: '0 9 * * *'\ntimezone: Europe/Berlin\ntargets: [echo]\ncontent: good morning\n")
        .file("wrong.yaml", "schedule: '61 9 * * *'\nskil: x\n");
    let server = Server::start(&workspace);
    let run = |arguments: &[&str]| workspace.run(&[&["ceremonies"], arguments].concat());
    assert_eq!(run(&[]).stdout, "there is no ceremony\n");
    let created = run(&["create", "daily.yaml"]);
    assert!(created.stdout.starts_with("ceremony daily is due 20"), "{}{}", created.stdout, created.stderr);
    let refused = run(&["create", "daily.yaml"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("ceremonies update"), "{}", refused.stderr);
    let wrong = run(&["create", "wrong.yaml"]);
    assert!(wrong.code == Some(1) && wrong.stdout.is_empty(), "{}", wrong.stdout);
    for part in ["schedule", "minute", "skil"] {
        assert!(wrong.stderr.contains(part), "{}", wrong.stderr);
    }
    assert_eq!(run(&["create", "missing.yaml"]).code, Some(2));
    let listed = run(&["list"]).stdout;
    let rows: Vec<String> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows[0], "CEREMONY WHEN RUNS NEXT LAST SOURCE");
    assert!(
        rows[1].starts_with("daily 0 9 * * * Europe/Berlin to echo 20") && rows[1].ends_with("- registration"),
        "{rows:?}"
    );
    let updated = run(&["update", "daily", "enabled=false", "schedule=0 8 * * MON-FRI"]);
    assert_eq!(updated.stdout, "ceremony daily has version 2 now, and is disabled\n", "{}", updated.stderr);
    let updated = run(&["update", "daily", "description=for the team", "-o", "json"]).json();
    assert_eq!((&updated["enabled"], &updated["schedule"]), (&json!(false), &json!("0 8 * * MON-FRI")));
    let shown = run(&["show", "daily"]).stdout;
    for part in ["0 8 * * MON-FRI Europe/Berlin", "to echo", "for the team", "version 3 of local", "good morning"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(run(&["update", "daily", "enabled"]).code, Some(2));
    let unknown = run(&["show", "dail"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean daily?"), "{}", unknown.stderr);
    let began = run(&["run", "daily"]).stdout;
    assert!(began.starts_with("task ") && began.ends_with(" has begun\n"), "{began}");
    assert_eq!(run(&["delete", "daily"]).stdout, "deleted daily\n");
    let empty: Value = run(&["list", "-o", "json"]).json();
    assert_eq!(empty, json!({ "ceremonies": [] }));
    drop(server);
}

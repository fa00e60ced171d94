//! `auth`: a token by device code or client secret from a token server of the test, kept in a private file, sent only to
//! its agent, and renewed.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::{Heard, answering, card};
use crate::program::Workspace;

/// An agent behind OAuth and the server that gives tokens for it, in one.
struct Guarded {
    address: String,
    /// What was asked, as `path form authorization`.
    asked: Receiver<String>,
}

impl Guarded {
    /// Tokens live so many seconds, given as a number or as text.
    fn start(lives: impl Into<Value>) -> Self {
        let (send, asked) = channel();
        let lives = lives.into();
        let mut looks = 0;
        let address = answering(move |here, heard| {
            let authorization = heard.header("authorization");
            let _ = send.send(format!("{} {} {authorization}", heard.path, heard.body));
            answer(here, &lives, heard, authorization, &mut looks)
        });
        Self { address, asked }
    }

    /// What was asked of a path so far.
    fn asked(&self, path: &str) -> Vec<String> {
        self.asked.try_iter().filter(|asked| asked.starts_with(path)).collect()
    }
}

fn answer(here: &str, lives: &Value, heard: &Heard, authorization: &str, looks: &mut u32) -> (u16, Value) {
    let url = |path: &str| format!("http://{here}{path}");
    let granted = |token: &str| (200, json!({ "access_token": token, "refresh_token": "again", "expires_in": lives }));
    let (path, form) = (heard.path.as_str(), heard.body.as_str());
    match path {
        "/.well-known/agent-card.json" => {
            let by_code = json!({ "deviceAuthorizationUrl": url("/codes"), "tokenUrl": url("/token"), "scopes": { "chat": "talk" } });
            let by_secret = json!({ "tokenUrl": url("/token"), "scopes": { "chat": "talk" } });
            let schemes = json!({
                "by-code": { "oauth2SecurityScheme": { "flows": { "deviceCode": by_code } } },
                "by-secret": { "oauth2SecurityScheme": { "flows": { "clientCredentials": by_secret } } },
            });
            (200, card(here, json!({ "securitySchemes": schemes })))
        }
        "/codes" => {
            let page = url("/device");
            // As text if the server writes all numbers as text.
            let number = |seconds: f64| if lives.is_string() { json!(seconds.to_string()) } else { json!(seconds) };
            (
                200,
                json!({
                    "device_code": "d-1", "user_code": "ABCD", "verification_uri": page,
                    "interval": number(0.2), "expires_in": number(600.0),
                }),
            )
        }
        "/token" if form.contains("device_code=d-1") && *looks < 2 => {
            *looks += 1;
            (400, json!({ "error": "authorization_pending" }))
        }
        "/token" if form.contains("device_code=d-1") => granted("by-code"),
        "/token" if form.contains("grant_type=refresh_token") => granted("renewed"),
        // robot:s3cret
        "/token" if authorization == "Basic cm9ib3Q6czNjcmV0" => granted("by-secret"),
        "/token" => (401, json!({ "error": "invalid_client", "error_description": "no such robot" })),
        "/rpc" if ["Bearer by-code", "Bearer by-secret", "Bearer renewed"].contains(&authorization) => {
            let reply =
                json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hello" }] } });
            let asked: Value = serde_json::from_str(form).unwrap();
            (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": reply }))
        }
        _ => (401, json!({ "error": "who are you?" })),
    }
}

fn caller() -> (Workspace, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    (Workspace::new().variable("HOME", home.path().to_str().unwrap()), home)
}

#[test]
fn a_token_by_code_is_kept_sent_to_its_agent_and_forgotten() {
    let agent = Guarded::start(3600);
    let (workspace, home) = caller();
    let without = workspace.run(&["send", &agent.address, "hi", "--json"]);
    let error = without.json()["error"].clone();
    assert_eq!((without.code, &error["code"]), (Some(4), &json!("A2ACLI_ERR_CREDENTIALS_MISSING")), "{error}");
    let next = format!("switchboard auth login {} --client-id ID", agent.address);
    assert!(error["hint"].as_str().unwrap().contains(&next), "{error}");

    let login = workspace.run(&["auth", "login", &agent.address, "--client-id", "app"]);
    assert_eq!(login.code, Some(0), "{}{}", login.stdout, login.stderr);
    let said = "token server: http://HERE/token\nopen http://HERE/device and type in ABCD\n";
    assert_eq!(login.stderr, said.replace("HERE", &agent.address));
    let file = home.path().join(".config/a2a-cli/tokens.json");
    let expected = format!(
        "agent: http://{}\nflow: device-code\nscopes: chat\nexpires-in: 3600s\nfile: {}\n",
        agent.address,
        file.display()
    );
    assert_eq!(login.stdout, expected);
    assert_eq!(agent.asked("/codes"), ["/codes client_id=app&scope=chat "]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let sent = workspace.run(&["send", &format!("http://{}/rpc", agent.address), "hi", "-q"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let other = Guarded::start(3600);
    assert_eq!(workspace.run(&["send", &other.address, "hi"]).code, Some(4), "no other agent gets it");
    assert!(other.asked("/").iter().all(|asked| !asked.contains("Bearer")));
    let debugged = workspace.run(&["send", &agent.address, "hi", "--debug"]);
    assert!(debugged.code == Some(0) && !debugged.stderr.contains("by-code"), "{}", debugged.stderr);

    let forgotten = workspace.run(&["auth", "logout", &agent.address]);
    assert_eq!(forgotten.stdout, format!("forgotten: http://{}\n", agent.address));
    assert_eq!(workspace.run(&["send", &agent.address, "hi"]).code, Some(4));
    assert_eq!(
        workspace.run(&["auth", "logout", &agent.address]).stderr,
        "warning: there is no token for this agent\n"
    );
}

#[test]
fn a_token_by_secret_is_renewed_and_the_secret_is_not_kept() {
    let agent = Guarded::start(1);
    let (workspace, home) = caller();
    let login = ["auth", "login", &agent.address, "--client-id", "robot", "--flow", "client-credentials", "--json"];
    let unset = workspace.run(&login);
    assert_eq!((unset.code, &unset.json()["error"]["code"]), (Some(4), &json!("A2ACLI_ERR_CREDENTIALS_MISSING")));
    let wrong = Workspace::new().variable("HOME", home.path().to_str().unwrap()).variable("A2ACLI_CLIENT_SECRET", "no");
    let wrong = wrong.run(&login);
    assert_eq!((wrong.code, &wrong.json()["error"]["code"]), (Some(4), &json!("A2ACLI_ERR_AUTH_FAILED")));
    assert!(wrong.stdout.contains("no such robot"), "{}", wrong.stdout);

    let workspace = workspace.variable("A2ACLI_CLIENT_SECRET", "s3cret");
    let run = workspace.run(&login);
    assert_eq!((run.code, &run.json()["flow"]), (Some(0), &json!("client-credentials")), "{}", run.stdout);
    let kept = std::fs::read_to_string(home.path().join(".config/a2a-cli/tokens.json")).unwrap();
    assert!(kept.contains("by-secret") && !kept.contains("s3cret"), "{kept}");
    // It is about to end, so that it is renewed before it is used.
    let sent = workspace.run(&["send", &agent.address, "hi", "-q"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    assert!(agent.asked("/token").iter().any(|asked| asked.contains("grant_type=refresh_token")));

    let echo = super::Fleet::new();
    let none = echo.run(&["auth", "login", "echo", "--client-id", "x", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (Some(1), &json!("A2ACLI_ERR_CARD_INVALID")));
    assert_eq!(echo.run(&["auth", "login", "echo"]).code, Some(2), "it is not said which client asks");
}

#[test]
fn a_lifetime_may_be_written_as_text() {
    let agent = Guarded::start("3600");
    let (workspace, _home) = caller();
    let workspace = workspace.variable("A2ACLI_CLIENT_SECRET", "s3cret");
    for flow in ["device-code", "client-credentials"] {
        let login = workspace.run(&["auth", "login", &agent.address, "--client-id", "robot", "--flow", flow]);
        assert_eq!(login.code, Some(0), "{flow}: {}", login.stderr);
        assert!(login.stdout.contains("\nexpires-in: 3600s\n"), "{flow}: {}", login.stdout);
    }
}

#[test]
fn a_token_belongs_to_its_agent_and_to_what_is_below_it() {
    let (workspace, home) = caller();
    let folder = home.path().join(".config/a2a-cli");
    std::fs::create_dir_all(&folder).unwrap();
    let is_found = |base: &str, address: &str| {
        let token = json!({
            "agent": base, "flow": "device-code", "tokenUrl": "https://login.example", "clientId": "app", "scopes": [],
            "accessToken": "secret",
        });
        std::fs::write(folder.join("tokens.json"), json!({ "tokens": [token] }).to_string()).unwrap();
        let logout = workspace.run(&["auth", "logout", address]);
        assert_eq!(logout.code, Some(0), "{}", logout.stderr);
        logout.stdout == format!("forgotten: {base}\n")
    };
    let base = "https://agent.example/a2a";
    for address in [base, "https://agent.example/a2a/", "https://agent.example/a2a/echo", "agent.example/a2a"] {
        assert!(is_found(base, address), "{address}");
    }
    for address in [
        "https://agent.example",
        "https://agent.example/a2a2",
        "http://agent.example/a2a",
        "https://agent.example:444/a2a",
        "https://agent.example.evil/a2a",
    ] {
        assert!(!is_found(base, address), "{address}");
    }
    assert!(is_found("https://agent.example", "https://agent.example/x"));
    assert!(!is_found("agent.example/a2a", base), "a file that is edited by hand may hold an address without a scheme");
}

#[test]
fn many_logins_at_once_lose_no_token() {
    let agents: Vec<Guarded> = (0..8).map(|_| Guarded::start(3600)).collect();
    let (workspace, home) = caller();
    let workspace = workspace.variable("A2ACLI_CLIENT_SECRET", "s3cret");
    std::thread::scope(|scope| {
        for agent in &agents {
            let login = ["auth", "login", &agent.address, "--client-id", "robot", "--flow", "client-credentials"];
            let workspace = &workspace;
            scope.spawn(move || assert_eq!(workspace.run(&login).code, Some(0)));
        }
    });
    let kept: Value =
        serde_json::from_slice(&std::fs::read(home.path().join(".config/a2a-cli/tokens.json")).unwrap()).unwrap();
    assert_eq!(kept["tokens"].as_array().unwrap().len(), agents.len(), "{kept}");
}

#[test]
fn a_token_server_elsewhere_is_asked_only_if_that_is_wanted() {
    let tokens = Guarded::start(3600);
    let there = tokens.address.clone();
    let address = answering(move |here, _| {
        let by_secret = json!({ "tokenUrl": format!("http://{there}/token"), "scopes": {} });
        let scheme = json!({ "oauth2SecurityScheme": { "flows": { "clientCredentials": by_secret } } });
        (200, card(here, json!({ "securitySchemes": { "by-secret": scheme } })))
    });
    let (workspace, _home) = caller();
    let workspace = workspace.variable("A2ACLI_CLIENT_SECRET", "s3cret");
    let login = ["auth", "login", &address, "--client-id", "robot"];
    let refused = workspace.run(&login);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let named = format!("http://{}/token", tokens.address);
    assert!(refused.stderr.contains(&named) && refused.stderr.contains("--trust-card-url"), "{}", refused.stderr);
    assert_eq!(tokens.asked("/").len(), 0, "it has not seen the secret");
    let wanted = workspace.run(&[&login[..], &["--trust-card-url"]].concat());
    assert_eq!(wanted.code, Some(0), "{}", wanted.stderr);
    assert!(wanted.stderr.starts_with(&format!("token server: {named}\n")), "{}", wanted.stderr);
}

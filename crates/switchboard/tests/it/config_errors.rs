//! Every documented error of the configuration, as a person sees it: place, key, what is wrong, what would be right.

use serde_json::json;

use crate::program::Workspace;
use crate::tls::Issued;

fn switchboard(content: &str) -> Workspace {
    Workspace::new().file("switchboard.yaml", content)
}

fn agents(content: &str) -> Workspace {
    Workspace::new().file("agents.yaml", content)
}

#[test]
fn an_unknown_key_is_answered_with_the_likely_one_or_with_all() {
    switchboard("server:\n  bnid: 127.0.0.1:1\nlimits: { running_tasks: 3 }\n").refused(&[
        "switchboard.yaml:2: server.bnid: unknown key: did you mean bind?",
        "switchboard.yaml:3: limits.running_tasks: unknown key: did you mean runningTasks?",
    ]);
    switchboard("cards: { colour: red }\nstore:\n  retention:\n    maxAeg: 1d\nagents: []\n").refused(&[
        "switchboard.yaml:1: cards.colour: unknown key: the keys here are default",
        "switchboard.yaml:4: store.retention.maxAeg: unknown key: did you mean maxAge?",
        "switchboard.yaml:5: agents: unknown key: list the agents in agents.yaml, or in a file in agents.d/",
    ]);
    agents("agents:\n  - name: a\n    builtin: echo\n    v03: { bloking: return }\n    skils: []\n").refused(&[
        "agents.yaml:4: agents[0].v03.bloking: unknown key: did you mean blocking?",
        "agents.yaml:5: agents[0].skils: unknown key: did you mean skills?",
    ]);
}

#[test]
fn a_wrong_value_is_named_with_what_would_be_right() {
    let span = "write a number with a unit, such as 250ms, 30s, 10m, 12h or 7d";
    let content = "server:
  bind: 8080
  publicBaseUrl: agents.example.com
  allowedOrigins: [https://a.example/path]
  strictVersion: maybe
  headerTimeout: 0s
  bodyTimeout: 0s
  writeTimeout: 0s
store:
  durability: ful
  maxQueueDelay: 5
limits:
  runningTasks: 0
  requestBody: 10MB
tasks:
  deadline: soon
  maxRecoveries: -1
streams: 15s
webhooks:
  allowedCidrs: [10.0.0.1, 10.0.0.1/8]
  retries: { first: 1s }
log: { level: }
";
    switchboard(content).refused(&[
        "switchboard.yaml:2: server.bind: \"8080\" is not an address with a port: write address:port, such as 127.0.0.1:41242, or 0.0.0.0:41242 for every interface",
        "switchboard.yaml:3: server.publicBaseUrl: \"agents.example.com\" is not a web address: write an address that begins with https:// or http://, such as https://agents.example.com",
        "switchboard.yaml:4: server.allowedOrigins: \"https://a.example/path\" is more than an origin: write an origin such as https://app.example.com, without a path, or \"*\" for any",
        "switchboard.yaml:5: server.strictVersion: \"maybe\" is neither true nor false: write true or false",
        &format!("switchboard.yaml:6: server.headerTimeout: 0s leaves no time at all: {span}"),
        &format!("switchboard.yaml:7: server.bodyTimeout: 0s leaves no time at all: {span}"),
        &format!("switchboard.yaml:8: server.writeTimeout: 0s leaves no time at all: {span}"),
        "switchboard.yaml:10: store.durability: \"ful\" is not one of its values: did you mean full? (one of full, process)",
        &format!("switchboard.yaml:11: store.maxQueueDelay: \"5\" has no unit: {span}"),
        "switchboard.yaml:13: limits.runningTasks: 0 leaves room for nothing: write a whole number of at least 1, such as 1000",
        "switchboard.yaml:14: limits.requestBody: \"10MB\" has a unit that does not exist: write a number with a unit, such as 512B, 64KiB, 10MiB or 10GiB",
        "switchboard.yaml:16: tasks.deadline: \"soon\" is not a length of time: write none, or a number with a unit, such as 250ms, 30s, 10m, 12h or 7d",
        "switchboard.yaml:17: tasks.maxRecoveries: \"-1\" is not a whole number: write a whole number, such as 3",
        "switchboard.yaml:18: streams: is a single value: write a mapping with any of the keys ping",
        "switchboard.yaml:20: webhooks.allowedCidrs: \"10.0.0.1/8\" is an address inside a network: write 10.0.0.0/8 for the whole network or 10.0.0.1/32 for the one address",
        &format!("switchboard.yaml:21: webhooks.retries: is a mapping: write a list in brackets, each item {}", &span[6..]),
        "switchboard.yaml:22: log.level: has no value: write error, warn, info, debug or trace",
    ]);
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    switchboard("limits:\n  task: 1MiB\n").refused(&[
        "switchboard.yaml:2: limits.task: an event may have 8MiB and a whole task only 1MiB: make limits.task at least as large as limits.event",
    ]);
}

#[test]
fn webhook_settings_that_cannot_be_are_refused() {
    let span = "write a number with a unit, such as 250ms, 30s, 10m, 12h or 7d";
    let count = "write a whole number of at least 1, such as 1000";
    let content = "webhooks:
  enabled: perhaps
  allowedHosts: [hooks.internal, https://hooks.internal/path]
  allowedCidrs: [10.0.0.0/64]
  nameservers: [dns.internal]
  perTask: 0
  returnSecrets: 1
  timeout: 0s
  connectTimeout: 0s
  retries: [1s, soon]
  holdTasks: 7
  parallel: 0
  parallelPerEndpoint: -1
  pauseAfter: 0
  pause: 10m
  deadLetters:
    maxAge: old
    max: 0
    min: 1
";
    switchboard(content).refused(&[
        "switchboard.yaml:2: webhooks.enabled: \"perhaps\" is neither true nor false: write true or false",
        "switchboard.yaml:3: webhooks.allowedHosts: \"https://hooks.internal/path\" is not a host: write a host such as hooks.internal, hooks.internal:8080 or *.internal, without http://",
        "switchboard.yaml:4: webhooks.allowedCidrs: \"10.0.0.0/64\" is not a network: write an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8, or one address, such as 10.0.0.1",
        "switchboard.yaml:5: webhooks.nameservers: \"dns.internal\" is not an address: write an address, such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:5353",
        &format!("switchboard.yaml:6: webhooks.perTask: 0 leaves room for nothing: {count}"),
        "switchboard.yaml:7: webhooks.returnSecrets: \"1\" is neither true nor false: write true or false",
        &format!("switchboard.yaml:8: webhooks.timeout: 0s leaves no time at all: {span}"),
        &format!("switchboard.yaml:9: webhooks.connectTimeout: 0s leaves no time at all: {span}"),
        &format!("switchboard.yaml:10: webhooks.retries: \"soon\" is not a length of time: {span}"),
        &format!("switchboard.yaml:11: webhooks.holdTasks: \"7\" has no unit: {span}"),
        &format!("switchboard.yaml:12: webhooks.parallel: 0 leaves room for nothing: {count}"),
        &format!("switchboard.yaml:13: webhooks.parallelPerEndpoint: \"-1\" is not a whole number: {count}"),
        &format!("switchboard.yaml:14: webhooks.pauseAfter: 0 leaves room for nothing: {count}"),
        "switchboard.yaml:15: webhooks.pause: a pause begins with 10m and may last only 5m: make webhooks.maxPause at least as long as webhooks.pause",
        &format!("switchboard.yaml:17: webhooks.deadLetters.maxAge: \"old\" is not a length of time: {span}"),
        &format!("switchboard.yaml:18: webhooks.deadLetters.max: 0 leaves room for nothing: {count}"),
        "switchboard.yaml:19: webhooks.deadLetters.min: unknown key: the keys here are maxAge, max, maxBytes",
    ]);
    switchboard("webhooks: { pause: 0s }\n")
        .refused(&[&format!("switchboard.yaml:1: webhooks.pause: 0s leaves no time at all: {span}")]);
    agents("agents:\n  - name: a\n    builtin: echo\n    webhooks: { payload: tasks, events: some }\n").refused(&[
        "agents.yaml:4: agents[0].webhooks.payload: \"tasks\" is not one of its values: did you mean task? (one of task, status-update, stream-response)",
        "agents.yaml:4: agents[0].webhooks.events: \"some\" is not one of its values: the choices are all, status, stops",
    ]);
}

#[test]
fn what_this_version_cannot_do_is_refused_and_not_ignored() {
    switchboard("store:\n  url: postgres://me:secret@db/x\n").refused(&[
        "switchboard.yaml:2: store.url: this version keeps its data in a directory, not on a database server: remove the key and set store.dataDir",
    ]);
}

#[test]
fn what_is_wrong_with_an_agent_elsewhere_is_named_and_its_secrets_are_not() {
    let content = "agents:
  - { name: a, url: agent.example }
  - { name: b, url: 'https://me:hunter2@agent.example' }
  - name: c
    url: https://agent.example
    timeout: 5m
    timeoutMs: 300000
    bearer: hunter2
    headers: { \"X Team\": hunter2 }
  - { name: c, builtin: echo }
";
    agents(content).refused(&[
        "agents.yaml:2: agents[0].url: \"agent.example\" has no scheme: write an address that begins with https:// or http://",
        "agents.yaml:3: agents[1].url: it holds a name or a password: use bearerEnv or apiKeyEnv for secrets",
        "agents.yaml:7: agents[2].timeoutMs: timeout says the same: remove one of the two",
        "agents.yaml:8: agents[2].bearer: unknown key: the keys here are name, url, apiKeyEnv, bearerEnv, hmacEnv, hmacHeader, auth, oauth, tls, headers, timeout, timeoutMs, trustCardUrl, discordBotTokenEnvKey, v03, serve, description, policy, skills, streaming, callbackBase, external, poll, connectWithin, lostAfter, deadline, resend, replies, maxParallel, cardChanges, subscribesTo",
        "agents.yaml:9: agents[2].headers: \"X Team\" cannot be the name of a header: write letters, digits and -, such as X-Team",
        "agents.yaml:10: agents[3].name: \"c\" is already the name of the agent at agents.yaml:4: give one of the two another name",
    ]);
}

#[test]
fn who_we_are_to_an_agent_elsewhere_is_said_once_and_in_full() {
    let content = "agents:
  - name: a
    url: https://agent.example
    bearerEnv: A_TOKEN
    hmacEnv: A_SECRET
  - name: b
    url: https://agent.example
    hmacEnv: B_SECRET
    hmacHeader: X Signature
    tls: { cert: client.pem }
  - name: c
    url: https://agent.example
    oauth: { tokenUrl: https://login.example/token, scopes: [a2a] }
  - name: d
    url: https://agent.example
    tls: { key: client.key }
  - name: e
    url: https://agent.example
    oauth: { tokenUrl: http://login.example/token, clientId: e, clientSecretEnv: E_SECRET }
";
    agents(content).refused(&[
        "agents.yaml:5: agents[0].hmacEnv: bearerEnv says who we are already: keep one of the two",
        "agents.yaml:9: agents[1].hmacHeader: \"X Signature\" cannot be the name of a header: write letters, digits and -, such as X-Signature",
        "agents.yaml:10: agents[1].tls.cert: it is of no use without its key: write key beside it",
        "agents.yaml:13: agents[2].oauth: not enough to fetch a token: write tokenUrl, clientId and clientSecretEnv",
        "agents.yaml:16: agents[3].tls.key: it is of no use without its certificate: write cert beside it",
        "agents.yaml:19: agents[4].oauth.tokenUrl: the secret would be sent unencrypted: write an address with https://",
    ]);
}

#[test]
fn files_that_are_no_certificate_and_key_are_named_with_their_place() {
    let content = "server:\n  tls:\n    cert: tls/cert.pem\n    key: tls/key.pem\n";
    let (one, two) = (Issued::new(), Issued::new());
    switchboard(content).refused(&[
        "switchboard.yaml:3: server.tls.cert: tls/cert.pem cannot be read (No such file or directory (os error 2)): name a file that exists; a relative path starts at the workspace folder",
        "switchboard.yaml:4: server.tls.key: tls/key.pem cannot be read (No such file or directory (os error 2)): name a file that exists; a relative path starts at the workspace folder",
    ]);
    switchboard("server:\n  tls:\n    cert: .\n    key: ./tls\n").file("tls/empty", "").refused(&[
        "switchboard.yaml:3: server.tls.cert: . cannot be read (Is a directory (os error 21)): name a PEM file that the user of this process may read",
        "switchboard.yaml:4: server.tls.key: tls cannot be read (Is a directory (os error 21)): name a PEM file that the user of this process may read",
    ]);
    switchboard(content).file("tls/cert.pem", &one.key_pem).file("tls/key.pem", "").refused(&[
        "switchboard.yaml:3: server.tls.cert: tls/cert.pem holds no certificate: name a PEM file with a BEGIN CERTIFICATE line: the server's own certificate, then those that signed it",
        "switchboard.yaml:4: server.tls.key: tls/key.pem holds no private key: name a PEM file with a BEGIN PRIVATE KEY line",
    ]);
    let strangers = switchboard(content).file("tls/cert.pem", &one.certificate_pem).file("tls/key.pem", &two.key_pem);
    strangers.refused(&[
        "switchboard.yaml:4: server.tls.key: the private key in tls/key.pem does not belong to the first certificate in tls/cert.pem: name the key that the certificate was made for; the server's own certificate comes first in its file",
    ]);
    let served = strangers.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!((served.code, served.errors()), (Some(1), strangers.run(&["config", "check"]).errors()));
    assert_eq!(strangers.run(&["keys", "create"]).code, Some(0), "what needs no certificate asks for none");
    switchboard("server:\n  tls: { cert: cert.pem }\n").refused(&[
        "switchboard.yaml:2: server.tls.cert: a certificate is of no use without its private key: set server.tls.key too",
    ]);
    Workspace::new().variable("SWITCHBOARD_SERVER_TLS_KEY", "key.pem").refused(&[
        "SWITCHBOARD_SERVER_TLS_KEY: server.tls.key: a private key is of no use without its certificate: set server.tls.cert too",
    ]);
    let variables = Workspace::new().file("cert.pem", &one.certificate_pem).file("key.pem", &one.certificate_pem);
    let variables =
        variables.variable("SWITCHBOARD_SERVER_TLS_CERT", "cert.pem").variable("SWITCHBOARD_SERVER_TLS_KEY", "key.pem");
    variables.refused(&[
        "SWITCHBOARD_SERVER_TLS_KEY: server.tls.key: key.pem holds no private key: name a PEM file with a BEGIN PRIVATE KEY line",
    ]);
}

#[test]
fn an_agent_needs_a_good_name_of_its_own_and_a_kind() {
    agents("agents:\n  - builtin: echo\n  - name: b\n  - name: tasks\n    builtin: echo\n  - { name: My_Agent, builtin: ekho }\n").refused(&[
        "agents.yaml:2: agents[0]: has no name: add name: with lowercase letters, digits and -",
        "agents.yaml:3: agents[1]: does not say which agent it is: add cli: for a program, builtin: echo, guide or probe, or url: for one elsewhere",
        "agents.yaml:4: agents[2].name: \"tasks\" is reserved, because it means something else where agents are named: choose another name; reserved are v1, tasks, jsonrpc, message:send, message:stream, extendedAgentCard, .well-known, agents, runtime, all",
        "agents.yaml:6: agents[3].name: \"My_Agent\" cannot be an agent's name: write a name of lowercase letters, digits and -, such as code-review; it begins with a letter or digit and has at most 63 characters",
        "agents.yaml:6: agents[3].builtin: \"ekho\" is not one of its values: did you mean echo? (one of echo, guide, probe)",
    ]);
    agents("agents:\n  - name: a\n    builtin: echo\n  - name: a\n    builtin: guide\n")
        .file("agents.d/more.yaml", "agents:\n  - builtin: probe\n    name: a\n")
        .refused(&[
            "agents.yaml:4: agents[1].name: \"a\" is already the name of the agent at agents.yaml:2: give one of the two another name",
            "agents.d/more.yaml:3: agents[0].name: \"a\" is already the name of the agent at agents.yaml:2: give one of the two another name",
        ]);
    agents("agents:\n  - name:\n    builtin: echo\n  - name: b\n    builtin:\n").refused(&[
        "agents.yaml:2: agents[0].name: has no value: write a name of lowercase letters, digits and -, such as code-review",
        "agents.yaml:5: agents[1].builtin: has no value: write echo, guide or probe",
    ]);
    agents("agents:\n  - { name: a, urll: 'https://agent.example' }\n").refused(&[
        "agents.yaml:2: agents[0]: does not say which agent it is: add cli: for a program, builtin: echo, guide or probe, or url: for one elsewhere",
        "agents.yaml:2: agents[0].urll: unknown key: did you mean url?",
    ]);
    agents("- name: a\n").refused(&["agents.yaml:1: is a list: write a mapping with any of the keys agents"]);
    agents("agents:\n  a: { builtin: echo }\n")
        .refused(&["agents.yaml:2: agents: is a mapping: write a list, each item on a line that begins with -"]);
    agents("agents:\n  - name: a\n    builtin: echo\n    skills:\n      - name: x\n").refused(&[
        "agents.yaml:5: agents[0].skills[0]: has no description: add description: with a text for the card",
    ]);
}

#[test]
fn a_missing_variable_is_named_once() {
    switchboard("server:\n  publicBaseUrl: https://${HOST}\n  defaultAgent: ${AGENT").refused(&[
        "switchboard.yaml:2: server.publicBaseUrl: the environment variable HOST is not set: set it, or write ${HOST:-default}",
        "switchboard.yaml:3: server.defaultAgent: \"${AGENT\" opens ${ and does not close it: write ${NAME} or ${NAME:-default}",
    ]);
    agents("agents:\n  - name: ${WHO}\n    builtin: echo\n").refused(&[
        "agents.yaml:2: agents[0].name: the environment variable WHO is not set: set it, or write ${WHO:-default}",
    ]);
}

#[test]
fn variables_and_flags_are_named_when_they_are_wrong() {
    let workspace = Workspace::new().variable("SWITCHBOARD_TASKS_DRAIN", "10");
    let run = workspace.run(&["config", "check", "--bind", "everywhere"]);
    assert_eq!(
        run.errors(),
        [
            "--bind: server.bind: \"everywhere\" is not an address with a port: write address:port, such as 127.0.0.1:41242, or 0.0.0.0:41242 for every interface",
            "SWITCHBOARD_TASKS_DRAIN: tasks.drain: \"10\" has no unit: write a number with a unit, such as 250ms, 30s, 10m, 12h or 7d",
        ]
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let run = switchboard("server:\n  bind: [1\n").run(&["config", "check"]);
    assert_eq!(run.code, Some(1));
    assert!(run.errors()[0].starts_with("switchboard.yaml:2: this is not YAML that can be read ("), "{}", run.stderr);
    let run = switchboard("log: {}\nlog: {}\n").run(&["config", "check"]);
    assert!(run.errors()[0].starts_with("switchboard.yaml:2: this is not YAML"), "{}", run.stderr);
    let latin = Workspace::new().file("switchboard.yaml", b"# caf\xe9\n").run(&["config", "check"]);
    assert!(latin.errors()[0].starts_with("switchboard.yaml: cannot be read ("), "{}", latin.stderr);
    assert!(latin.errors()[0].ends_with(": save it as UTF-8 text"), "{}", latin.stderr);
    let folder = Workspace::new().file("agents.yaml/x", "").run(&["config", "check"]);
    assert!(folder.errors()[0].ends_with(": put a file there, or remove the folder"), "{}", folder.stderr);
    let nowhere = Workspace::new().run(&["config", "check", "--workspace", "nowhere"]);
    assert_eq!(
        nowhere.errors(),
        ["--workspace: the workspace folder nowhere does not exist: create it, or name another one"]
    );
    let file = Workspace::new().file("switchboard.yaml", "");
    let below = file.run(&["config", "check", "--workspace", "switchboard.yaml/below"]);
    assert!(
        below.errors()[0].contains("the workspace folder switchboard.yaml/below cannot be read ("),
        "{}",
        below.stderr
    );
    let file = file.run(&["config", "check", "--workspace", "switchboard.yaml"]);
    assert_eq!(file.errors(), ["--workspace: switchboard.yaml is a file: name the folder that holds switchboard.yaml"]);
}

#[test]
fn problems_are_json_for_programs() {
    let run = switchboard("server: { bnid: 1 }\n").run(&["config", "check", "-o", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let problem = json!({
        "origin": { "from": "file", "file": "switchboard.yaml", "line": 1 },
        "key": "server.bnid",
        "wrong": "unknown key",
        "right": "did you mean bind?",
    });
    assert_eq!(run.json(), json!({ "ok": false, "problems": [problem] }));
}

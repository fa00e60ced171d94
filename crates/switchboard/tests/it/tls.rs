//! `switchboard serve` with a certificate, from the workspace file to the client that trusts it.

use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::http::{self, Answer, PATIENCE};
use crate::program::Workspace;
use crate::serve::words;
use crate::server::Server;

const SETTINGS: &str = "server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n";

/// A certificate for this machine that signs itself, and its key.
pub(crate) struct Issued {
    certificate: CertificateDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Issued {
    pub(crate) fn new() -> Self {
        let issued = generate_simple_self_signed(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
        Self {
            certificate: issued.cert.der().clone(),
            certificate_pem: issued.cert.pem(),
            key_pem: issued.signing_key.serialize_pem(),
        }
    }

    fn put_into(&self, workspace: Workspace) -> Workspace {
        workspace.file("tls/cert.pem", &self.certificate_pem).file("tls/key.pem", &self.key_pem)
    }

    /// A client that trusts this certificate and no other.
    fn connect(&self, address: &str) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut session = ClientConnection::new(config, name).unwrap();
        let mut stream = http::connect(address);
        while session.is_handshaking() {
            session.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(session, stream))
    }

    fn ask(&self, address: &str, method: &str, path: &str, body: &str) -> Answer {
        let stream = self.connect(address).unwrap();
        http::request_over(stream, address, method, path, &[("A2A-Version", "1.0")], body)
    }
}

/// Runs a printed line as a person would; without curl on this machine, does the same request.
fn run(line: &str, issued: &Issued) -> String {
    let words = words(line);
    if let Ok(output) = Command::new("curl").args(&words[1..]).output() {
        assert!(output.status.success(), "{line}: {output:?}");
        return String::from_utf8(output.stdout).unwrap();
    }
    let url = words.iter().find_map(|word| word.strip_prefix("https://")).unwrap();
    let (address, path) = url.split_once('/').unwrap();
    issued.ask(address, "POST", &format!("/{path}"), words.last().unwrap()).text()
}

#[test]
fn a_certificate_in_the_workspace_makes_it_https_everywhere() {
    let issued = Issued::new();
    let workspace = issued.put_into(Workspace::new().file("switchboard.yaml", SETTINGS));
    workspace.good();
    let server = Server::start(&workspace);
    let (address, base) = (server.address.as_str(), format!("https://{}", server.address));
    let greeting = server.greeting.join("\n");
    assert!(greeting.contains(&format!("{base}/a2a/echo/.well-known/agent-card.json")), "{greeting}");
    assert!(!greeting.contains("http://"), "{greeting}");

    let card = issued.ask(address, "GET", "/.well-known/agent-card.json", "").json();
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert!(url.starts_with(&base), "{card}");
    let sent = run(server.line_under("send a message:"), &issued);
    assert!(sent.contains("TASK_STATE_COMPLETED") && sent.contains("hello"), "{sent}");
    let streamed = run(server.line_under("stream one:"), &issued);
    assert!(streamed.contains("chunk 3") && streamed.contains("TASK_STATE_COMPLETED"), "{streamed}");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}"#;
    let called = issued.ask(address, "POST", "/a2a/echo", call).json();
    assert_eq!(called["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{called}");

    let plain = server.get("/healthz", "");
    assert_eq!(plain.status, 400);
    assert!(plain.text().contains("write https:// instead of http://"));
    let status = workspace.run(&["status"]);
    assert!(status.stdout.contains(&base), "{}", status.stdout);
    assert_eq!(workspace.run(&["status", "-o", "json"]).json()["tls"], true);
    let second = workspace.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert!(second.stderr.contains(&format!("(switchboard on {base})")), "{}", second.stderr);
    server.stop();
}

#[test]
fn tls_alone_does_not_open_the_door_to_other_machines() {
    let workspace = Issued::new().put_into(Workspace::new().file("switchboard.yaml", SETTINGS));
    let run = workspace.run(&["serve", "--bind", "0.0.0.0:0"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there is no key that callers would need"), "{}", run.stderr);
}

#[test]
fn a_renewed_certificate_needs_no_restart() {
    let first = Issued::new();
    let settings = format!("{SETTINGS}  publicBaseUrl: http://agents.test\n");
    let workspace = first.put_into(Workspace::new().file("switchboard.yaml", settings));
    let server = Server::start_after(&workspace, "true");
    assert!(first.connect(&server.address).is_ok());

    // Half of a renewal: the first pair stays, and the log says which file is wrong.
    let second = Issued::new();
    let workspace = workspace.file("tls/cert.pem", &second.certificate_pem);
    let complaint = "key.pem does not belong to the first certificate in";
    let log = || std::fs::read_to_string(workspace.path().join("stderr.txt")).unwrap();
    assert!(log().contains("agent cards say http://agents.test, and this server speaks nothing but TLS"), "{}", log());
    let began = Instant::now();
    while !log().contains(complaint) {
        assert!(first.connect(&server.address).is_ok());
        assert!(began.elapsed() < PATIENCE, "{}", log());
    }
    assert!(first.connect(&server.address).is_ok() && second.connect(&server.address).is_err());

    std::fs::write(workspace.path().join("tls/key.pem"), &second.key_pem).unwrap();
    while second.connect(&server.address).is_err() {
        assert!(began.elapsed() < PATIENCE, "{}", log());
    }
    assert!(first.connect(&server.address).is_err());
    assert_eq!(log().matches(complaint).count(), 1, "{}", log());
    server.stop();
}

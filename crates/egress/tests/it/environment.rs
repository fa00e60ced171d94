//! What the environment may and may not change. A test cannot change its own, so it runs itself again as a child.

use std::env;

use switchboard_egress::{Egress, Options};
use tokio::process::Command;

use crate::encryption::Authority;
use crate::receiver::{LONG, Receiver, loopback, post};

/// Set for the child alone: what it should call.
const URL: &str = "EGRESS_TEST_URL";

/// Calls the URL that the parent gave, if there is a parent.
async fn is_child() -> bool {
    let Ok(url) = env::var(URL) else { return false };
    let egress = Egress::new(Options { allowlist: loopback(), ..Options::default() }).unwrap();
    let response = egress.send(post(&url), LONG, 100).await.unwrap();
    assert_eq!(response.status(), 200);
    true
}

async fn run_child(test: &str, url: &str, environment: &[(&str, String)]) -> bool {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env(URL, url).envs(environment.iter().map(|(name, value)| (name, value)));
    command.output().await.unwrap().status.success()
}

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    if is_child().await {
        return;
    }
    let (receiver, requests) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let (proxy, _) = Receiver::answering("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let environment = names.map(|name| (name, proxy.url("")));
    let test = "environment::proxies_of_the_environment_are_ignored";
    assert!(run_child(test, &receiver.url("/hook"), &environment).await);
    assert_eq!(requests.lock().len(), 1, "the child called");
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn the_system_roots_can_be_named_in_the_environment() {
    if is_child().await {
        return;
    }
    let authority = Authority::new();
    let receiver = authority.receiver("localhost", &[b"h2"]).await;
    let url = format!("https://localhost:{}/", receiver.address.port());
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours.pem"), folder.path().join("theirs.pem"));
    std::fs::write(&ours, &authority.pem).unwrap();
    std::fs::write(&theirs, Authority::new().pem).unwrap();
    let test = "environment::the_system_roots_can_be_named_in_the_environment";
    let naming = |path: &std::path::Path| [("SSL_CERT_FILE", path.display().to_string())];
    assert!(run_child(test, &url, &naming(&ours)).await);
    assert!(!run_child(test, &url, &naming(&theirs)).await);
    assert_eq!(receiver.connections(), 2, "both called");
}

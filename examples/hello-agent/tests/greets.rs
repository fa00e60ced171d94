//! The example as a person runs it: it says where it is, greets, and ends with Ctrl-C.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn greets_whoever_writes_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hello-agent"))
        .current_dir(folder.path())
        .env("SWITCHBOARD_SERVER_BIND", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.rsplit("http://").next().unwrap();
    assert!(lines.any(|line| line.contains("/a2a/hello/message:send")), "a line to copy");

    let body = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Ada"}]}}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("POST /a2a/hello/message:send HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("Hello, Ada!") && answer.contains("TASK_STATE_COMPLETED"), "{answer}");

    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

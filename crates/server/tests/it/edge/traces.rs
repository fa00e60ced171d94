//! What a request leaves behind: its name in the response, and one line in the log.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::edge::running::{Running, send_message};

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_request_keeps_its_name_or_gets_one() {
    let running = Running::open().await;
    for head in ["GET /healthz", "GET /nowhere", "GET /tasks/none", "POST /healthz"] {
        let named = running.ask(head, &["X-Request-Id: deploy-42/a"], "").await;
        assert_eq!(named.header("x-request-id"), Some("deploy-42/a"), "{head}");
        let mut made = Vec::new();
        for bad in ["", "two words", "<script>", "\"", &"x".repeat(129)] {
            let reply = running.ask(head, &[&format!("X-Request-Id: {bad}")], "").await;
            made.push(reply.header("x-request-id").unwrap().to_owned());
        }
        let prefix = &made[0][..13];
        assert!(made.iter().all(|id| id.starts_with(prefix) && id.len() < 30), "{made:?}");
        made.dedup();
        assert_eq!(made.len(), 5, "{made:?}");
    }
}

/// What the process has logged, as lines of JSON.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// For the whole process: a subscriber of one thread can be missed by call sites that another thread meets first.
    pub(crate) fn of_this_process() -> &'static Self {
        static LINES: OnceLock<Lines> = OnceLock::new();
        LINES.get_or_init(|| {
            let lines = Lines::default();
            let writer = lines.clone();
            tracing_subscriber::fmt().json().with_writer(move || writer.clone()).init();
            lines
        })
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_says_who_asked_for_what_and_keeps_secrets() {
    let lines = Lines::of_this_process();
    let running = Running::keyed().await;
    let headers = [JSON, "Authorization: Bearer a2a_ann", "X-Request-Id: r-77", "X-Forwarded-For: 192.0.2.1"];
    let body = send_message(1, "SendMessage", "whispered");
    running.ask("POST /a2a/echo?A2A-Version=1.0&secret=hush", &headers, &body).await;
    running.ask("GET /tasks", &["X-Request-Id: r-78", "X-API-Key: stolen"], "").await;
    running.ask("GET /healthz", &["X-Request-Id: r-79"], "").await;
    let long = format!("GET /nowhere/{}", "n".repeat(5_000));
    running.ask(&long, &["X-Request-Id: r-80"], "").await;
    let written = lines.written();
    let line = |id: &str| {
        let line = written.lines().find(|line| line.contains(id));
        line.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
    };
    let sent = line("r-77").unwrap_or_else(|| panic!("no line in {written:?}"));
    assert_eq!(sent["level"], "INFO");
    let fields = &sent["fields"];
    assert_eq!((&fields["method"], &fields["path"]), (&"POST".into(), &"/a2a/echo".into()), "{sent}");
    assert_eq!((&fields["status"], &fields["caller"]), (&200.into(), &"ann".into()), "{sent}");
    assert!(fields["duration_ms"].is_f64(), "{sent}");
    assert_eq!(fields["client"], "127.0.0.1", "the headers of a proxy that is not trusted say nothing: {sent}");
    let refused = line("r-78").unwrap();
    assert_eq!((&refused["fields"]["status"], &refused["fields"]["caller"]), (&401.into(), &"-".into()), "{refused}");
    assert!(line("r-79").is_none(), "probes are not worth a line");
    let shortened = line("r-80").unwrap()["fields"]["path"].as_str().unwrap().to_owned();
    assert_eq!((shortened.chars().count(), shortened.chars().last()), (257, Some('…')), "{shortened}");
    for secret in ["whispered", "hush", "a2a_ann", "stolen"] {
        assert!(!written.contains(secret), "{secret} is in {written}");
    }
}

#[tokio::test]
async fn a_logged_path_is_cut_between_characters_and_a_sane_id_is_kept() {
    let lines = Lines::of_this_process();
    let running = Running::open().await;
    let id = "trace/1:a-b_c.d+e=f@g";
    let head = format!("GET /{}", "é".repeat(200));
    let reply = running.ask(&head, &[&format!("X-Request-Id: {id}")], "").await;
    assert_eq!((reply.status, reply.header("x-request-id")), (404, Some(id)), "{reply:?}");
    let written = lines.written();
    let line = written.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("no line in {written}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["fields"]["path"], format!("/{}…", "é".repeat(127)), "{line}");
}

//! The trace context of a message: read, stored with it, and there for the agent whatever happens in between.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use switchboard_a2a::{Message, TaskId, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(correlation_id: &str, message: Message) -> IncomingMessage {
    let trace = TraceContext {
        correlation_id: Some(correlation_id.to_owned()),
        parent_id: Some("call-3".to_owned()),
        traceparent: Traceparent::parse(TRACEPARENT),
    };
    IncomingMessage { trace: Some(Arc::new(trace)), ..request(message) }
}

fn shown(turn: &Turn) -> String {
    let Some(trace) = turn.trace.as_deref() else { return "no trace".to_owned() };
    let traceparent = trace.traceparent.as_ref().map(Traceparent::as_str);
    format!("{:?} {:?} {traceparent:?}", trace.correlation_id, trace.parent_id)
}

/// Asks with its trace context as the question, and holds on after the answer. A later run says what it finds, of its
/// own message and of the first.
fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let own = shown(&turn);
        if turn.cause == Cause::Begin {
            task.ask(own).await?;
            task.status("on").await?;
            task.canceled().await;
            return Ok(());
        }
        let first = shown(&task.turn_on(Seq(1), turn).await?);
        Ok(task.complete_with(format!("{own}; {first}")).await?)
    })
}

fn expected(correlation_id: &str) -> String {
    format!(r#"Some("{correlation_id}") Some("call-3") Some("{TRACEPARENT}")"#)
}

/// How many stored rows say something of a trace.
fn rows_with_trace(folder: &Path, text: &str) -> i64 {
    let database = rusqlite::Connection::open(switchboard_store::database_path(folder)).unwrap();
    database.query_row("SELECT count(*) FROM event WHERE instr(blob, ?1)", [text], |row| row.get(0)).unwrap()
}

async fn asked(kernel: &Kernel, incoming: IncomingMessage) -> (TaskId, String) {
    let sent = kernel.send_as(&Caller::local(), incoming).await.unwrap();
    let task = kernel.reach(sent.id(), TaskState::InputRequired).await;
    (sent.id().clone(), status_text(&task))
}

async fn answer(kernel: &Kernel, id: &TaskId) {
    let answer = Message { task_id: Some(id.clone()), ..message("yes") };
    kernel.send_as(&Caller::local(), traced("order-18", answer)).await.unwrap();
}

#[test]
fn a_recovered_turn_has_the_trace_of_its_message() {
    for (recovery, own) in [(Recovery::Resume, "order-18"), (Recovery::Restart, "order-17")] {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::open(folder.path(), script());
        let id = kernel.run(async {
            let (id, question) = asked(&kernel, traced("order-17", message("build"))).await;
            assert_eq!(question, expected("order-17"));
            answer(&kernel, &id).await;
            while status_text(&kernel.get(&id).await.unwrap()) != "on" {
                tokio::task::yield_now().await;
            }
            id
        });
        kernel.kill();
        let kernel = Kernel::open(folder.path(), script().recovering(recovery));
        let task = kernel.run(kernel.reach(&id, TaskState::Completed));
        assert_eq!(status_text(&task), format!("{}; {}", expected(own), expected("order-17")));
    }
}

#[test]
fn an_answer_after_a_restart_has_its_own_trace() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    let (id, _) = kernel.run(asked(&kernel, request(message("build"))));
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    let task = kernel.run(async {
        answer(&kernel, &id).await;
        kernel.reach(&id, TaskState::Completed).await
    });
    assert_eq!(status_text(&task), format!("{}; no trace", expected("order-18")));
}

#[test]
fn only_what_a_request_says_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let empty = IncomingMessage { trace: Some(Arc::default()), ..request(message("build")) };
        for incoming in [request(message("build")), empty] {
            assert_eq!(asked(&kernel, incoming).await.1, "no trace");
        }
        assert_eq!(rows_with_trace(folder.path(), r#""trace""#), 0);
        let trace = TraceContext { parent_id: Some("call-3".to_owned()), ..TraceContext::default() };
        let partial = IncomingMessage { trace: Some(Arc::new(trace)), ..request(message("build")) };
        assert_eq!(asked(&kernel, partial).await.1, r#"None Some("call-3") None"#);
        assert_eq!(rows_with_trace(folder.path(), r#""trace":{"parentId":"call-3"}"#), 1);
    });
}

#[test]
fn a_traceparent_is_read_as_w3c_trace_context_says() {
    for (sent, kept) in [
        (TRACEPARENT, TRACEPARENT),
        (
            "00-0000000000000000000000000000000a-000000000000000a-ff",
            "00-0000000000000000000000000000000a-000000000000000a-ff",
        ),
        ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TRACEPARENT),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-what-will-be", TRACEPARENT),
        (
            "fe-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        ),
    ] {
        assert_eq!(Traceparent::parse(sent).as_ref().map(Traceparent::as_str), Some(kept), "{sent}");
    }
    for malformed in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "CC-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-+1",
        // The 55th byte is in the middle of a character.
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0é",
    ] {
        assert_eq!(Traceparent::parse(malformed), None, "{malformed}");
    }
}

proptest! {
    #[test]
    fn a_traceparent_of_any_version_keeps_its_ids(
        version in "[0-9a-f]{2}",
        trace_id in "0{31}[0-9a-f]|[0-9a-f]{32}",
        parent_id in "0{15}[0-9a-f]|[0-9a-f]{16}",
        flags in "[0-9a-f]{2}",
        more in "|-[ -~]{0,20}",
    ) {
        let sent = format!("{version}-{trace_id}-{parent_id}-{flags}{more}");
        let has_ids = [&trace_id, &parent_id].into_iter().all(|id| id.contains(|digit| digit != '0'));
        let is_good = has_ids && version != "ff" && (version != "00" || more.is_empty());
        let parsed = Traceparent::parse(&sent);
        prop_assert_eq!(parsed.is_some(), is_good);
        if let Some(parsed) = parsed {
            let ids = format!("00-{trace_id}-{parent_id}-");
            prop_assert!(parsed.as_str().starts_with(&ids) && parsed.as_str().len() == 55);
            prop_assert_eq!(Traceparent::parse(parsed.as_str()), Some(parsed));
        }
    }

    #[test]
    fn no_text_panics_as_a_traceparent(text in "\\PC{0,80}|[0-9a-f-]{50,60}") {
        if let Some(parsed) = Traceparent::parse(&text) {
            prop_assert_eq!(parsed.as_str().len(), 55);
        }
    }
}

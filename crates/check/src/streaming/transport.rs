//! Checks of what proxies need to pass a stream on: no buffering, and keep-alives while there is no event.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH};

use crate::checks::{Check, Group, Quality};
use crate::interface::TestedInterface;
use crate::streaming::stream;
use crate::verdict::{CheckResult, fail, no_problems, skip};

pub(crate) const CHECKS: &[Check] = &[
    Check::of_interface(Group::Streaming, Quality, "stream-unbuffered", |interface| Box::pin(unbuffered(interface)))
        .title("proxies are told not to hold the stream back")
        .rule("A2A leaves it open; RFC 9111 §5.2.2")
        .fix("send Cache-Control: no-cache and X-Accel-Buffering: no, neither a Content-Length nor a Content-Encoding"),
    Check::of_interface(Group::Streaming, Quality, "stream-keep-alive", |interface| Box::pin(keep_alive(interface)))
        .title("a stream with nothing to say gives a sign of life every quarter of a minute or so")
        .rule("A2A leaves it open; WHATWG HTML §9.2.7")
        .fix("send a comment line every 15 s while no event comes"),
];

async fn unbuffered(interface: &TestedInterface) -> CheckResult {
    let recorded = stream(interface).await?;
    let text = |name: &str| {
        let value = recorded.reply.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_ascii_lowercase()
    };
    let mut problems = Vec::new();
    let control = text(CACHE_CONTROL.as_str());
    if !control.contains("no-cache") && !control.contains("no-store") {
        problems.push(format!("Cache-Control: {control}"));
    }
    if text("x-accel-buffering") != "no" {
        problems.push(format!("X-Accel-Buffering: {}", text("x-accel-buffering")));
    }
    for name in [CONTENT_LENGTH, CONTENT_ENCODING] {
        let value = text(name.as_str());
        if !matches!(value.as_str(), "" | "identity") {
            problems.push(format!("{name}: {value}"));
        }
    }
    no_problems(&problems, &recorded.reply.sent)
}

async fn keep_alive(interface: &TestedInterface) -> CheckResult {
    let recorded = stream(interface).await?;
    let most = interface.agent.silence;
    if recorded.silence >= most {
        let seconds = recorded.silence.as_secs_f64();
        return fail(&recorded.reply.sent, format!("not one byte came for {seconds:.0} s"));
    }
    if recorded.has_keep_alive {
        return Ok(());
    }
    let (most, twice) = (most.as_secs(), most.as_secs() * 2);
    skip(format!("the stream was never silent for {most} s; a --text that is, with --patience {twice}s, would show it"))
}

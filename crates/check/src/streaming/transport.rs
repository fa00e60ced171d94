//! Checks of what proxies need to pass a stream on: no buffering, and keep-alives while there is no event.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH};

use crate::interface::TestedInterface;
use crate::streaming::stream;
use crate::verdict::{CheckResult, fail, no_problems, skip};

pub(crate) async fn unbuffered(interface: &TestedInterface) -> CheckResult {
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
    no_problems(problems, &recorded.reply.sent)
}

pub(crate) async fn keep_alive(interface: &TestedInterface) -> CheckResult {
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

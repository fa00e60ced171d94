//! Whether streams come through what stands between caller and agent: nothing that makes proxies wait for more, and a sign
//! of life where there is nothing to say.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH};

use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::streaming::stream;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "stream-unbuffered",
        group: Group::Streaming,
        title: "proxies are told not to hold the stream back",
        rule: "A2A leaves it open; RFC 9111 §5.2.2",
        severity: Severity::Quality,
        fix: "send Cache-Control: no-cache and X-Accel-Buffering: no, neither a Content-Length nor a Content-Encoding",
        run: Run::Interface(|line| Box::pin(unbuffered(line))),
    },
    Check {
        id: "stream-keep-alive",
        group: Group::Streaming,
        title: "a stream with nothing to say gives a sign of life every quarter of a minute or so",
        rule: "A2A leaves it open; WHATWG HTML §9.2.7",
        severity: Severity::Quality,
        fix: "send a comment line every 15 s while no event comes",
        run: Run::Interface(|line| Box::pin(keep_alive(line))),
    },
];

async fn unbuffered(line: &Line) -> Verdict {
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let text = |name: &str| {
        let value = heard.reply.headers.get(name).and_then(|value| value.to_str().ok());
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
    Verdict::of(&problems, &heard.reply.sent)
}

async fn keep_alive(line: &Line) -> Verdict {
    let heard = match stream(line).await {
        Ok(heard) => heard,
        Err(verdict) => return verdict,
    };
    let most = line.subject.silence;
    if heard.silence >= most {
        let seconds = heard.silence.as_secs_f64();
        return Verdict::fail(&heard.reply.sent, format!("not one byte came for {seconds:.0} s"));
    }
    if heard.has_keep_alive {
        return Verdict::pass();
    }
    let (most, twice) = (most.as_secs(), most.as_secs() * 2);
    Verdict::not_applicable(format!(
        "the stream was never silent for {most} s; a --text that is, with --patience {twice}s, would show it"
    ))
}

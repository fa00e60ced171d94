//! A program that says what time it is, for an agent whose delay is measured. It is this binary, so that to look at the
//! clock and to write costs next to nothing.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Says the time so many times, with such a pause before each, and is done.
pub fn speak(count: u64, pause: Duration) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for _ in 0..count {
        std::thread::sleep(pause);
        // One write for a line: the time is as late as can be.
        let line = format!("{{\"kind\":\"text\",\"text\":\"{};\"}}\n", now());
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    output.write_all(b"{\"kind\":\"done\"}\n")?;
    output.flush()
}

/// Microseconds, the same for all processes.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

//! SendStreamingMessage: every chunk exactly once and in order, then COMPLETED, then the end of the stream.
//! A chunk carries its number in its text, counted from 0 or from 1.

use anyhow::Context;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::reply::{self, COMPLETED, Event};
use crate::request::RequestWriter;

/// How many chunks a text such as `stream:100` asks for.
pub(crate) fn chunks_of(text: &str) -> anyhow::Result<u64> {
    let (_, count) = text.split_once(':').with_context(|| format!("{text} does not say how many, as in stream:100"))?;
    count.parse().with_context(|| format!("{count} is not a number of chunks"))
}

pub(crate) async fn perform(
    connection: &mut Connection,
    writer: &mut RequestWriter,
    id: u64,
    text: &str,
    chunks: u64,
) -> Result<u64, Failure> {
    let mut events = connection.call_streaming(writer.message("SendStreamingMessage", id, text, None)).await?;
    let mut order = Order::default();
    let mut state = String::new();
    while let Some(data) = events.next().await? {
        let event: Event<'_> = reply::result(data, id)?;
        if let Some(update) = event.artifact_update {
            let part = update.artifact.parts.into_iter().next();
            order.accept(&part.and_then(|part| part.text).unwrap_or_default())?;
        } else if let Some(update) = event.status_update {
            state = update.status.state.into_owned();
        } else if let Some(task) = event.task {
            state = task.status.state.into_owned();
        }
    }
    if order.seen != chunks || state != COMPLETED {
        return Err(Failure::Short { expected: chunks, found: order.seen, state });
    }
    Ok(chunks)
}

#[derive(Default)]
struct Order {
    seen: u64,
    /// The number of the first chunk.
    base: u64,
}

impl Order {
    fn accept(&mut self, text: &str) -> Result<(), Failure> {
        let mut numbers = text.split(|character: char| !character.is_ascii_digit()).filter(|run| !run.is_empty());
        let number = match (numbers.next(), numbers.next()) {
            // An update without text may close the artifact.
            (None, _) => return Ok(()),
            (Some(number), None) => number.parse::<u64>().ok(),
            // Merged chunks would count as one event here and as two elsewhere.
            (Some(_), Some(_)) => None,
        };
        if self.seen == 0 && number == Some(1) {
            self.base = 1;
        }
        let expected = self.base + self.seen;
        if number != Some(expected) {
            return Err(Failure::Chunk { expected, found: text.to_owned() });
        }
        self.seen += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_count_from_zero_or_from_one() {
        for base in 0..2 {
            let mut order = Order::default();
            for number in base..base + 100 {
                order.accept(&format!("chunk {number} ")).unwrap();
            }
            order.accept("").unwrap();
            assert_eq!(order.seen, 100);
        }
    }

    #[test]
    fn a_lost_a_doubled_and_a_merged_chunk_are_noticed() {
        for second in ["chunk 2", "chunk 0", "chunk 1 chunk 2"] {
            let mut order = Order::default();
            order.accept("chunk 0").unwrap();
            assert!(matches!(order.accept(second), Err(Failure::Chunk { expected: 1, .. })), "{second}");
        }
    }
}

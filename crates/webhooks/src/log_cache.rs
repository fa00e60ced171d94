//! A cache of log readers for the webhooks served last. A reader holds the fold of its task up to the last delivery, so
//! a body with the whole task costs the events since then, not the whole log.

use std::collections::VecDeque;

use parking_lot::Mutex;
use switchboard_engine::LogReader;
use switchboard_engine::store::webhooks::WebhookKey;

/// Together they take no more memory than a few large tasks.
const MOST: usize = 64;
const LARGEST: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct LogCache(Mutex<VecDeque<(WebhookKey, LogReader)>>);

impl LogCache {
    /// The reader of the webhook's last step.
    pub(crate) fn take(&self, webhook: WebhookKey) -> Option<LogReader> {
        let mut kept = self.0.lock();
        let index = kept.iter().position(|(of, _)| *of == webhook)?;
        kept.remove(index).map(|(_, reader)| reader)
    }

    /// Keeps a reader for the webhook's next step, if the fold it holds is small. The size of the last body says nothing
    /// about that: an update of a large task may be short.
    pub(crate) fn keep(&self, webhook: WebhookKey, reader: LogReader) {
        if reader.held_bytes() > LARGEST {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back((webhook, reader));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard_a2a::Version;
    use switchboard_engine::Caller;
    use switchboard_engine::clock::SystemClock;
    use switchboard_engine::store::webhooks::DeliveryState;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::endpoints::Started;
    use crate::outbox::tests::{send, unstarted};

    /// The origin of an endpoint that takes everything.
    async fn endpoint() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // What is sent is small and comes in one piece.
                let _ = stream.read(&mut [0; 16 << 10]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            }
        });
        origin
    }

    #[tokio::test]
    async fn a_task_is_kept_while_it_is_small_and_its_webhook_has_more_to_deliver() {
        // What comes after the first step is rendered with it, so the task is known up to its end.
        let cases: [(&[&str], usize, bool); 3] = [
            (&["working"], 1_000, true),
            // Though its updates are short.
            (&["working"], 2 * LARGEST, false),
            (&["working", "failed"], 1_000, false),
        ];
        for (steps, artifact_bytes, is_kept) in cases {
            let (_folder, webhooks) = unstarted(Arc::new(SystemClock)).await;
            let origin = endpoint().await;
            let config = format!(r#"{{"url":"{origin}/hook","payload":"status-update"}}"#);
            send(&webhooks, artifact_bytes.to_string(), Version::V1, &config).await;
            let (key, outbox) = (WebhookKey(1), &webhooks.outbox);
            for about in steps {
                let owner = Caller::local().id;
                outbox.perform(&Started { job: key, owner, endpoint: origin.as_str().into() }).await;
                let deliveries = outbox.store.deliveries(key, 10).await.unwrap();
                let delivered = deliveries.iter().find(|delivery| delivery.state == DeliveryState::Delivered);
                assert_eq!(delivered.map(|delivery| delivery.about.as_str()), Some(*about));
            }
            let held = outbox.log_cache.take(key).map(|reader| reader.held_bytes());
            assert_eq!(held.is_some_and(|bytes| bytes > artifact_bytes), is_kept, "{steps:?}: {held:?}");
            assert_eq!(held.is_some(), is_kept);
        }
    }
}

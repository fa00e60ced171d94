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

    use switchboard_a2a::{PushConfig, PushPayload, Version};
    use switchboard_engine::clock::SystemClock;
    use switchboard_engine::store::webhooks::DeliveryState;
    use switchboard_engine::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::endpoints::Started;
    use crate::outbox::tests::{send, unstarted};

    /// Says that it begins, makes an artifact of so many bytes as its text says, and fails: no status carries the artifact.
    #[derive(Clone)]
    struct Maker;

    impl Agent for Maker {
        fn manifest(&self) -> Manifest {
            Manifest::new("Maker", "Makes an artifact")
        }

        async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
            let bytes = turn.text().parse().map_err(|_| AgentError::new("send a number"))?;
            task.status("begun").await?;
            task.text("x".repeat(bytes)).await?;
            Ok(task.fail("enough").await?)
        }
    }

    /// Takes the first steps of a webhook that is told of statuses only, each of which is taken by its endpoint; says how
    /// much is kept of the task.
    async fn kept_after(steps: &[&str], artifact_bytes: usize) -> Option<usize> {
        let (_folder, webhooks) = unstarted("maker", Maker, Arc::new(SystemClock)).await;
        let origin = endpoint().await;
        let config = PushConfig {
            tenant: None,
            id: None,
            task_id: None,
            url: format!("{origin}/hook"),
            token: None,
            authentication: None,
            payload: Some(PushPayload::StatusUpdate),
        };
        let caller = Caller::local();
        send(&webhooks, "maker", artifact_bytes.to_string(), Version::V1, config).await;
        let key = WebhookKey(1);
        let outbox = &webhooks.outbox;
        for told in steps {
            let started = Started { job: key, owner: caller.id.clone(), endpoint: origin.as_str().into() };
            outbox.perform(&started).await;
            let deliveries = outbox.store.deliveries(key, 10).await.unwrap();
            let delivered = deliveries.iter().find(|delivery| delivery.state == DeliveryState::Delivered);
            assert_eq!(delivered.map(|delivery| delivery.about.as_str()), Some(*told));
        }
        outbox.log_cache.take(key).map(|reader| reader.held_bytes())
    }

    /// The origin of an endpoint that takes everything.
    async fn endpoint() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // Nobody looks at what is sent; it is small and comes in one piece.
                let _ = stream.read(&mut [0; 16 << 10]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            }
        });
        origin
    }

    #[tokio::test]
    async fn a_large_task_is_not_kept_though_its_news_are_short() {
        // What comes after the first step was made with it, so the task is known up to its end.
        assert!(kept_after(&["working"], 1_000).await.is_some_and(|bytes| bytes > 1_000), "a small one is");
        assert_eq!(kept_after(&["working"], 2 * LARGEST).await, None);
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_webhook_that_has_come_to_its_end() {
        assert_eq!(kept_after(&["working", "failed"], 1_000).await, None);
    }
}

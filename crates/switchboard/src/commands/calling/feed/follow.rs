//! Follows the feed over one connection after another. Each begins after the last item that was printed, so that nothing is
//! lost or printed twice.

use std::time::Duration;

use http::Method;
use http::header::ACCEPT;
use serde_json::Value;
use switchboard_a2a::sse::EventReader;
use switchboard_egress::ResponseBody;
use switchboard_host::printer::{self, Printer};

use super::item::ItemPrinter;
use super::{FeedOptions, page};
use crate::commands::calling::Failure;
use crate::commands::calling::hub_client::{HubClient, HubError};

/// The server writes a comment every 15 s; a connection that is silent for so long is dead.
const SILENCE: Duration = Duration::from_secs(60);
/// A payload of the feed is bounded by the largest message.
const LARGEST_EVENT: usize = 64 << 20;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

pub(super) async fn follow(hub: HubClient, options: &FeedOptions, from: &str, printer: Printer) -> Result<(), Failure> {
    // Now is a moment that a second connection would not know any more.
    let from = match from {
        "now" => page(&hub, options, from, "1").await?.1,
        from => from.to_owned(),
    };
    let mut follower =
        Follower { hub, options, from, since: Vec::new(), wait: FIRST_WAIT, lines: ItemPrinter::new(printer), printer };
    let mut is_first = true;
    loop {
        match follower.connection().await {
            _ if printer::is_output_closed() => return Ok(()),
            Ok(()) => {}
            Err(HubError::Failed(failure)) if is_first => return Err(failure),
            Err(HubError::Failed(_)) => {}
            Err(error) if error.is_temporary() => {}
            Err(error) => return Err(error.failure(&follower.hub)),
        }
        is_first = false;
        follower.reconnect().await;
    }
}

struct Follower<'a> {
    hub: HubClient,
    options: &'a FeedOptions,
    /// Where the next connection begins.
    from: String,
    /// Id and topic of what was printed since: an event may mean several things, and only the last of them moves the place.
    since: Vec<(Value, Value)>,
    wait: Duration,
    lines: ItemPrinter,
    printer: Printer,
}

impl Follower<'_> {
    /// Prints what one connection brings, until it ends or breaks.
    async fn connection(&mut self) -> Result<(), HubError> {
        let mut url = self.options.url(&self.hub, &self.from);
        if self.options.brief {
            url.query_pairs_mut().append_pair("view", "brief");
        }
        let accept = [(ACCEPT, "text/event-stream")];
        let response = self.hub.open_response(Method::GET, url, None, &accept).await?;
        if !response.status().is_success() {
            return Err(self.hub.refused(response).await);
        }
        let mut body: ResponseBody = response.into_body();
        let mut reader = EventReader::new(LARGEST_EVENT);
        while let Ok(Some(piece)) = body.next(SILENCE).await {
            reader.feed(&piece);
            while let Ok(Some(event)) = reader.next_event() {
                let Ok(item) = serde_json::from_str::<Value>(&event.data) else { continue };
                self.take(&item, event.id);
            }
            if printer::is_output_closed() {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, item: &Value, id: Option<String>) {
        self.wait = FIRST_WAIT;
        let named = (item["id"].clone(), item["topic"].clone());
        if !self.since.contains(&named) {
            self.lines.print(item);
            self.since.push(named);
        }
        if let Some(id) = id {
            self.from = id;
            self.since.clear();
        }
    }

    /// Waits, and finds the server again: after a restart it may be at another address.
    async fn reconnect(&mut self) {
        if self.wait == FIRST_WAIT {
            self.printer.note(&format!("the connection to {} was lost; trying again", self.hub.base()));
        }
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        if self.hub.is_local
            && let Ok(hub) = HubClient::open(&self.hub.flags).await
        {
            self.hub = hub;
        }
    }
}

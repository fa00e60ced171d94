//! The probe agent on a server without the hub: no journal, no routing, and no reader of the log unless it is asked for.
//! `cargo xtask bench --hub` measures against it what the hub costs a message, and what the kernel's part of that is. Its
//! other flags are those of every program that hosts its own agents.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures_util::future::BoxFuture;
use mimalloc::MiMalloc;
use switchboard_engine::store::feed::{FeedContent, FeedStart};
use switchboard_engine::{Engine, FeedItem, FeedReader, Hosted};
use switchboard_host::StartError;
use switchboard_host::demo::Probe;
use switchboard_host::flags::ConfigFlags;
use switchboard_host::serve::{Fleet, FleetFactory, Lifecycle, Plan, Serving};
use switchboard_server::Front;
use tokio_util::sync::CancellationToken;

/// As the binary has it, so that only the hub makes a difference.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long the projector lets commits gather.
const GATHER: Duration = Duration::from_millis(1);

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    flags: ConfigFlags,
    /// Read every row of the feed, and do nothing with it
    #[arg(long)]
    feed_reader: bool,
}

/// Fills the ring buffer and empties it again, as the projector does.
struct Reading;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let Arguments { flags, feed_reader } = Arguments::parse();
    let workspace = flags.load_settings()?;
    let _ = switchboard_host::logging::start(&workspace.config.log);
    let read_again = Box::new(move || flags.load_settings());
    let serving = Serving::start(Plan { workspace, fleet: fleet(feed_reader), read_again }).await?;
    serving.run(CancellationToken::new()).await
}

fn fleet(feed_reader: bool) -> FleetFactory {
    let reading: Option<Box<dyn Lifecycle>> = feed_reader.then(|| Box::new(Reading) as _);
    let hosted = vec![Hosted::new("probe", Probe)];
    let fleet = Fleet { hosted, lifecycles: reading.into_iter().collect(), ..Fleet::default() };
    Box::new(move |_| Box::pin(std::future::ready(Ok(fleet))))
}

impl Lifecycle for Reading {
    fn start<'a>(&'a self, engine: &'a Engine) -> BoxFuture<'a, Result<Vec<Arc<dyn Front>>, StartError>> {
        Box::pin(async move {
            let feed = engine.feed(FeedStart::Now).await.map_err(StartError::Hub)?;
            engine.spawn(read(feed));
            Ok(Vec::new())
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Takes of each row what was decoded of it, which a consumer would work with, and lets commits gather as the projector does.
async fn read(mut feed: FeedReader) {
    while let Ok(true) = feed.take_more().await {
        while let Some(item) = feed.next_taken() {
            if let FeedItem::Row { row, .. } = item
                && let FeedContent::Events { written, .. } = &row.content
            {
                drop(written.take());
            }
        }
        tokio::time::sleep(GATHER).await;
    }
}

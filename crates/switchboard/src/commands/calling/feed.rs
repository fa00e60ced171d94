//! `switchboard feed`: what happens at a server, from its beginning, from a place, or from now on.

mod follow;
mod item;

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::{self, Printer};
use url::Url;

use self::item::ItemPrinter;
use super::hub_client::HubClient;
use super::{Failure, run as run_async};
use crate::cli::HubFlags;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FeedOptions {
    /// Only these topics, such as task.completed.* or hub.#: * is one word, # at the end any number; can be repeated
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,

    /// Only what happens at this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,

    /// Only this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,

    /// Only what belongs to this correlation id
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,

    /// Where to begin: now, oldest, or after the id of an item; without it oldest, and with --follow now
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,

    /// Go on with what comes, over lost connections and restarts of the server, until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// Of each task only the newest item, without its content, a few times a second
    #[arg(long, requires = "follow")]
    brief: bool,
}

impl FeedOptions {
    /// The feed of a server with these filters, from a place.
    fn url(&self, hub: &HubClient, from: &str) -> Url {
        self.url_with(hub, ("from", from))
    }

    fn url_with(&self, hub: &HubClient, place: (&str, &str)) -> Url {
        let mut url = hub.url(&["api", "feed"]);
        let mut query = url.query_pairs_mut();
        for topic in &self.topics {
            query.append_pair("topic", topic);
        }
        let filters = [("agent", &self.agent), ("task", &self.task), ("context", &self.context)];
        for (name, value) in filters.into_iter().chain([("correlation", &self.correlation)]) {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        query.append_pair(place.0, place.1);
        drop(query);
        url
    }
}

pub(crate) fn run(flags: &HubFlags, options: &FeedOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let from = options.from.as_deref();
        match options.follow {
            false => read(&hub, options, from.unwrap_or("oldest"), printer).await,
            true => follow::follow(hub, options, from.unwrap_or("now"), printer).await,
        }
    })
}

/// Prints what there is, page by page. What comes meanwhile is left out: on a busy server that has no end.
async fn read(hub: &HubClient, options: &FeedOptions, from: &str, printer: Printer) -> Result<(), Failure> {
    let mut from = from.to_owned();
    let newest = newest(hub, options).await?;
    let mut lines = ItemPrinter::new(printer);
    loop {
        let (items, next) = page(hub, options, &from, "100").await?;
        let last = items.iter().rposition(|item| newest.is_none() || Some(&item["id"]) == newest.as_ref());
        let is_end = last.is_some() || (items.is_empty() && next == from);
        for item in items.iter().take(last.map_or(items.len(), |last| last + 1)) {
            lines.print(item);
        }
        if is_end || next.is_empty() || printer::is_output_closed() {
            return Ok(());
        }
        from = next;
    }
}

/// The id of the newest item there is; nothing if there is none.
async fn newest(hub: &HubClient, options: &FeedOptions) -> Result<Option<Value>, Failure> {
    let mut before = "now".to_owned();
    loop {
        let (items, next) = page_of(hub, options.url_with(hub, ("before", &before)), "1").await?;
        match items.into_iter().next() {
            Some(mut newest) => return Ok(Some(newest["id"].take())),
            None if next.is_empty() => return Ok(None),
            None => before = next,
        }
    }
}

/// A page, and the place after it.
async fn page(hub: &HubClient, options: &FeedOptions, from: &str, size: &str) -> Result<(Vec<Value>, String), Failure> {
    page_of(hub, options.url(hub, from), size).await
}

async fn page_of(hub: &HubClient, mut url: Url, size: &str) -> Result<(Vec<Value>, String), Failure> {
    url.query_pairs_mut().append_pair("pageSize", size);
    let answer = hub.call(Method::GET, url, None).await;
    let mut answer = answer.map_err(|error| error.failure(hub))?;
    let items = match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    Ok((items, answer["next"].as_str().unwrap_or_default().to_owned()))
}

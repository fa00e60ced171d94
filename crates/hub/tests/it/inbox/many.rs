//! Many open questions: a page costs what is on it, however many there are.

use serde_json::json;
use switchboard_a2a::TaskId;
use switchboard_engine::store::Store as _;
use switchboard_host::config::Config;
use switchboard_store::{Durability, SqliteStore};

use super::{agents, asked, server};
use crate::counted_store::CountedStore;
use crate::remote::waiting::copies;
use crate::running::{Running, folder};

const OPEN: usize = 20_000;

#[tokio::test]
async fn a_page_of_twenty_thousand_open_questions_reads_what_is_on_it() {
    let data = folder();
    let running = server(data.path()).await;
    let one = asked(&running, "bob", "echo", "ask").await;
    running.stop().await;
    let options = switchboard_store::Options { durability: Durability::Process, ..Default::default() };
    let store = SqliteStore::open(data.path(), options).unwrap();
    copies(&store, &TaskId::from(one.rsplit_once('.').unwrap().0), OPEN).await;
    store.close().await.unwrap();
    drop(store);

    let (store, counts) = CountedStore::open(data.path());
    let running = Running::serving_on_store(store, data.path(), agents(), Config::default()).await;
    let mut after = String::new();
    for _ in 0..3 {
        counts.take();
        let (status, page) = running.get(&format!("/api/inbox?pageSize=50{after}"), "oli").await;
        let counted = counts.take();
        assert_eq!((status, page["items"].as_array().map(Vec::len)), (200, Some(50)));
        // The question and the first message of each.
        assert!(counted.reads <= 2 * 50 && counted.loads == 0, "{counted:?}");
        after = format!("&after={}", page["next"].as_str().unwrap());
    }
    let (_, overview) = running.get("/api/overview", "oli").await;
    assert_eq!(overview["questions"]["open"], json!(OPEN + 1));
    running.stop().await;
}

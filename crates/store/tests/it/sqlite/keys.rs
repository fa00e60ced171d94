//! API keys are kept, revoked, and told apart.

use switchboard_a2a::Timestamp;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::keys::{KeyRow, KeyStore};

use super::SqliteFixture;
use crate::build::refused;
use crate::suite::Fixture;

async fn usable(store: &impl KeyStore, at: i64) -> Vec<KeyRow> {
    let all = store.list_keys().await.unwrap();
    all.into_iter().filter(|key| key.is_usable(Timestamp(at))).collect()
}

fn key(id: &str, digest: u8) -> KeyRow {
    KeyRow {
        id: id.to_owned(),
        name: format!("the key {id}"),
        prefix: "sb_ab".to_owned(),
        digest: [digest; 32],
        scopes: r#"["agents:echo"]"#.to_owned(),
        created_at: Timestamp(i64::from(digest)),
        expires_at: None,
        revoked_at: None,
    }
}

#[tokio::test]
async fn keys_are_kept_until_revoked_or_expired() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let brief = KeyRow { expires_at: Some(Timestamp(100)), ..key("brief", 2) };
    store.create_key(key("one", 1)).await.unwrap();
    store.create_key(brief.clone()).await.unwrap();
    refused(store.create_key(key("one", 9)).await, &StoreError::KeyTaken);
    refused(store.create_key(key("other", 1)).await, &StoreError::KeyTaken);
    assert_eq!(store.list_keys().await.unwrap(), [key("one", 1), brief.clone()]);
    assert_eq!(usable(&store, 99).await, [key("one", 1), brief.clone()]);
    assert_eq!(usable(&store, 100).await, [key("one", 1)]);

    assert!(store.revoke_key("one", Timestamp(50)).await.unwrap());
    assert!(!store.revoke_key("one", Timestamp(60)).await.unwrap());
    assert!(!store.revoke_key("unknown", Timestamp(60)).await.unwrap());
    drop(store);
    let store = fixture.open();
    let revoked = KeyRow { revoked_at: Some(Timestamp(50)), ..key("one", 1) };
    assert_eq!(store.list_keys().await.unwrap(), [revoked, brief.clone()]);
    assert_eq!(usable(&store, 0).await, [brief]);
}

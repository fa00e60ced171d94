//! Keys from their creation to their end, as requests see them.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::keys::KeyStore;
use switchboard_engine::{AgentName, AgentScope, CallerId, CallerRole, Callers};
use switchboard_host::keys::{CreatedKey, KeyAgents, KeyRing, KeyScopes, KeyService, NewKey};
use switchboard_server::Authenticator;
use switchboard_store::{Durability, Options, SqliteStore};

/// A store, a clock, and the ring of a server on loopback.
struct Keys {
    store: Arc<SqliteStore>,
    clock: Arc<SimulatedClock>,
    ring: Arc<KeyRing>,
    service: KeyService,
    _folder: tempfile::TempDir,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let clock = Arc::new(SimulatedClock::at(Timestamp(1_000)));
        let ring = Arc::new(KeyRing::new(true, Arc::clone(&clock) as _, &[]));
        let service = KeyService::new(store.clone(), Arc::clone(&clock) as _, Some(Arc::clone(&ring)));
        Self { store, clock, ring, service, _folder: folder }
    }

    async fn create(&self, expires_in_ms: Option<u64>) -> CreatedKey {
        let scopes = KeyScopes { agents: KeyAgents::Only(vec!["echo".to_owned()]), role: CallerRole::Operator };
        self.service.create(NewKey { name: String::new(), scopes, expires_in_ms }).await.unwrap()
    }
}

#[tokio::test]
async fn the_first_key_ends_open_access_for_good() {
    let keys = Keys::new();
    let ring = &keys.ring;
    assert!(ring.is_open() && !KeyRing::new(false, Arc::clone(&keys.clock) as _, &[]).is_open());
    assert!(ring.authenticate("one").is_none());
    let (one, two) = (keys.create(None).await, keys.create(None).await);
    assert!(one.secret.starts_with("a2a_") && one.secret.len() == 4 + 43, "{}", one.secret);
    assert!(one.secret.starts_with(&one.key.prefix) && one.key.prefix.len() == 10 && one.secret != two.secret);
    assert!(one.first && !two.first && ring.keyed().is_cancelled(), "requests without a key must end");
    let identity = ring.authenticate(&one.secret).unwrap();
    assert_eq!(identity.caller.id.as_str(), one.key.id);
    let scopes = &identity.caller.scopes;
    assert!(scopes.role == CallerRole::Operator && scopes.agents.allows(&AgentName::from("echo")));
    assert!(!scopes.agents.allows(&AgentName::from("probe")));
    assert!(ring.authenticate("a2a_other").is_none() && ring.authenticate("").is_none());

    for key in [&one, &two] {
        keys.service.revoke(&key.key.id).await.unwrap();
    }
    assert!(identity.revoked.is_cancelled(), "open streams must end");
    assert!(ring.authenticate(&one.secret).is_none());
    assert!(!ring.is_open(), "revoking the last key must not open the server");
    let rows = keys.store.list_keys().await.unwrap();
    let restarted = KeyRing::new(true, Arc::clone(&keys.clock) as _, &rows);
    assert!(!restarted.is_open() && restarted.authenticate(&one.secret).is_none());
}

#[tokio::test]
async fn a_key_ends_when_its_time_is_over() {
    let keys = Keys::new();
    let (expiring, other) = (keys.create(Some(60_000)).await.secret, keys.create(None).await.secret);
    let identity = keys.ring.authenticate(&expiring).unwrap();
    while keys.clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    keys.clock.advance(Duration::from_millis(59_999));
    assert!(keys.ring.authenticate(&expiring).is_some() && !identity.revoked.is_cancelled());
    keys.clock.advance(Duration::from_millis(1));
    identity.revoked.cancelled().await;
    assert!(keys.ring.authenticate(&expiring).is_none() && keys.ring.authenticate(&other).is_some());
}

#[tokio::test]
async fn work_on_behalf_of_a_caller_finds_it_as_long_as_its_key_is_good() {
    let keys = Keys::new();
    let find = |id: &str| keys.ring.find(&CallerId::from(id));
    assert_eq!(find("local").unwrap().scopes.role, CallerRole::Admin, "the caller of an open server");
    let (kept, expiring) = (keys.create(None).await.key.id, keys.create(Some(60_000)).await.key.id);
    assert!(find("local").is_none(), "the server needs keys now");
    let found = find(&kept).unwrap();
    assert_eq!((found.id.as_str(), found.scopes.role), (kept.as_str(), CallerRole::Operator));
    assert_eq!(found.scopes.agents, AgentScope::Only(vec!["echo".into()]));
    assert!(find(&expiring).is_some() && find("key_0").is_none());
    keys.clock.advance(Duration::from_secs(60));
    assert!(find(&expiring).is_none() && find(&kept).is_some());
    keys.service.revoke(&kept).await.unwrap();
    assert!(find(&kept).is_none());
}

#[tokio::test]
async fn keys_from_before_there_were_roles_are_an_admins_or_have_none() {
    let keys = Keys::new();
    let created = keys.create(None).await;
    let mut row = keys.store.list_keys().await.unwrap().remove(0);
    assert_eq!(row.scopes, r#"{"agents":{"only":["echo"]},"role":"operator"}"#);
    for (stored, role) in [
        (r#"{"agents":"all","admin":true}"#, Some(CallerRole::Admin)),
        (r#"{"agents":"all","admin":false}"#, Some(CallerRole::None)),
        (r#"{"agents":"all","role":"viewer"}"#, Some(CallerRole::Viewer)),
        // Of a later version, perhaps: what it would allow is not to be guessed.
        (r#"{"agents":"all","role":"owner"}"#, None),
    ] {
        row.scopes = stored.to_owned();
        let ring = KeyRing::new(true, Arc::clone(&keys.clock) as _, &[row.clone()]);
        let identity = ring.authenticate(&created.secret);
        assert_eq!(identity.map(|identity| identity.caller.scopes.role), role, "{stored}");
    }
}

#[tokio::test]
async fn what_is_stored_of_a_key_is_a_sha256_digest_and_scopes_that_must_be_readable() {
    let keys = Keys::new();
    let created = keys.create(None).await;
    let mut row = keys.store.list_keys().await.unwrap().remove(0);
    // Of "abc", as other programs compute it.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let digits = (0..32).map(|byte| u8::from_str_radix(&abc[2 * byte..2 * byte + 2], 16).unwrap());
    row.digest = digits.collect::<Vec<u8>>().try_into().unwrap();
    let ring = KeyRing::new(true, Arc::clone(&keys.clock) as _, &[row.clone()]);
    assert!(ring.authenticate("abc").is_some() && ring.authenticate(&created.secret).is_none());
    row.scopes = "everything".to_owned();
    let ring = KeyRing::new(true, Arc::clone(&keys.clock) as _, &[row]);
    assert!(ring.authenticate("abc").is_none() && !ring.is_open());
}

//! Setting, reading and deleting webhooks, and who may.

use switchboard_a2a::{AuthenticationInfo, PushConfig, PushPayload, TaskId, Version};
use switchboard_engine::store::webhooks::WebhookKey;
use switchboard_engine::{Caller, Error, Switches};
use switchboard_webhooks::Options;
use tempfile::tempdir;

use crate::receiver::Receiver;
use crate::test_kernel::{TestKernel, address, caller, config, options, to};

fn named(receiver: &Receiver, id: &str) -> PushConfig {
    PushConfig { id: Some(id.to_owned()), ..to(receiver) }
}

#[tokio::test]
async fn ids_are_given_where_there_is_none() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.send("wait", None).await;
    let first = kernel.set(Version::V1, &task, &to(&receiver)).await.unwrap();
    let second = kernel.set(Version::V1, &task, &to(&receiver)).await.unwrap();
    assert_ne!(first.id, second.id);
    // Version 0.3 has one without a name, which is set again.
    let alone = kernel.set(Version::V03, &task, &to(&receiver)).await.unwrap();
    assert_eq!(alone.id.as_deref(), Some(task.as_str()));
    kernel.set(Version::V03, &task, &to(&receiver)).await.unwrap();
    let (all, next) = kernel.webhooks.list(&address(), &caller(), &task, WebhookKey(0), 50).await.unwrap();
    assert_eq!((all.len(), next), (3, None));
    let got = kernel.webhooks.get(&address(), &caller(), &task, None).await.unwrap();
    assert_eq!(got.id.as_deref(), Some(task.as_str()));
    // Some clients have a name for what has none.
    let got = kernel.webhooks.get(&address(), &caller(), &task, Some("default")).await.unwrap();
    assert_eq!(got.id.as_deref(), Some(task.as_str()));
    kernel.webhooks.delete(&address(), &caller(), &task, "default").await.unwrap();
    assert!(kernel.webhooks.get(&address(), &caller(), &task, Some("default")).await.is_err());
    let got = kernel.webhooks.get(&address(), &caller(), &task, None).await.unwrap();
    assert_eq!(got.id, first.id);
}

#[tokio::test]
async fn a_task_has_so_many_webhooks_and_no_more() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::with(folder.path(), Options { per_task: 5, ..options() }, Switches::default()).await;
    let receiver = Receiver::open().await;
    let task = kernel.send("wait", None).await;
    for id in 0..5 {
        kernel.set(Version::V1, &task, &named(&receiver, &id.to_string())).await.unwrap();
    }
    let refused = kernel.set(Version::V1, &task, &named(&receiver, "5")).await.unwrap_err();
    assert!(refused.to_string().contains("delete one first"), "{refused}");
    // Replacing one is no more.
    kernel.set(Version::V1, &task, &named(&receiver, "4")).await.unwrap();
    let (page, next) = kernel.webhooks.list(&address(), &caller(), &task, WebhookKey(0), 2).await.unwrap();
    assert_eq!(page.iter().map(|config| config.id.clone().unwrap()).collect::<Vec<_>>(), ["0", "1"]);
    let (page, next) = kernel.webhooks.list(&address(), &caller(), &task, next.unwrap(), 3).await.unwrap();
    assert_eq!((page.len(), next), (3, None));
    kernel.webhooks.delete(&address(), &caller(), &task, "0").await.unwrap();
    kernel.webhooks.delete(&address(), &caller(), &task, "0").await.unwrap();
    kernel.set(Version::V1, &task, &named(&receiver, "5")).await.unwrap();
}

#[tokio::test]
async fn others_cannot_tell_that_there_is_a_task() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.send("wait", Some((Version::V1, named(&receiver, "x")))).await;
    let mut other = Caller::local();
    other.id = "other".into();
    for task in [task, TaskId::from("nothing")] {
        let (address, webhooks) = (address(), &kernel.webhooks);
        let results = [
            webhooks.set(&address, &other, Version::V1, &task, &named(&receiver, "y")).await.map(drop),
            webhooks.get(&address, &other, &task, Some("x")).await.map(drop),
            webhooks.get(&address, &other, &task, None).await.map(drop),
            webhooks.list(&address, &other, &task, WebhookKey(0), 10).await.map(drop),
            webhooks.delete(&address, &other, &task, "x").await,
        ];
        for result in results {
            assert!(matches!(result, Err(Error::TaskNotFound(ref id)) if *id == task), "{result:?}");
        }
    }
    assert_eq!(kernel.service.list(None, None, 0, 10).await.unwrap().len(), 1);
}

fn with_secrets() -> PushConfig {
    let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("s3cr3t".to_owned()) };
    let (token, authentication) = (Some("opaque".to_owned()), Some(authentication));
    PushConfig { id: Some("p1".to_owned()), token, authentication, ..config("http://127.0.0.1:9/hook") }
}

#[tokio::test]
async fn secrets_are_shown_only_where_that_is_allowed() {
    for return_secrets in [true, false] {
        let folder = tempdir().unwrap();
        let kernel =
            TestKernel::with(folder.path(), Options { return_secrets, ..options() }, Switches::default()).await;
        let task = kernel.send("wait", None).await;
        let asked = PushConfig { payload: Some(PushPayload::Task), ..with_secrets() };
        let set = kernel.set(Version::V1, &task, &asked).await.unwrap();
        let got = kernel.webhooks.get(&address(), &caller(), &task, Some("p1")).await.unwrap();
        assert_eq!(set, got);
        if return_secrets {
            assert_eq!(got, PushConfig { task_id: Some(task.to_string()), ..asked });
        } else {
            let shown = serde_json::to_string(&got).unwrap();
            assert!(!shown.contains("opaque") && !shown.contains("s3cr3t"), "{shown}");
            assert!(shown.contains(r#""scheme":"Bearer""#), "{shown}");
        }
    }
}

#[tokio::test]
async fn what_could_break_a_header_is_refused() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let task = kernel.send("wait", None).await;
    let refused = async |change: &dyn Fn(&mut PushConfig)| {
        let mut config = with_secrets();
        change(&mut config);
        match kernel.set(Version::V1, &task, &config).await {
            Err(Error::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    for bad in ["a\r\nX: y", "a\nb", "a\0", "a\u{7f}", "é", &"x".repeat((4 << 10) + 1)] {
        assert_eq!(refused(&|config| config.token = Some(bad.to_owned())).await, "token");
        let set = |config: &mut PushConfig| {
            config.authentication.as_mut().unwrap().credentials = Some(bad.to_owned());
        };
        assert_eq!(refused(&set).await, "authentication.credentials");
    }
    for bad in ["Bea rer", "Bearer\r\n", "Bearer:", &"x".repeat(65)] {
        let set = |config: &mut PushConfig| config.authentication.as_mut().unwrap().scheme = bad.to_owned();
        assert_eq!(refused(&set).await, "authentication.scheme");
    }
    for bad in ["a b", "a\n", "ü", &"x".repeat(129)] {
        assert_eq!(refused(&|config| config.id = Some(bad.to_owned())).await, "id");
    }
}

#[tokio::test]
async fn an_address_inside_is_refused_with_the_setting_that_would_allow_it() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let task = kernel.send("wait", None).await;
    for url in ["http://10.0.0.1/hook", "http://[::1]/hook", "http://169.254.169.254/latest", "http://0x0a000001/"] {
        let refused = kernel.set(Version::V1, &task, &config(url)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid { field: "url", problem } if problem.contains("webhooks.allowedCidrs")),
            "{refused}"
        );
    }
    for url in ["ftp://example.com/", "http://", "example.com", "http://user@example.com/"] {
        let refused = kernel.set(Version::V1, &task, &config(url)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid { field: "url", problem } if !problem.contains("allowed")),
            "{refused}"
        );
    }
    assert!(kernel.service.list(None, None, 0, 10).await.unwrap().is_empty());
}

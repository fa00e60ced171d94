//! What arrives: bodies and headers, byte for byte, in each version and payload.

use switchboard_a2a::{AuthenticationInfo, PushConfig, PushPayload, Version};
use switchboard_engine::{Switches, WebhookEvents};
use switchboard_webhooks::sign;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{START, TestKernel, address, caller, options, to};

const STEPS: &str = "say on it; wait; chunk one; wait";

/// Runs a task of a few events with a webhook and gives what arrived as text, ids made readable.
async fn arrived(version: Version, payload: Option<PushPayload>, switches: Switches, count: usize) -> Vec<String> {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::with(folder.path(), options(), switches).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Hang]);
    let config = PushConfig { payload, ..to(&receiver) };
    let submitted = kernel.submit(STEPS, None, Some((version, config))).await;
    // What was made while the first delivery was under way is all there when the second is made.
    receiver.got(1).await;
    kernel.pass(2);
    submitted.answer().await;
    receiver.let_go();
    kernel.all_finished().await;
    let got = receiver.got(count).await;
    assert_eq!(got.len(), count, "{:?}", receiver.abouts());
    let task = kernel.engine.get(&address(), &caller(), submitted.id()).await.unwrap().into_task().unwrap();
    let mut replaced = vec![(task.id.to_string(), "T"), (task.context_id.to_string(), "C")];
    for message in task.history.iter().chain(&task.status.message) {
        replaced.push((message.message_id.to_string(), "M"));
    }
    for artifact in &task.artifacts {
        replaced.push((artifact.artifact_id.to_string(), "A"));
    }
    let bodies = got.iter().map(|delivery| {
        let mut text = String::from_utf8(delivery.body.to_vec()).unwrap();
        for (id, name) in &replaced {
            text = text.replace(id, name);
        }
        // The clock stands still; statuses are a millisecond apart.
        for at in 0..10 {
            text = text.replace(&switchboard_a2a::Timestamp(START + at).to_string(), "NOW");
        }
        text
    });
    bodies.collect()
}

#[tokio::test]
async fn version_1_gets_what_a_stream_carries() {
    let bodies = arrived(Version::V1, None, Switches::default(), 3).await;
    let working = r#"{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"M","contextId":"C","taskId":"T","role":"ROLE_AGENT","parts":[{"text":"on it"}]},"timestamp":"NOW"}}}"#;
    let chunk = r#"{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"A","name":"answer","parts":[{"text":"one"}]},"lastChunk":true}}"#;
    assert_eq!(bodies[0], working);
    assert_eq!(bodies[1], chunk);
    assert!(
        bodies[2]
            .starts_with(r#"{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED""#)
    );
}

#[tokio::test]
async fn version_03_gets_the_task_as_of_each_status() {
    let bodies = arrived(Version::V03, None, Switches::default(), 2).await;
    let working = r#"{"kind":"task","id":"T","contextId":"C","status":{"state":"working","message":{"kind":"message","messageId":"M","contextId":"C","taskId":"T","role":"agent","parts":[{"kind":"text","text":"on it"}]},"timestamp":"NOW"},"history":[{"kind":"message","messageId":"M","contextId":"C","taskId":"T","role":"user","parts":[{"kind":"text","text":"say on it; wait; chunk one; wait"}]}]}"#;
    assert_eq!(bodies[0], working);
    assert!(
        bodies[1].starts_with(r#"{"kind":"task","id":"T","contextId":"C","status":{"state":"completed""#),
        "{}",
        bodies[1]
    );
    assert!(
        bodies[1]
            .contains(r#""artifacts":[{"artifactId":"A","name":"answer","parts":[{"kind":"text","text":"one"}]}]"#),
        "{}",
        bodies[1]
    );
}

#[tokio::test]
async fn a_status_update_has_what_was_made_once_it_is_completed() {
    let bodies = arrived(Version::V03, Some(PushPayload::StatusUpdate), Switches::default(), 2).await;
    assert!(
        bodies[0].starts_with(r#"{"kind":"status-update","taskId":"T","contextId":"C","status":{"state":"working""#),
        "{}",
        bodies[0]
    );
    assert!(bodies[0].ends_with(r#","final":false}"#), "{}", bodies[0]);
    let end = r#","final":true,"artifact":{"artifactId":"A","name":"answer","parts":[{"kind":"text","text":"one"}],"append":false,"lastChunk":true}}"#;
    assert!(bodies[1].ends_with(end), "{}", bodies[1]);
    let bodies = arrived(Version::V1, Some(PushPayload::StatusUpdate), Switches::default(), 2).await;
    let end =
        r#","artifact":{"artifactId":"A","name":"answer","parts":[{"text":"one"}],"append":false,"lastChunk":true}}}"#;
    assert!(bodies[1].starts_with(r#"{"statusUpdate":{"taskId":"T","#) && bodies[1].ends_with(end), "{}", bodies[1]);
}

#[tokio::test]
async fn payload_and_events_can_be_chosen_by_the_agents_switches() {
    let switches = Switches { webhook_payload: Some(PushPayload::StreamResponse), ..Switches::default() };
    let bodies = arrived(Version::V03, None, switches, 3).await;
    assert!(bodies[1].starts_with(r#"{"kind":"artifact-update","taskId":"T""#), "{}", bodies[1]);
    let switches = Switches { webhook_events: WebhookEvents::Status, ..Switches::default() };
    assert_eq!(arrived(Version::V1, None, switches, 2).await.len(), 2);
    let switches = Switches { webhook_payload: Some(PushPayload::StreamResponse), ..Switches::default() };
    // The webhook's own wish comes before its agent's.
    let bodies = arrived(Version::V1, Some(PushPayload::Task), switches, 2).await;
    assert!(bodies[0].starts_with(r#"{"task":{"id":"T","#), "{}", bodies[0]);
}

#[tokio::test]
async fn only_stops_are_told_where_that_is_enough() {
    let folder = tempdir().unwrap();
    let switches = Switches { webhook_events: WebhookEvents::Stops, ..Switches::default() };
    let kernel = TestKernel::with(folder.path(), options(), switches).await;
    let receiver = Receiver::open().await;
    let task = kernel.finish("say a; chunk b; ask c; say d", Some((Version::V1, to(&receiver)))).await;
    receiver.got(1).await;
    kernel.submit("yes", Some(&task), None).await.answer().await;
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["input_required", "completed"]);
}

#[tokio::test]
async fn headers_say_who_sends_what() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let versions = [(Version::V1, "application/a2a+json"), (Version::V03, "application/json")];
    for (number, (version, media_type)) in (1..).zip(versions) {
        let receiver = Receiver::open().await;
        let authentication = AuthenticationInfo { scheme: "Basic".to_owned(), credentials: Some("eDp5".to_owned()) };
        let config = PushConfig {
            id: Some("mine".to_owned()),
            token: Some("opaque".to_owned()),
            authentication: Some(authentication),
            ..to(&receiver)
        };
        let task = kernel.finish("say hello", Some((version, config))).await;
        kernel.all_finished().await;
        let got = receiver.got(2).await;
        for delivery in &got {
            assert_eq!(delivery.header("content-type"), Some(media_type));
            assert_eq!(delivery.header("a2a-version"), Some(version.as_str()));
            assert_eq!(delivery.header("x-a2a-notification-token"), Some("opaque"));
            assert_eq!(delivery.header("authorization"), Some("Basic eDp5"));
            assert!(delivery.header("user-agent").unwrap().starts_with("switchboard/"));
            assert_eq!(delivery.header("webhook-timestamp"), Some("1800000000"));
            assert!(delivery.id().starts_with(&format!("{task}:mine:{number}-{START:x}:1.")), "{}", delivery.id());
        }
        assert_ne!(got[0].id(), got[1].id());
    }
}

#[tokio::test]
async fn a_token_alone_is_sent_in_both_headers_and_nothing_in_none() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let config = PushConfig { token: Some("t0k3n".to_owned()), ..to(&receiver) };
    kernel.finish("say hello", Some((Version::V1, config))).await;
    let got = receiver.got(1).await;
    assert_eq!(got[0].header("x-a2a-notification-token"), Some("t0k3n"));
    assert_eq!(got[0].header("authorization"), Some("Bearer t0k3n"));
    let receiver = Receiver::open().await;
    kernel.finish("say hello", Some((Version::V1, to(&receiver)))).await;
    let got = receiver.got(1).await;
    assert_eq!(got[0].header("x-a2a-notification-token"), None);
    assert_eq!(got[0].header("authorization"), None);
}

#[tokio::test]
async fn signatures_can_be_checked_and_secrets_rotated() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let signed = async |count: usize| {
        kernel.finish("say hello", Some((Version::V1, to(&receiver)))).await;
        kernel.all_finished().await;
        let delivery = receiver.got(count).await[count - 1].clone();
        let secrets = kernel.service.secret(&caller().id).await.unwrap().secrets;
        let signatures: Vec<String> =
            delivery.header("webhook-signature").unwrap().split(' ').map(str::to_owned).collect();
        assert_eq!(signatures.len(), secrets.len());
        for (secret, signature) in secrets.iter().zip(&signatures) {
            assert_eq!(*signature, expected(secret, &delivery), "{signatures:?}");
        }
        secrets
    };
    let first = signed(2).await;
    assert_eq!(first.len(), 1);
    kernel.service.rotate_secrets(std::time::Duration::from_secs(3_600)).await.unwrap();
    let both = signed(4).await;
    assert_eq!(both[1], first[0]);
    assert_ne!(both[0], first[0]);
    kernel.advance(3_600);
    assert_eq!(signed(6).await, both[..1]);
    // Two rotations in a row leave three secrets, as long as each was promised.
    kernel.service.rotate_secrets(std::time::Duration::from_secs(3_600)).await.unwrap();
    kernel.service.rotate_secrets(std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(signed(8).await.len(), 3);
    kernel.advance(60);
    assert_eq!(signed(10).await.len(), 2);
    kernel.service.rotate_secrets(std::time::Duration::ZERO).await.unwrap();
    assert_eq!(signed(12).await.len(), 1);
}

/// What a library for Standard Webhooks computes from the secret in its text form.
fn expected(secret: &str, delivery: &crate::receiver::Delivery) -> String {
    let secret = switchboard_webhooks::Secret::parse(secret).unwrap();
    let timestamp = delivery.header("webhook-timestamp").unwrap().parse().unwrap();
    sign(&[secret], delivery.id(), timestamp, &delivery.body)
}

#[test]
fn a_known_signature() {
    // From the published test vectors of Standard Webhooks libraries.
    let secret = switchboard_webhooks::Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let signature = sign(&[secret.unwrap()], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[tokio::test]
async fn a_question_says_in_version_03_that_a_stream_would_end_here() {
    for payload in [PushPayload::StreamResponse, PushPayload::StatusUpdate] {
        let folder = tempdir().unwrap();
        let kernel = TestKernel::open(folder.path()).await;
        let receiver = Receiver::open().await;
        let config = PushConfig { payload: Some(payload), ..to(&receiver) };
        kernel.finish("ask which", Some((Version::V03, config))).await;
        let got = receiver.got(1).await;
        assert_eq!((got[0].about().as_str(), &got[0].json()["final"]), ("input_required", &true.into()), "{payload:?}");
    }
}

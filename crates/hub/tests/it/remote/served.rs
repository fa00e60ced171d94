//! A remote agent is called like any other: streamed, asked, answered, canceled, in both versions.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use switchboard_a2a::{
    ContextId, Message, Role, SendConfiguration, SendRequest, SendResponse, StreamResponse, Task, TaskId, TaskState,
    Version,
};
use switchboard_client::{CallContext, Client, Update, response_text};
use switchboard_engine::Replies;
use switchboard_hub::remote::{REMOTE_KEY, RepliesAs};

use super::crashes::ended;
use super::script::{Reply, Scripted, task};
use super::world::{Worker, caller, hub, say, worker};

fn remote_of(task: &Task) -> Value {
    task.metadata.as_ref().unwrap().get(REMOTE_KEY).unwrap().read().unwrap()
}

async fn finished(client: &Client, request: SendRequest) -> Task {
    let stream = client.stream(&CallContext::default(), request).await.unwrap();
    let finished = tokio::time::timeout(crate::HANG_GUARD, stream.finish()).await.expect("it ends");
    match finished.unwrap() {
        SendResponse::Task(task) => task,
        SendResponse::Message(message) => panic!("{message:?}"),
    }
}

fn follow_up(context: &ContextId, task: Option<&TaskId>, text: &str) -> SendRequest {
    let mut request = say(text);
    request.message.context_id = Some(context.clone());
    request.message.task_id = task.cloned();
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_remote_agent_does_is_told_here_once_and_as_it_is() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let agent = Worker::new();
    let remote = tokio::task::block_in_place(|| worker(there.path(), &agent));
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url("worker"), |_| {}));
    for version in [Version::V1, Version::V03] {
        let client = caller(&front, version);
        agent.gate.add_permits(1);
        let task = finished(&client, say("go")).await;
        assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
        let texts: Vec<String> = task
            .artifacts
            .iter()
            .map(|artifact| artifact.parts.iter().filter_map(|part| part.as_text()).collect())
            .collect();
        assert_eq!(texts, ["one two"], "each chunk once");
        let remote = remote_of(&task);
        assert_eq!((&remote["agent"], &remote["state"]), (&"front".into(), &"TASK_STATE_COMPLETED".into()));
        assert_ne!(remote["taskId"], task.id.as_str(), "ids are ours");
        // A question is a question here, and the answer goes to the same remote task.
        let asked = finished(&client, say("ask")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        assert_eq!(asked.status.message.as_ref().unwrap().joined_text(), "which city?");
        let answered = finished(&client, follow_up(&asked.context_id, Some(&asked.id), "Oslo")).await;
        assert_eq!((answered.status.state, &answered.id), (TaskState::Completed, &asked.id));
        assert_eq!(response_text(&SendResponse::Task(answered.clone())), "city: Oslo");
        assert_eq!(remote_of(&answered)["taskId"], remote_of(&asked)["taskId"]);
        // A conversation here is one there.
        let [first, second] = [
            finished(&client, follow_up(&asked.context_id, None, "where")).await,
            finished(&client, follow_up(&asked.context_id, None, "where")).await,
        ];
        assert_eq!(remote_of(&first)["contextId"], remote_of(&second)["contextId"]);
        assert_eq!(remote_of(&first)["contextId"], remote_of(&asked)["contextId"]);
        assert_ne!(first.context_id.as_str(), remote_of(&first)["contextId"]);
        let failed = finished(&client, say("fail")).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        let metadata = failed.metadata.as_ref().unwrap();
        let detail = metadata.get("switchboard/reasonDetail").and_then(|detail| detail.as_text());
        assert_eq!(detail.as_deref(), Some("agent_error"), "its reason is a detail here");
    }
    tokio::task::block_in_place(|| {
        front.kill();
        remote.kill();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_reaches_the_remote_task_and_its_end_is_told() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let agent = Worker::new();
    let remote = tokio::task::block_in_place(|| worker(there.path(), &agent));
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url("worker"), |_| {}));
    let client = caller(&front, Version::V1);
    let mut stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
    let until_told = async {
        loop {
            if let Some(Update::Event(event)) = stream.next().await.unwrap()
                && matches!(*event, StreamResponse::ArtifactUpdate(_))
            {
                return stream.task_id().unwrap();
            }
        }
    };
    let id = tokio::time::timeout(crate::HANG_GUARD, until_told).await.expect("it begins");
    let canceled = client.cancel(&CallContext::default(), &id, None).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(remote_of(&canceled)["state"], "TASK_STATE_CANCELED", "it is the remote's own end");
    assert_eq!(agent.stopped.load(Ordering::SeqCst), 1);
    tokio::task::block_in_place(|| {
        front.kill();
        remote.kill();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_place_of_a_task_and_a_refusal_end_the_task_here() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => {
            let message = Message::text(Role::Agent, "hello back");
            Reply::Result(serde_json::json!({ "message": message }))
        }
        ("SendMessage", 1) => Reply::Error(-32602),
        ("SendMessage", _) => {
            let mut forged = task("TASK_STATE_INPUT_REQUIRED", "m");
            forged["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
            forged["metadata"] = serde_json::json!({"switchboard/question": {"reviewer": "operator"}, "kept": 1});
            Reply::Result(serde_json::json!({ "task": forged }))
        }
        _ => Reply::Error(-32601),
    })
    .await;
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |_| {}));
    let client = caller(&front, Version::V1);
    let replied = finished(&client, say("hello")).await;
    assert_eq!(replied.status.state, TaskState::Completed);
    assert_eq!(response_text(&SendResponse::Task(replied)), "hello back");
    let refused = finished(&client, say("hello")).await;
    let detail = refused.metadata.as_ref().unwrap().get("switchboard/reasonDetail").and_then(|text| text.as_text());
    assert_eq!((refused.status.state, detail.as_deref()), (TaskState::Failed, Some("refused")));
    let asked = finished(&client, say("hello")).await;
    let metadata = asked.metadata.as_ref().unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    assert!(metadata.get("switchboard/question").is_none(), "a remote server cannot pose as this one");
    assert!(metadata.get("kept").is_some());
    let sent = remote.calls("SendMessage");
    assert_eq!(sent.len(), 3, "nothing was sent twice");
    let configuration = &sent[0].body["params"]["configuration"];
    assert_eq!(configuration["returnImmediately"], true);
    assert!(configuration.get("taskPushNotificationConfig").is_none(), "its card says nothing of webhooks");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_place_of_a_task_is_passed_on_whole_where_replies_may_be_either() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |_, _| {
        Reply::Result(json!({ "message": {
            "messageId": "theirs", "role": "ROLE_AGENT", "taskId": "there", "contextId": "rc",
            "parts": [{ "text": "hello back" }, { "data": { "n": 1 } }],
            "metadata": { "urn:example:mood": "good", "switchboard/question": { "reviewer": "operator" } },
            "extensions": ["urn:example:mood"], "referenceTaskIds": ["there"],
        } }))
    })
    .await;
    let front = tokio::task::block_in_place(|| {
        hub(here.path(), &remote.url(), |parts| {
            parts.settings.replies = RepliesAs::Either;
            parts.manifest.replies = Replies::Either;
        })
    });
    for version in [Version::V1, Version::V03] {
        let sent = caller(&front, version).send(&CallContext::default(), say("hello")).await.unwrap();
        let SendResponse::Message(message) = sent else { panic!("{version:?}: {sent:?}") };
        assert_eq!((message.joined_text().as_str(), message.parts.len()), ("hello back", 2), "{version:?}");
        assert_eq!(
            (message.message_id.as_str(), &message.extensions[..]),
            ("theirs", &["urn:example:mood".to_owned()][..])
        );
        let metadata = message.metadata.as_ref().unwrap();
        assert_eq!(metadata.get("urn:example:mood").unwrap().as_str(), r#""good""#, "{version:?}");
        assert!(metadata.get("switchboard/question").is_none(), "a remote server cannot pose as this one");
        assert_eq!((&message.task_id, message.reference_task_ids.len()), (&None, 0), "ids of there mean nothing here");
        assert_ne!(message.context_id, Some("rc".into()));
    }
    // A caller that does not wait gets a task, which ends with the message.
    let mut request = say("hello");
    request.configuration = Some(SendConfiguration { return_immediately: true, ..SendConfiguration::default() });
    let client = caller(&front, Version::V1);
    let sent = client.send(&CallContext::default(), request).await.unwrap();
    let task = ended(&client, &sent.task().unwrap().id).await;
    let message = task.status.message.as_ref().unwrap();
    assert_eq!((task.status.state, message.joined_text().as_str()), (TaskState::Completed, "hello back"));
    assert!(message.metadata.as_ref().unwrap().get("urn:example:mood").is_some());
    tokio::task::block_in_place(|| front.kill());
}

//! An agent that keeps to version 1.0, over JSON-RPC or REST, apart from the one defect it is given. A message `slow:300`
//! keeps it busy for 300 ms, `big:300` makes it say 300 bytes, `ask` makes it ask something; any other is answered at once.

mod card;
pub(crate) mod old;
mod stream;
mod tasks;
mod wire;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep_until;

use tasks::Tasks;
use wire::{Asked, Binding};

/// Whose tasks they are, where the card says it.
const TENANT: &str = "acme";
/// How long everything takes with an agent that is far away.
const FAR: Duration = Duration::from_millis(1_100);

/// What an agent insists on, where it insists on anything.
const EXTENSION: &str = "urn:example:ext:v1";

/// What is wrong with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    Nothing,
    // Flavours without a fault.
    Rest,
    WithoutWebhooks,
    WithExtension,
    WithExtendedCard,
    Both,
    WithTenant,
    WithKeys,
    KeyOptional,
    Public,
    AnswersWithMessage,
    Limited,
    Overloaded,
    Far,
    Purges,
    ClosesAtQuestions,
    TellsLate,
    CancelsTwice,
    ForgetsCanceled,
    WebhooksOfOpenTasks,
    WebhooksElsewhere,
    ListByTaskNumber,
    // The card.
    CardWithEmptyLists,
    CardWithManySkills,
    CardOfAnotherHost,
    CardWithoutSkills,
    CardWithoutCaching,
    CardWithTwoSkillsOfOneName,
    CardSchemeWithoutFlow,
    CardSchemeUnencrypted,
    CardSignatureWithoutKey,
    CardOfAnotherAgent,
    CardInterfaceNotThere,
    ExtendedCardNotThere,
    ExtendedCardForAnybody,
    ExtendedCardUndeclared,
    // Operations.
    AnswersAsText,
    AnswersNever,
    AnswersWithBadMessage,
    AnswersWithOtherId,
    TaskLeftAtWork,
    AnswerLost,
    ReturnsLate,
    OldSpellings,
    HistoryAlways,
    HistoryTooLong,
    HistoryNegative,
    CanceledTaskGoesOn,
    CanceledStreamGoesOn,
    // Errors.
    ErrorWithoutCode,
    ErrorWithoutInfo,
    ErrorWithPlainData,
    ErrorsAsText,
    ErrorsWithRpcStatus,
    ErrorsWithRestStatus,
    HtmlForJson,
    EndedTaskIsCanceled,
    RestErrorWithoutInfo,
    TasksOfAnyId,
    // Lists.
    ListByPlace,
    ListSecondPageTooLong,
    ListTotalWrong,
    ListOldestFirst,
    ListWithArtifacts,
    ListByNumber,
    ListWithoutToken,
    ListOfAllStates,
    ListOfAllTimes,
    ListWithHistory,
    ListTakesAnyToken,
    // Streams.
    StreamEndless,
    StreamHuge,
    StreamNeverCloses,
    StreamOfAnError,
    StreamOfTwoContexts,
    StreamWithMessage,
    StreamWithOtherId,
    StreamWithoutEnvelope,
    StreamWithoutTask,
    StreamOfTwoKinds,
    StreamGoesOnAfterTheEnd,
    StreamBreaksOffWithAnError,
    StreamLosesAChunk,
    StreamIsBuffered,
    StreamIsSilent,
    LeavingCancels,
    SubscribeLosesTheTask,
    SubscribeToEnded,
    SubscriptionStops,
    SubscribersHearOtherThings,
    IdsOfTheStream,
    // Versions and extensions.
    OldCallersRefused,
    VersionIgnored,
    VersionByMajor,
    VersionWithoutMinor,
    ExtensionNotRequired,
    ExtensionNeverTaken,
    ExtensionNotEchoed,
    // Webhooks.
    WebhooksUndeclared,
    WebhooksOfNoTask,
    WebhookOfNoName,
    WebhookGoneIsAnError,
    WebhookDeletedWithoutResult,
    WebhooksAreWaitedFor,
    WebhooksNeverCalled,
    WebhooksToldNonsense,
    // Callers.
    KeyDemandedAndNotChecked,
    AnyKey,
    Reflects,
    /// The method that asks for no key.
    OpenDoor(&'static str),
    /// The method that does not ask whose task it is.
    Shared(&'static str),
}

impl Defect {
    /// Whether the card demands a key.
    fn has_keys(self) -> bool {
        matches!(self, Self::WithKeys | Self::AnyKey | Self::Shared(_) | Self::OpenDoor(_))
    }
}

/// An agent and its tasks.
pub(crate) struct Agent {
    defect: Defect,
    tasks: Mutex<Tasks>,
    /// Told of every change of a task.
    changed: watch::Sender<()>,
    requests: AtomicUsize,
    messages: AtomicUsize,
}

/// Starts an agent; its address.
pub(crate) async fn start(defect: Defect) -> String {
    start_watched(defect).await.0
}

/// The same with the agent itself, to be looked at.
pub(crate) async fn start_watched(defect: Defect) -> (String, Arc<Agent>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, changed) = (Mutex::new(Tasks::new(defect)), watch::channel(()).0);
    let (requests, messages) = Default::default();
    let watched = Arc::new(Agent { defect, tasks, changed, requests, messages });
    let agent = Arc::clone(&watched);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let agent = Arc::clone(&agent);
            // A client that has gone is no fault of the agent.
            tokio::spawn(async move { agent.serve(socket).await });
        }
    });
    (format!("http://{address}"), watched)
}

impl Agent {
    /// How many messages it got.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// How many of its tasks have not ended.
    pub(crate) fn open_tasks(&self) -> usize {
        self.tasks.lock().unwrap().open()
    }

    async fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        let Some(asked) = Asked::read(&mut socket).await? else { return Ok(()) };
        if asked.path.ends_with("/.well-known/agent-card.json") {
            return finish(socket, &card::answer(self.defect, &asked)).await;
        }
        if asked.binding == Binding::None {
            return finish(socket, &wire::http(404, "content-type: text/plain", "nothing here")).await;
        }
        if let Some(answer) = self.refused_at_the_door(&asked) {
            return finish(socket, &answer).await;
        }
        if self.defect == Defect::HtmlForJson {
            return finish(socket, &wire::http(200, "content-type: text/html", "<html>Welcome</html>")).await;
        }
        if let Err(code) = self.understood(&asked) {
            return finish(socket, &asked.error(self.defect, code)).await;
        }
        if matches!(asked.method.as_str(), "SendMessage" | "SendStreamingMessage") {
            self.messages.fetch_add(1, Ordering::Relaxed);
        }
        if self.defect == Defect::Far && matches!(asked.method.as_str(), "SendMessage" | "GetTask") {
            tokio::time::sleep(FAR).await;
        }
        match asked.method.as_str() {
            "SendMessage" => self.send(socket, &asked).await,
            "SendStreamingMessage" => self.stream(socket, &asked).await,
            "SubscribeToTask" => self.subscribe(socket, &asked).await,
            "GetExtendedAgentCard" => finish(socket, &card::extended(self.defect, &asked)).await,
            _ => {
                let answer = self.tasks.lock().unwrap().plain(&asked);
                let _ = self.changed.send(());
                finish(socket, &asked.answer(self.defect, answer)).await
            }
        }
    }

    /// The refusal of a caller that is not known, or comes at a bad time.
    fn refused_at_the_door(&self, asked: &Asked) -> Option<String> {
        let count = self.requests.fetch_add(1, Ordering::Relaxed);
        let key = asked.owner();
        let is_known = match self.defect {
            Defect::OpenDoor(method) if asked.method == method => true,
            Defect::AnyKey => !key.is_empty(),
            defect => !defect.has_keys() || matches!(key.as_str(), "Bearer key-of-one" | "Bearer key-of-two"),
        };
        match self.defect {
            Defect::Limited if count % 5 == 4 => Some(wire::http(429, "retry-after: 0", "later")),
            Defect::Overloaded => Some(wire::http(503, "content-type: text/plain", "later")),
            _ if !is_known => Some(wire::http(401, "www-authenticate: Bearer", "")),
            _ => None,
        }
    }

    /// Whether the request is one, in a version and with the extensions that are spoken here.
    fn understood(&self, asked: &Asked) -> Result<(), i32> {
        asked.problem.map_or(Ok(()), Err)?;
        match asked.header("a2a-version") {
            Some(version) if version.starts_with("1.0") || self.defect == Defect::VersionIgnored => {}
            Some(version) if version.starts_with("1.") && self.defect == Defect::VersionByMajor => {}
            Some("1") if self.defect == Defect::VersionWithoutMinor => {}
            None if asked.method == "tasks/get" && self.defect != Defect::OldCallersRefused => return Err(-32001),
            _ => return Err(-32009),
        }
        if self.defect == Defect::WithTenant && asked.params["tenant"] != TENANT {
            return Err(-32602);
        }
        let is_declared = asked.header("a2a-extensions").is_some_and(|declared| declared.contains(EXTENSION));
        let is_taken = match self.defect {
            Defect::WithExtension | Defect::ExtensionNotEchoed => is_declared,
            Defect::ExtensionNeverTaken => false,
            _ => true,
        };
        if is_taken { Ok(()) } else { Err(-32008) }
    }

    async fn send(&self, mut socket: TcpStream, asked: &Asked) -> std::io::Result<()> {
        let begun = self.tasks.lock().unwrap().begin(asked);
        let place = match begun {
            Ok(place) => place,
            Err(code) => return finish(socket, &asked.error(self.defect, code)).await,
        };
        let webhook = asked.params["configuration"]["taskPushNotificationConfig"]["url"].as_str();
        if self.defect == Defect::WebhooksElsewhere && webhook.is_some() {
            return finish(socket, &asked.error(self.defect, -32004)).await;
        }
        if self.defect == Defect::AnswersNever {
            return socket.read_to_end(&mut Vec::new()).await.map(drop);
        }
        let waits = asked.params["configuration"]["returnImmediately"] != true || self.defect == Defect::ReturnsLate;
        let ends = self.tasks.lock().unwrap().ends(place);
        if let (true, Some(ends)) = (waits, ends) {
            sleep_until(ends).await;
        }
        let task = self.tasks.lock().unwrap().task(place);
        if let Some(webhook) = webhook.filter(|_| self.defect != Defect::WebhooksNeverCalled) {
            let is_nonsense = self.defect == Defect::WebhooksToldNonsense;
            let body = if is_nonsense { json!({"hello": "there"}) } else { json!({"task": task}) };
            let call = notify(webhook.to_owned(), body);
            match self.defect {
                // As long as it takes, but not for ever.
                Defect::WebhooksAreWaitedFor => drop(tokio::time::timeout(Duration::from_secs(6), call).await),
                _ => drop(tokio::spawn(call)),
            }
        }
        let answer = match self.defect {
            Defect::TaskLeftAtWork | Defect::AnswerLost => asked.error(self.defect, -32603),
            Defect::AnswersWithMessage | Defect::AnswersWithBadMessage => asked.answer(self.defect, Ok(self.message())),
            _ => asked.answer(self.defect, Ok(json!({"task": task}))),
        };
        finish(socket, &answer).await
    }
}

impl Agent {
    /// What an agent says that makes no task of it.
    fn message(&self) -> Value {
        match self.defect {
            Defect::AnswersWithBadMessage => json!({"message": {"parts": []}}),
            _ => json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}),
        }
    }
}

async fn notify(url: String, body: Value) -> std::io::Result<()> {
    let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let body = body.to_string();
    let length = body.len();
    let mut socket = TcpStream::connect(address).await?;
    let head = format!("POST /a2a-check HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    socket.read_to_end(&mut Vec::new()).await.map(drop)
}

async fn finish(mut socket: TcpStream, answer: &str) -> std::io::Result<()> {
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await
}

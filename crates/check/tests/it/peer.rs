//! An agent that keeps to version 1.0, over JSON-RPC or REST, apart from the one defect it is given. A message `slow:300`
//! keeps it busy for 300 ms; any other is answered at once.

mod card;
mod stream;
mod tasks;
mod wire;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep_until;

use tasks::Tasks;
use wire::{Asked, Binding};

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
    // The card.
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
    // Lists.
    ListOldestFirst,
    ListWithArtifacts,
    ListByNumber,
    ListWithoutToken,
    ListOfAllStates,
    ListOfAllTimes,
    ListWithHistory,
    ListTakesAnyToken,
    // Streams.
    StreamNeverCloses,
    StreamWithoutTask,
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
    ExtensionNotRequired,
    ExtensionNeverTaken,
    ExtensionNotEchoed,
    // Webhooks.
    WebhooksUndeclared,
    WebhooksOfNoTask,
    WebhookOfNoName,
    WebhookGoneIsAnError,
    WebhooksAreWaitedFor,
    WebhooksNeverCalled,
    // Callers.
    KeyDemandedAndNotChecked,
    /// The method that does not ask whose task it is.
    Shared(&'static str),
}

/// An agent and its tasks.
struct Agent {
    defect: Defect,
    tasks: Mutex<Tasks>,
    /// Told of every change of a task.
    changed: watch::Sender<()>,
}

/// Starts an agent; its address.
pub(crate) async fn start(defect: Defect) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let agent = Arc::new(Agent { defect, tasks: Mutex::new(Tasks::new(defect)), changed: watch::channel(()).0 });
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let agent = Arc::clone(&agent);
            // A client that has gone is no fault of the agent.
            tokio::spawn(async move { agent.serve(socket).await });
        }
    });
    format!("http://{address}")
}

impl Agent {
    async fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        let Some(asked) = Asked::read(&mut socket).await? else { return Ok(()) };
        if asked.path.ends_with("/.well-known/agent-card.json") {
            return finish(socket, &card::answer(self.defect, &asked)).await;
        }
        if asked.binding == Binding::None {
            return finish(socket, &wire::http(404, "content-type: text/plain", "nothing here")).await;
        }
        if self.defect == Defect::HtmlForJson {
            return finish(socket, &wire::http(200, "content-type: text/html", "<html>Welcome</html>")).await;
        }
        if let Err(code) = self.understood(&asked) {
            return finish(socket, &asked.error(self.defect, code)).await;
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

    /// Whether the request is one, in a version and with the extensions that are spoken here.
    fn understood(&self, asked: &Asked) -> Result<(), i32> {
        asked.problem.map_or(Ok(()), Err)?;
        match asked.header("a2a-version") {
            Some(version) if version.starts_with("1.0") || self.defect == Defect::VersionIgnored => {}
            None if asked.method == "tasks/get" && self.defect != Defect::OldCallersRefused => return Err(-32001),
            _ => return Err(-32009),
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
        if self.defect == Defect::AnswersNever {
            return socket.read_to_end(&mut Vec::new()).await.map(drop);
        }
        let webhook = asked.params["configuration"]["taskPushNotificationConfig"]["url"].as_str();
        let waits = asked.params["configuration"]["returnImmediately"] != true || self.defect == Defect::ReturnsLate;
        let ends = self.tasks.lock().unwrap().ends(place);
        if let (true, Some(ends)) = (waits, ends) {
            sleep_until(ends).await;
        }
        let task = self.tasks.lock().unwrap().task(place);
        if let Some(webhook) = webhook.filter(|_| self.defect != Defect::WebhooksNeverCalled) {
            let call = notify(webhook.to_owned(), json!({"task": task}));
            match self.defect {
                // As long as it takes, but not for ever.
                Defect::WebhooksAreWaitedFor => drop(tokio::time::timeout(Duration::from_secs(3), call).await),
                _ => drop(tokio::spawn(call)),
            }
        }
        let answer = match self.defect {
            Defect::TaskLeftAtWork | Defect::AnswerLost => asked.error(self.defect, -32603),
            _ => asked.answer(self.defect, Ok(json!({"task": task}))),
        };
        finish(socket, &answer).await
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

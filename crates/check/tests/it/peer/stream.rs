//! The streams of the scripted agent.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::tasks::has_ended;
use super::wire::Asked;
use super::{Agent, Defect, finish};

/// How often a stream shows that it is alive.
const PING: Duration = Duration::from_millis(50);

/// How long a subscriber waits for news of an agent that looks for some now and then.
const LATE: Duration = Duration::from_millis(900);

/// A stream under way.
struct Stream<'a> {
    asked: &'a Asked,
    socket: TcpStream,
    defect: Defect,
    has_ids: bool,
    count: usize,
}

impl Stream<'_> {
    async fn frame(&mut self, frame: &Value) -> std::io::Result<()> {
        self.count += 1;
        let id = if self.has_ids { format!("id: {}\n", self.count) } else { String::new() };
        let mut frame = match self.defect {
            Defect::StreamWithoutEnvelope => frame.clone(),
            _ => self.asked.enveloped(frame),
        };
        if self.defect == Defect::StreamWithOtherId {
            frame["id"] = json!(77);
        }
        if self.defect == Defect::StreamOfTwoKinds && frame["result"]["task"].is_object() {
            let task = &frame["result"]["task"];
            let second = json!({"taskId": task["id"], "contextId": task["contextId"], "status": task["status"]});
            frame["result"]["statusUpdate"] = second;
        }
        let text = format!("{id}data: {frame}\n\n");
        self.socket.write_all(text.as_bytes()).await
    }
}

impl Agent {
    async fn open<'a>(&self, mut socket: TcpStream, asked: &'a Asked) -> std::io::Result<Stream<'a>> {
        let control = match self.defect {
            Defect::StreamIsBuffered => "",
            _ => "cache-control: no-cache\r\nx-accel-buffering: no\r\n",
        };
        let head = format!("HTTP/1.1 200 So\r\nconnection: close\r\n{control}content-type: text/event-stream\r\n\r\n");
        socket.write_all(head.as_bytes()).await?;
        let (defect, has_ids) = (self.defect, self.defect == Defect::IdsOfTheStream);
        Ok(Stream { asked, socket, defect, has_ids, count: 0 })
    }

    pub(super) async fn stream(&self, socket: TcpStream, asked: &Asked) -> std::io::Result<()> {
        let begun = self.tasks.lock().unwrap().begin(asked);
        let place = match begun {
            Ok(place) => place,
            Err(code) => return finish(socket, &asked.error(self.defect, code)).await,
        };
        if self.defect == Defect::TaskLeftAtWork {
            return finish(socket, &asked.error(self.defect, -32603)).await;
        }
        let ends = self.tasks.lock().unwrap().ends(place);
        let mut stream = self.open(socket, asked).await?;
        match self.defect {
            Defect::AnswersWithMessage | Defect::AnswersWithBadMessage => {
                stream.frame(&self.message()).await?;
                return stream.socket.shutdown().await;
            }
            Defect::StreamOfAnError => {
                let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "No."}});
                stream.socket.write_all(format!("data: {error}\n\n").as_bytes()).await?;
                return stream.socket.shutdown().await;
            }
            Defect::Reflects => stream.frame(&json!({asked.secrets(): {"a": 1}})).await?,
            _ => {}
        }
        let mut task = match ends {
            Some(ends) if ends <= Instant::now() => json!({}),
            _ => self.tasks.lock().unwrap().task(place),
        };
        if task["id"].is_null() {
            // Done already, and shown as it began.
            task = self.tasks.lock().unwrap().task(place);
            task["status"] = json!({"state": "TASK_STATE_WORKING"});
            drop(task.as_object_mut().unwrap().remove("artifacts"));
        }
        if self.defect != Defect::StreamWithoutTask {
            stream.frame(&json!({"task": task})).await?;
        }
        if matches!(self.defect, Defect::StreamEndless | Defect::StreamHuge) {
            return self.go_on(&mut stream, &task).await;
        }
        if self.closes_at(&task) {
            return stream.socket.shutdown().await;
        }
        if !self.wait(&mut stream, place).await? {
            return Ok(());
        }
        self.end(&mut stream, place, false).await?;
        if self.defect == Defect::StreamNeverCloses {
            return stream.socket.read_to_end(&mut Vec::new()).await.map(drop);
        }
        stream.socket.shutdown().await
    }

    /// Says the same again and again, as fast as it is taken.
    async fn go_on(&self, stream: &mut Stream<'_>, task: &Value) -> std::io::Result<()> {
        let mut update = json!({"taskId": task["id"], "contextId": task["contextId"]});
        let name = match self.defect {
            Defect::StreamEndless => {
                update["status"] = json!({"state": "TASK_STATE_WORKING"});
                "statusUpdate"
            }
            _ => {
                update["artifact"] = json!({"artifactId": "a", "parts": [{"text": "x".repeat(4 << 20)}]});
                "artifactUpdate"
            }
        };
        loop {
            stream.frame(&json!({name: update})).await?;
        }
    }

    /// Whether a stream ends here, where its task asks something.
    fn closes_at(&self, task: &Value) -> bool {
        self.defect == Defect::ClosesAtQuestions && task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    }

    /// Waits for the end of a task, with signs of life; whether the subscriber is still there.
    async fn wait(&self, stream: &mut Stream<'_>, place: usize) -> std::io::Result<bool> {
        let mut changed = self.changed.subscribe();
        let mut ping = Instant::now() + PING;
        loop {
            let (task, ends) = {
                let mut tasks = self.tasks.lock().unwrap();
                (tasks.task(place), tasks.ends(place))
            };
            if has_ended(&task) {
                if self.defect == Defect::TellsLate {
                    tokio::time::sleep(LATE).await;
                }
                return Ok(true);
            }
            let ends = ends.unwrap_or_else(|| Instant::now() + Duration::from_secs(60));
            let mut nothing = [0; 1];
            tokio::select! {
                _ = changed.changed() => {}
                () = sleep_until(ends) => {}
                () = sleep_until(ping), if self.defect != Defect::StreamIsSilent => {
                    ping = Instant::now() + PING;
                    stream.socket.write_all(b": ping\n\n").await?;
                }
                _ = stream.socket.read(&mut nothing) => {
                    if self.defect == Defect::LeavingCancels {
                        self.tasks.lock().unwrap().cancel(place);
                    }
                    return Ok(false);
                }
            }
        }
    }

    /// What is told at the end of a task; to some more than to others.
    async fn end(&self, stream: &mut Stream<'_>, place: usize, more: bool) -> std::io::Result<()> {
        let task = self.tasks.lock().unwrap().task(place);
        let with = |member: &str, value: Value| {
            let mut update = json!({"taskId": task["id"], "contextId": task["contextId"]});
            update[member] = value;
            update
        };
        let chunk = |number: usize| {
            let part = &task["artifacts"][0]["parts"][number];
            let mut update = with("artifact", json!({"artifactId": "a", "parts": [part]}));
            update["append"] = json!(number > 0);
            json!({"artifactUpdate": update})
        };
        let end = json!({"statusUpdate": with("status", task["status"].clone())});
        let is_done = task["artifacts"].is_array();
        let mut frames = match self.defect {
            Defect::CanceledStreamGoesOn if !is_done => {
                let artifact = json!({"artifactId": "late", "parts": [{"text": "late"}]});
                vec![end, json!({"artifactUpdate": with("artifact", artifact)})]
            }
            _ if !is_done => vec![end],
            Defect::StreamWithMessage => vec![chunk(0), self.message(), chunk(1), end],
            Defect::StreamOfTwoContexts => {
                let mut end = end;
                end["statusUpdate"]["contextId"] = json!("another");
                vec![chunk(0), chunk(1), end]
            }
            Defect::StreamGoesOnAfterTheEnd => vec![chunk(0), end, chunk(1)],
            Defect::StreamLosesAChunk => vec![chunk(0), end],
            Defect::StreamBreaksOffWithAnError => vec![chunk(0)],
            _ => vec![chunk(0), chunk(1), end],
        };
        if more && is_done {
            let working = json!({"state": "TASK_STATE_WORKING"});
            frames.insert(1, json!({"statusUpdate": with("status", working)}));
        }
        for frame in &frames {
            stream.frame(frame).await?;
        }
        if self.defect == Defect::StreamBreaksOffWithAnError {
            let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "lagged"}});
            stream.socket.write_all(format!("data: {error}\n\n").as_bytes()).await?;
        }
        Ok(())
    }

    pub(super) async fn subscribe(&self, socket: TcpStream, asked: &Asked) -> std::io::Result<()> {
        let (place, task) = {
            let mut tasks = self.tasks.lock().unwrap();
            let place = tasks.find(asked, asked.params["id"].as_str().unwrap_or_default());
            (place, place.map(|place| tasks.task(place)).unwrap_or_default())
        };
        let refusal = match (place, has_ended(&task)) {
            (None, _) => Some(-32001),
            (_, false) if matches!(self.defect, Defect::SubscribeLosesTheTask | Defect::TaskLeftAtWork) => Some(-32001),
            (_, true) if self.defect != Defect::SubscribeToEnded => Some(-32004),
            _ => None,
        };
        let (Some(place), None) = (place, refusal) else {
            return finish(socket, &asked.error(self.defect, refusal.unwrap_or(-32001))).await;
        };
        let mut stream = self.open(socket, asked).await?;
        stream.frame(&json!({"task": task})).await?;
        if has_ended(&task) || self.defect == Defect::SubscriptionStops && task["artifacts"].is_null() {
            return stream.socket.shutdown().await;
        }
        if self.closes_at(&task) {
            return stream.socket.shutdown().await;
        }
        if !self.wait(&mut stream, place).await? {
            return Ok(());
        }
        let number = {
            let mut tasks = self.tasks.lock().unwrap();
            tasks.subscribers += 1;
            tasks.subscribers
        };
        let more = self.defect == Defect::SubscribersHearOtherThings && number % 2 == 0;
        self.end(&mut stream, place, more).await?;
        stream.socket.shutdown().await
    }
}

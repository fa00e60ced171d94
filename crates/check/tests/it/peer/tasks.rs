//! The tasks of the scripted agent, and what can be asked about them without waiting.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Defect;
use super::wire::Asked;

/// A task and what no caller is told of it.
struct Kept {
    task: Value,
    owner: String,
    /// When its work is done, if that takes time.
    ends: Option<Instant>,
    /// How much there is to say.
    says: usize,
    webhooks: Vec<Value>,
}

pub(super) struct Tasks {
    defect: Defect,
    all: Vec<Kept>,
    clock: u32,
    /// How many have listened to the end of a task.
    pub(super) subscribers: u32,
}

impl Tasks {
    pub(super) fn new(defect: Defect) -> Self {
        Self { defect, all: Vec::new(), clock: 0, subscribers: 0 }
    }

    fn now(&mut self) -> String {
        self.clock += 1;
        format!("2026-01-01T00:{:02}:{:02}.000Z", self.clock / 60, self.clock % 60)
    }

    /// Ends whatever work is done.
    fn settle(&mut self) {
        for place in 0..self.all.len() {
            let kept = &self.all[place];
            let is_due = kept.ends.is_some_and(|ends| ends <= Instant::now());
            let is_open = !has_ended(&kept.task) || self.defect == Defect::CanceledTaskGoesOn;
            if is_due && is_open {
                let state = if self.defect == Defect::OldSpellings { "completed" } else { "TASK_STATE_COMPLETED" };
                let status = json!({"state": state, "timestamp": self.now()});
                let kept = &mut self.all[place];
                kept.ends = None;
                kept.task["status"] = status;
                let text = "o".repeat(kept.says);
                kept.task["artifacts"] =
                    json!([{"artifactId": "a", "parts": [{"text": format!("d{text}")}, {"text": "ne"}]}]);
            }
        }
    }

    /// Begins a task, or says why not.
    pub(super) fn begin(&mut self, asked: &Asked) -> Result<usize, i32> {
        self.settle();
        let (params, message) = (&asked.params, &asked.params["message"]);
        if message["parts"].as_array().is_none_or(Vec::is_empty) {
            return Err(-32602);
        }
        if let Some(id) = message["taskId"].as_str()
            && (self.find(asked, id).is_some() || self.defect != Defect::TasksOfAnyId)
        {
            return self.find(asked, id).map_or(Err(-32001), |_| Err(-32004));
        }
        let name = message["taskId"].as_str().map(str::to_owned);
        let text = message["parts"][0]["text"].as_str().unwrap_or_default();
        let takes = text.strip_prefix("slow:").and_then(|text| text.parse().ok()).map(Duration::from_millis);
        // What is not waited for and not slow goes on for ever.
        let is_waited = params["configuration"]["returnImmediately"] != true;
        let hangs = matches!(self.defect, Defect::TaskLeftAtWork | Defect::AnswersNever);
        let ends = match takes {
            _ if hangs => None,
            _ if text == "ask" => None,
            Some(takes) => Some(Instant::now() + takes),
            None if text.starts_with("big:") => Some(Instant::now()),
            None => is_waited.then(Instant::now),
        };
        let number = self.all.len();
        let state = if text == "ask" { "TASK_STATE_INPUT_REQUIRED" } else { "TASK_STATE_WORKING" };
        let says = text.strip_prefix("big:").and_then(|text| text.parse().ok()).unwrap_or(1);
        let told = json!({"messageId": format!("r{number}"), "role": "ROLE_AGENT", "parts": [{"text": "I begin"}]});
        let task = json!({
            "id": name.unwrap_or_else(|| format!("t{number}")), "contextId": format!("c{number}"),
            "status": {"state": state, "timestamp": self.now()}, "history": [message, told],
        });
        self.all.push(Kept { task, owner: asked.owner(), ends, says, webhooks: Vec::new() });
        Ok(number)
    }

    pub(super) fn open(&mut self) -> usize {
        self.settle();
        self.all.iter().filter(|kept| !has_ended(&kept.task)).count()
    }

    pub(super) fn ends(&self, place: usize) -> Option<Instant> {
        self.all[place].ends
    }

    pub(super) fn task(&mut self, place: usize) -> Value {
        self.settle();
        self.all[place].task.clone()
    }

    /// The task of an id, if it is the caller's.
    pub(super) fn find(&self, asked: &Asked, id: &str) -> Option<usize> {
        let is_shared = match self.defect {
            Defect::Shared(method) | Defect::OpenDoor(method) => method == asked.method,
            defect => defect == Defect::Public,
        };
        let owner = asked.owner();
        let is_there = |kept: &Kept| self.defect != Defect::Purges || !has_ended(&kept.task);
        let is_it = |kept: &Kept| kept.task["id"] == id && (is_shared || kept.owner == owner) && is_there(kept);
        self.all.iter().position(is_it)
    }

    pub(super) fn cancel(&mut self, place: usize) {
        let status = json!({"state": "TASK_STATE_CANCELED", "timestamp": self.now()});
        self.all[place].task["status"] = status;
    }

    /// What needs neither time nor a stream.
    pub(super) fn plain(&mut self, asked: &Asked) -> Result<Value, i32> {
        self.settle();
        let params = &asked.params;
        let found = params["id"].as_str().and_then(|id| self.find(asked, id));
        match (asked.method.as_str(), found) {
            ("GetTask" | "CancelTask", None) => Err(-32001),
            ("GetTask", Some(place)) => self.shown(place, &params["historyLength"]),
            ("CancelTask", Some(place)) => {
                let is_canceled = self.all[place].task["status"]["state"] == "TASK_STATE_CANCELED";
                match self.defect {
                    Defect::CancelsTwice if is_canceled => return Ok(self.all[place].task.clone()),
                    Defect::ForgetsCanceled if is_canceled => return Err(-32001),
                    _ => {}
                }
                if has_ended(&self.all[place].task) && self.defect != Defect::EndedTaskIsCanceled {
                    return Err(-32002);
                }
                self.cancel(place);
                Ok(self.all[place].task.clone())
            }
            ("ListTasks", _) => self.list(asked),
            (method, _) if method.contains("PushNotification") => self.push(asked),
            _ => Err(-32601),
        }
    }

    fn shown(&self, place: usize, length: &Value) -> Result<Value, i32> {
        let mut task = self.all[place].task.clone();
        let Some(length) = length.as_i64() else { return Ok(task) };
        if length < 0 && self.defect != Defect::HistoryNegative {
            return Err(-32602);
        }
        let is_ignored = match self.defect {
            Defect::HistoryAlways => length == 0,
            Defect::HistoryTooLong => length == 1,
            _ => false,
        };
        if !is_ignored && length >= 0 {
            let history = task["history"].as_array_mut().unwrap();
            let more = history.len().saturating_sub(usize::try_from(length).unwrap());
            history.drain(..more);
        }
        Ok(task)
    }

    fn push(&mut self, asked: &Asked) -> Result<Value, i32> {
        match self.defect {
            Defect::WebhooksUndeclared => return Ok(json!({"configs": []})),
            Defect::WithoutWebhooks => return Err(-32003),
            _ => {}
        }
        let params = &asked.params;
        let place = params["taskId"].as_str().and_then(|id| self.find(asked, id));
        let Some(place) = place else {
            let is_lax = self.defect == Defect::WebhooksOfNoTask;
            return if is_lax { Ok(json!({"configs": []})) } else { Err(-32001) };
        };
        let has_ended = has_ended(&self.all[place].task);
        let webhooks = &mut self.all[place].webhooks;
        if self.defect == Defect::WebhooksOfOpenTasks && has_ended {
            webhooks.clear();
        }
        let named = webhooks.iter().position(|webhook| webhook["id"] == params["id"]);
        match (asked.method.as_str(), named) {
            ("CreateTaskPushNotificationConfig", _) if self.defect == Defect::WebhooksElsewhere => Err(-32004),
            ("CreateTaskPushNotificationConfig", _) if self.defect == Defect::WebhooksOfOpenTasks && has_ended => {
                Err(-32004)
            }
            ("CreateTaskPushNotificationConfig", _) => {
                webhooks.push(params.clone());
                Ok(params.clone())
            }
            ("ListTaskPushNotificationConfigs", _) => Ok(json!({"configs": webhooks, "nextPageToken": ""})),
            ("GetTaskPushNotificationConfig", Some(named)) => Ok(webhooks[named].clone()),
            ("GetTaskPushNotificationConfig", None) if self.defect == Defect::WebhookOfNoName => Ok(json!({})),
            ("GetTaskPushNotificationConfig", None) => Err(-32001),
            ("DeleteTaskPushNotificationConfig", Some(named)) => {
                webhooks.remove(named);
                Ok(Value::Null)
            }
            _ if self.defect == Defect::WebhookGoneIsAnError => Err(-32603),
            _ => Ok(Value::Null),
        }
    }

    fn list(&self, asked: &Asked) -> Result<Value, i32> {
        let (defect, params) = (self.defect, &asked.params);
        let size = params["pageSize"].as_u64().unwrap_or(50);
        let token = params["pageToken"].as_str().unwrap_or_default();
        let is_counted = matches!(defect, Defect::ListByNumber | Defect::ListByPlace);
        let begin: Option<usize> = match token.trim_start_matches("after-").parse() {
            Ok(begin) => Some(begin),
            Err(_) if token.is_empty() || defect == Defect::ListTakesAnyToken => None,
            Err(_) => return Err(-32602),
        };
        if !(1..=100).contains(&size) {
            return Err(-32602);
        }
        let (owner, is_shared) = (asked.owner(), matches!(defect, Defect::Shared("ListTasks") | Defect::Public));
        let is_visible = |kept: &&Kept| {
            let is_there = defect != Defect::Purges || !has_ended(&kept.task);
            is_there && (is_shared || kept.owner == owner)
        };
        let mut tasks: Vec<Value> =
            self.all.iter().filter(|kept| is_visible(kept)).map(|kept| kept.task.clone()).collect();
        let is_wanted = |task: &Value| {
            let time = task["status"]["timestamp"].as_str().unwrap();
            params["contextId"].as_str().is_none_or(|context| task["contextId"] == context)
                && (defect == Defect::ListOfAllStates
                    || params["status"].as_str().is_none_or(|state| task["status"]["state"] == state))
                && (defect == Defect::ListOfAllTimes
                    || params["statusTimestampAfter"].as_str().is_none_or(|after| time >= after))
        };
        tasks.retain(is_wanted);
        tasks.sort_by_key(|task| task["status"]["timestamp"].as_str().unwrap().to_owned());
        if defect != Defect::ListOldestFirst {
            tasks.reverse();
        }
        let total = tasks.len();
        let skipped = match begin {
            Some(begin) if is_counted => begin,
            Some(begin) if defect == Defect::ListOldestFirst => {
                tasks.iter().filter(|task| time_of(task) <= begin).count()
            }
            Some(begin) => tasks.iter().filter(|task| time_of(task) >= begin).count(),
            None => 0,
        };
        let size = if defect == Defect::ListSecondPageTooLong && begin.is_some() { 100 } else { size };
        let mut page: Vec<Value> = tasks.into_iter().skip(skipped).take(usize::try_from(size).unwrap()).collect();
        for task in page.iter_mut().map(|task| task.as_object_mut().unwrap()) {
            if params["includeArtifacts"] == true {
                task.entry("artifacts").or_insert_with(|| json!([]));
            } else if defect != Defect::ListWithArtifacts {
                task.remove("artifacts");
            }
            if params["historyLength"] == 0 && defect != Defect::ListWithHistory {
                task.remove("history");
            }
        }
        let next = skipped + page.len();
        let kind = if matches!(defect, Defect::ListByNumber | Defect::ListByTaskNumber) { "" } else { "after-" };
        let place = if is_counted { next } else { page.last().map(time_of).unwrap_or_default() };
        let shown = if defect == Defect::ListTotalWrong { 0 } else { total };
        let mut list = json!({"tasks": page, "pageSize": size, "totalSize": shown});
        if next < total {
            list["nextPageToken"] = json!(format!("{kind}{place}"));
        } else if defect != Defect::ListWithoutToken {
            list["nextPageToken"] = json!("");
        }
        Ok(list)
    }
}

pub(super) fn has_ended(task: &Value) -> bool {
    let state = &task["status"]["state"];
    state != "TASK_STATE_WORKING" && state != "TASK_STATE_INPUT_REQUIRED"
}

/// When a task changed last, as a number: no two have the same.
fn time_of(task: &Value) -> usize {
    let time = task["status"]["timestamp"].as_str().unwrap();
    let number = |range: std::ops::Range<usize>| time[range].parse::<usize>().unwrap();
    number(14..16) * 60 + number(17..19)
}

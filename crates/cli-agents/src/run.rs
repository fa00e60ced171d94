//! One run of a program: its child process, its dialogue, its approvals with their question timeout, and its limits.

mod outcome;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use switchboard_a2a::Message;
use switchboard_engine::clock::later;
use switchboard_engine::{CallError, Stopped, TaskHandle};

use super::CliAgent;
use super::approvals::{Answer, LOST_REASON, PendingApproval};
use super::deadlines::{Deadlines, ExceededLimit};
use super::metric_definitions as metric;
use super::process::{Child, Output, TreeExit};
use super::program;
use super::sessions::TurnCheckpoint;
use super::settings::Worker;
use super::task_reporter::TaskReporter;
use crate::adapters::{Approval, Decision, Dialogue, Event, Order, Permission, Permissions, Step, Steps};

pub(super) use outcome::{RunOutcome, count};

use outcome::RunningGauge;

/// The variables with which a program calls other agents of this server.
const URL_VARIABLE: &str = "SWITCHBOARD_URL";
const TOKEN_VARIABLE: &str = "SWITCHBOARD_TASK_TOKEN";
/// The certificates to trust there, where the system may not.
const CA_VARIABLE: &str = "SWITCHBOARD_CA";
/// The agents that it may call, as its configuration has them, with spaces between.
const DELEGATES_VARIABLE: &str = "SWITCHBOARD_DELEGATES";
/// How long a program may take to exit by itself once its turn is over.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// While a question is open, so many events are held before the program's output is no longer read (backpressure).
const HELD_EVENTS_LIMIT: usize = 1_024;

/// Runs a worker's program for an order until its process tree has exited. `started` gets the tree exit, which queue
/// positions wait for if this future is dropped before.
pub(super) async fn run(
    agent: &CliAgent,
    worker: &Worker,
    order: &Order,
    saved: &mut TurnCheckpoint,
    task: &TaskHandle,
    report: &mut TaskReporter,
    started: impl FnOnce(TreeExit),
) -> Result<RunOutcome, Stopped> {
    // It may look into the repository, which may be large or on a slow disk.
    let (adapter, ordered) = (worker.adapter.clone(), order.clone());
    let (mut launch, dialogue) = match tokio::task::spawn_blocking(move || adapter.start(&ordered)).await {
        Ok(Ok(started)) => started,
        Ok(Err(error)) => return Ok(RunOutcome::Refused(error.to_string())),
        Err(error) => return Ok(RunOutcome::NotStarted(format!("the program could not be prepared: {error}"))),
    };
    match token_variables(agent, task).await {
        Ok(variables) => launch.env.extend(variables),
        Err(CallError::Stopped(stopped)) => return Err(stopped),
        Err(CallError::Refused(error)) => return Ok(RunOutcome::NotStarted(error.to_string())),
    }
    let command = match program::command(&agent.settings, worker, &launch, &order.cwd, task.id().to_string()) {
        Ok(command) => command,
        Err(error) => return Ok(RunOutcome::NotStarted(error.to_string())),
    };
    let about = worker.adapter.about();
    // Committed before the start: after a crash the next server must know that the program may have done something, or
    // it would start it a second time.
    about.name.clone_into(&mut saved.cli);
    saved.session = order.session.known(about.capabilities.chosen_session);
    saved.started = true;
    task.save_committed(saved).await?;
    let child = match agent.shared.children.spawn(command, agent.settings.output).await {
        Ok(child) => child,
        Err(error) => return Ok(RunOutcome::NotStarted(error.to_string())),
    };
    started(child.tree_exit());
    let now = agent.shared.clock.now();
    let mut run = Run {
        agent,
        worker,
        permissions: &order.permissions,
        task,
        report,
        child,
        dialogue,
        saved,
        deadlines: Deadlines::new(agent.settings.timeout, agent.settings.idle, now),
        events: 0,
        open: None,
        waiting: VecDeque::new(),
        held_events: Vec::new(),
        outcome: None,
    };
    let began = Instant::now();
    let _running = RunningGauge::new(about.name.clone());
    let outcome = run.work().await;
    agent.shared.repositories.set_waits_for_answer(task.id(), false);
    if let Err(Stopped::Canceled) = &outcome {
        run.interrupt().await;
    }
    run.child.leave(if outcome.is_ok() { EXIT_TIMEOUT } else { Duration::ZERO }).await;
    metrics::histogram!(metric::TURN_DURATION, "cli" => about.name.clone()).record(began.elapsed());
    outcome
}

/// How the program calls other agents: where this server is, and a token of the task. Nothing if it may call none.
async fn token_variables(agent: &CliAgent, task: &TaskHandle) -> Result<Vec<(String, String)>, CallError> {
    let Some(server) = &agent.settings.server else { return Ok(Vec::new()) };
    let Some(token) = task.issue_token().await? else { return Ok(Vec::new()) };
    let mut variables = vec![(URL_VARIABLE, server.url.clone()), (TOKEN_VARIABLE, token)];
    if let Some(file) = server.certificate.as_ref().and_then(|file| file.to_str()) {
        variables.push((CA_VARIABLE, file.to_owned()));
    }
    if let Some(entries) = task.delegates().entries() {
        let names: Vec<String> = entries.iter().map(ToString::to_string).collect();
        variables.push((DELEGATES_VARIABLE, names.join(" ")));
    }
    Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// An open question, and the future of its answer.
struct OpenQuestion<'a> {
    pending: PendingApproval,
    answer: BoxFuture<'a, Result<Message, Stopped>>,
}

struct Run<'a> {
    agent: &'a CliAgent,
    worker: &'a Worker,
    permissions: &'a Permissions,
    task: &'a TaskHandle,
    report: &'a mut TaskReporter,
    child: Child,
    dialogue: Box<dyn Dialogue>,
    saved: &'a mut TurnCheckpoint,
    deadlines: Deadlines,
    events: u64,
    open: Option<OpenQuestion<'a>>,
    /// Questions that came while another was open.
    waiting: VecDeque<Approval>,
    /// Events while a question was open: their status updates would end the INPUT_REQUIRED state.
    held_events: Vec<Event>,
    outcome: Option<RunOutcome>,
}

enum Wakeup {
    Output(Output),
    Answer(Result<Message, Stopped>),
    Alarm,
}

impl<'a> Run<'a> {
    async fn work(&mut self) -> Result<RunOutcome, Stopped> {
        let mut steps = Steps::default();
        self.dialogue.begin(&mut steps);
        self.perform(&mut steps).await?;
        loop {
            if let Some(outcome) = self.outcome.take() {
                // It may have ended without waiting for the answer to its question.
                self.open = None;
                self.report_held_events().await?;
                return Ok(outcome);
            }
            match self.next().await? {
                Wakeup::Output(output) => self.output(output).await?,
                Wakeup::Answer(answer) => self.answer(answer?).await?,
                Wakeup::Alarm => self.alarm().await?,
            }
        }
    }

    async fn next(&mut self) -> Result<Wakeup, Stopped> {
        let clock = &self.agent.shared.clock;
        let expiry = self.open.as_ref().map(|open| open.pending.expires_at);
        let at = self.deadlines.next().into_iter().chain(expiry).min();
        let alarm = OptionFuture::from(at.map(|at| clock.sleep_until(at)));
        let reads = self.held_events.len() < HELD_EVENTS_LIMIT;
        let answer = OptionFuture::from(self.open.as_mut().map(|open| &mut open.answer));
        tokio::select! {
            biased;
            () = self.task.canceled() => Err(Stopped::Canceled),
            Some(answer) = answer => Ok(Wakeup::Answer(answer)),
            output = self.child.next(), if reads => Ok(Wakeup::Output(output)),
            Some(()) = alarm => Ok(Wakeup::Alarm),
        }
    }

    async fn output(&mut self, output: Output) -> Result<(), Stopped> {
        let mut steps = Steps::default();
        self.deadlines.output_received(self.agent.shared.clock.now());
        match output {
            Output::Line(line) => self.dialogue.line(&line, &mut steps),
            Output::Pause(unfinished) => self.dialogue.pause(&unfinished, &mut steps),
            Output::TooLong { bytes } => steps.event(Event::Notice {
                text: format!(
                    "a line of {bytes} bytes was left out: it is over the limit of {} (limits.line)",
                    self.agent.settings.output.line
                ),
            }),
            Output::Flood => {
                let limit = self.agent.settings.output.output;
                let text = format!("stopped after writing more than {limit} bytes (limits.output)");
                self.outcome.get_or_insert(RunOutcome::OutputLimit(text));
            }
            Output::Ended(exit) => self.dialogue.ended(&exit, &mut steps),
        }
        self.perform(&mut steps).await
    }

    async fn perform(&mut self, steps: &mut Steps) -> Result<(), Stopped> {
        loop {
            let taken = steps.take();
            if taken.is_empty() {
                return Ok(());
            }
            for step in taken {
                if self.outcome.is_some() {
                    return Ok(());
                }
                match step {
                    Step::Event(event) => self.event(event, steps).await?,
                    Step::Write(line) => {
                        if let Err(error) = self.child.write(line) {
                            tracing::debug!(task = %self.task.id(), %error, "a child does not read what it is told");
                        }
                    }
                    Step::CloseInput => self.child.close_input(),
                    Step::Finish(ending) => self.outcome = Some(RunOutcome::Ended(ending)),
                }
            }
        }
    }

    async fn event(&mut self, event: Event, steps: &mut Steps) -> Result<(), Stopped> {
        self.events += 1;
        if self.events > self.agent.settings.events {
            let text = format!("stopped after {} events (limits.events)", self.agent.settings.events);
            self.outcome = Some(RunOutcome::OutputLimit(text));
            return Ok(());
        }
        let now = self.agent.shared.clock.now();
        self.deadlines.event_received(now);
        match event {
            Event::ApprovalRequired(approval) => return self.approval(approval, steps).await,
            Event::ApprovalWithdrawn { request } => return self.withdraw(&request).await,
            Event::ToolUse { ref id, .. } => self.deadlines.tool_opened(id, now),
            Event::ToolResult { ref id, .. } => self.deadlines.tool_closed(id, now),
            Event::Init { session: Some(ref session), .. } if self.saved.session.as_ref() != Some(session) => {
                self.saved.session = Some(session.clone());
                self.task.save(&*self.saved).await?;
            }
            _ => {}
        }
        // Usage does not end the INPUT_REQUIRED state, and must not be lost if the task is stopped now.
        if self.open.is_some() && !matches!(event, Event::Usage(_)) {
            self.held_events.push(event);
            return Ok(());
        }
        self.report.event(event).await
    }

    /// An approval: the permission rules decide it, or a question to the caller.
    async fn approval(&mut self, approval: Approval, steps: &mut Steps) -> Result<(), Stopped> {
        let permission = match self.worker.adapter.permission(self.permissions, &approval.tool, &approval.input) {
            Permission::Ask if self.saved.always.contains(&approval.tool) => Permission::Allow,
            permission => permission,
        };
        match permission {
            Permission::Allow => {
                self.count("allowed_by_rule");
                self.dialogue.decide(&approval.request, &Decision::Allow, steps);
            }
            Permission::Deny => {
                self.count("denied_by_rule");
                let reason = Some(format!("{} is not allowed here.", approval.tool));
                self.dialogue.decide(&approval.request, &Decision::Deny { reason }, steps);
            }
            Permission::Ask if self.open.is_some() => self.waiting.push_back(approval),
            Permission::Ask => self.ask(approval),
        }
        Ok(())
    }

    fn ask(&mut self, approval: Approval) {
        let now = self.agent.shared.clock.now();
        self.deadlines.wait_for_human(true, now);
        self.agent.shared.repositories.set_waits_for_answer(self.task.id(), true);
        let pending = PendingApproval::new(approval, later(now, self.agent.settings.approval_expiry));
        self.ask_with(pending, None);
    }

    fn ask_with(&mut self, pending: PendingApproval, note: Option<&str>) {
        let message = pending.message(note);
        let task = self.task;
        self.open = Some(OpenQuestion { pending, answer: async move { task.ask_message(message).await }.boxed() });
    }

    async fn answer(&mut self, message: Message) -> Result<(), Stopped> {
        let Some(OpenQuestion { pending, .. }) = self.open.take() else { return Ok(()) };
        let decision = match pending.read(&message) {
            Answer::Decided(decision) => decision,
            Answer::Always => {
                self.saved.always.insert(pending.approval.tool.clone());
                self.task.save(&*self.saved).await?;
                Decision::Allow
            }
            Answer::Expired(id) => {
                let note = format!("The approval {id} has expired; this is the one that is open.");
                self.ask_with(pending, Some(&note));
                return Ok(());
            }
            Answer::Unclear(note) => {
                self.ask_with(pending, Some(note));
                return Ok(());
            }
        };
        self.count(match decision {
            Decision::Allow => "allowed",
            Decision::Deny { .. } => "denied",
            Decision::Choose(_) => "chosen",
        });
        let mut steps = Steps::default();
        if matches!(decision, Decision::Deny { reason: Some(_) }) && !pending.approval.takes_reason {
            steps.event(Event::Notice { text: LOST_REASON.to_owned() });
        }
        self.dialogue.decide(&pending.approval.request, &decision, &mut steps);
        self.resume_after_question(&mut steps).await
    }

    fn count(&self, answer: &'static str) {
        metrics::counter!(metric::APPROVALS, "cli" => self.saved.cli.clone(), "answer" => answer).increment(1);
    }

    async fn withdraw(&mut self, request: &str) -> Result<(), Stopped> {
        self.waiting.retain(|approval| approval.request != request);
        if self.open.as_ref().is_none_or(|open| open.pending.approval.request != request) {
            return Ok(());
        }
        self.open = None;
        self.count("withdrawn");
        self.task.status("The question was withdrawn.").await?;
        self.resume_after_question(&mut Steps::default()).await
    }

    /// No question is open: asks the next one, or reports the held events.
    async fn resume_after_question(&mut self, steps: &mut Steps) -> Result<(), Stopped> {
        while let Some(approval) = self.waiting.pop_front() {
            if self.saved.always.contains(&approval.tool) {
                self.dialogue.decide(&approval.request, &Decision::Allow, steps);
                continue;
            }
            self.ask(approval);
            break;
        }
        if self.open.is_none() {
            let now = self.agent.shared.clock.now();
            self.deadlines.wait_for_human(false, now);
            self.agent.shared.repositories.set_waits_for_answer(self.task.id(), false);
            self.deadlines.output_received(now);
            self.report_held_events().await?;
        }
        // Boxed: following a step may ask the next question, which leads back here.
        Box::pin(self.perform(steps)).await
    }

    async fn report_held_events(&mut self) -> Result<(), Stopped> {
        for event in std::mem::take(&mut self.held_events) {
            self.report.event(event).await?;
        }
        Ok(())
    }

    async fn alarm(&mut self) -> Result<(), Stopped> {
        let now = self.agent.shared.clock.now();
        if let Some(open) = self.open.take_if(|open| open.pending.expires_at <= now) {
            self.count("expired");
            self.outcome = Some(RunOutcome::Expired(open.pending.approval.tool));
        } else if self.task.waits_for_calls() && self.deadlines.passed(now) == Some(ExceededLimit::Idle) {
            // It is silent because another agent works for it.
            self.deadlines.output_received(now);
        } else if let Some(passed) = self.deadlines.passed(now) {
            self.outcome = Some(RunOutcome::TimeLimit(passed));
        } else if self.deadlines.take_quiet_notice(now) {
            self.report.quiet(self.worker.adapter.about()).await?;
        }
        Ok(())
    }

    /// Interrupts the program and reads its last output, for its usage.
    async fn interrupt(&mut self) {
        let mut steps = Steps::default();
        self.dialogue.interrupt(&mut steps);
        let last_words = async {
            loop {
                for step in steps.take() {
                    match step {
                        Step::Write(line) => drop(self.child.write(line)),
                        Step::Event(Event::Usage(usage)) => drop(self.report.event(Event::Usage(usage)).await),
                        Step::Finish(_) => return,
                        Step::CloseInput | Step::Event(_) => {}
                    }
                }
                match self.child.next().await {
                    Output::Line(line) => self.dialogue.line(&line, &mut steps),
                    Output::Ended(_) | Output::Flood => return,
                    Output::Pause(_) | Output::TooLong { .. } => {}
                }
            }
        };
        let _ = tokio::time::timeout(self.agent.settings.interrupt_timeout, last_words).await;
    }
}

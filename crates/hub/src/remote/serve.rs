//! Serves the remote agents of the registry: what each is made of, and what has to run beside them for tasks that no turn
//! follows, because they wait for an answer or have ended.

use std::sync::Arc;

use futures_util::FutureExt;
use switchboard_a2a::TaskId;
use switchboard_engine::{AgentName, Engine, Served, Switches};
use switchboard_host::serve::ServerParts;

use super::{Callbacks, RemoteAgent, RemoteParts, RemoteSettings, callback_base, manifest};
use crate::consumers::Consumers;
use crate::gate::gated;
use crate::jobs::{
    CANCEL_KIND, CHILDREN_KIND, CancelChildren, CancelJobs, JobKind, JobRunner, JobSettings, PARENT_KIND,
    RemoteDirectory, SettleParents,
};
use crate::registry::{Registry, RemoteFactory, RemoteState};
use crate::remote_poll::{PollSettings, PushedTasks, RemotePoll};

/// How the registry serves an agent elsewhere.
pub(crate) fn factory(parts: &ServerParts) -> RemoteFactory {
    let parts = parts.clone();
    Arc::new(move |remote| {
        let max_running = Some(remote.definition.serving.max_parallel.get());
        let switches = Switches { max_running, ..Switches::default() };
        let served = Served::new(RemoteAgent::new(remote_parts(&parts, remote))).switches(switches);
        let served = switchboard_fleet::with_output_schemas(served);
        gated(&parts, served, remote.policies(&parts.config.hub.inbox))
    })
}

fn remote_parts(parts: &ServerParts, remote: &RemoteState) -> RemoteParts {
    let definition = &remote.definition;
    let server = &parts.config.server;
    let public = server.public_base_url.as_ref().map(|url| url.as_str());
    let internal = server.internal_base_url.as_ref().map(|url| url.as_str());
    let base = callback_base(&definition.serving, public, internal);
    // A server that has just started knows the accepted card before it has seen what the agent shows now.
    remote.follow_accepted_card();
    let card = remote.observed.lock().card.clone();
    RemoteParts {
        name: AgentName::from(definition.name.as_str()),
        url: definition.url.as_str().trim_end_matches('/').to_owned(),
        client: remote.client.clone(),
        breaker: Arc::clone(&remote.breaker),
        settings: RemoteSettings::from(&definition.serving),
        callbacks: base.map(|base| Callbacks { receiver: parts.callbacks.clone(), base }),
        clock: Arc::clone(&parts.clock),
        manifest: manifest(definition, card.as_ref().map(|known| &*known.card)),
    }
}

impl RemoteDirectory for Registry {
    fn remote(&self, name: &AgentName) -> Option<RemoteParts> {
        let remote = Arc::clone(self.roster().remote(name)?);
        Some(remote_parts(self.parts(), &remote))
    }
}

/// Runs jobs that are owed, and looks at remote tasks that wait for an answer, until the server stops.
pub(crate) fn start(
    parts: &ServerParts,
    registry: &Arc<Registry>,
    engine: &Engine,
    consumers: &Arc<Consumers>,
    more_kinds: Vec<(&'static str, Arc<dyn JobKind>)>,
) {
    let remotes: Arc<dyn RemoteDirectory> = Arc::clone(registry) as _;
    let settings = JobSettings::from(&parts.config.hub.jobs);
    let cancel = CancelJobs {
        engine: engine.clone(),
        remotes: Arc::clone(&remotes),
        store: Arc::clone(&parts.store) as _,
        clock: Arc::clone(&parts.clock),
        settings,
    };
    let store = || Arc::clone(&parts.store) as _;
    let parents = SettleParents { engine: engine.clone(), store: store(), settings };
    let children = CancelChildren { engine: engine.clone(), store: store(), settings };
    let jobs = JobRunner::new(Arc::clone(&parts.store) as _, Arc::clone(&parts.clock))
        .with_settings(settings)
        .with(CANCEL_KIND, Arc::new(cancel))
        .with(PARENT_KIND, Arc::new(parents))
        .with(CHILDREN_KIND, Arc::new(children));
    let jobs = more_kinds.into_iter().fold(jobs, |jobs, (name, kind)| jobs.with(name, kind));
    engine.spawn(jobs.run(engine.closing().clone()));
    let settings = &parts.config.hub.remote_poll;
    let settings = PollSettings { first: settings.first.duration(), most: settings.most.duration() };
    let poll = RemotePoll { engine: engine.clone(), store: Arc::clone(&parts.store) as _, remotes, settings };
    let poll = Arc::new(poll);
    look_at_pushed(parts, &poll, engine);
    let registry = Arc::clone(registry);
    let agents = move || registry.roster().remotes();
    let (store, consumers, closing) = (Arc::clone(&parts.store), Arc::clone(consumers), engine.closing().clone());
    engine.spawn(async move { poll.run(store, consumers, agents, closing).await });
}

/// Looks at tasks that push notifications are about.
fn look_at_pushed(parts: &ServerParts, poll: &Arc<RemotePoll>, engine: &Engine) {
    let pushed = Arc::new(PushedTasks::default());
    let listener = Arc::clone(&pushed);
    parts.callbacks.listen(move |task| listener.add(task));
    let (poll, clock, closing) = (Arc::clone(poll), Arc::clone(&parts.clock), engine.closing().clone());
    engine.spawn(async move {
        let look = move |task: TaskId| {
            let poll = Arc::clone(&poll);
            async move {
                if let Err(error) = poll.look_now(&task).await {
                    tracing::warn!(%task, %error, "a remote task cannot be looked at");
                }
            }
            .boxed()
        };
        closing.run_until_cancelled(pushed.run(clock, look)).await;
    });
}

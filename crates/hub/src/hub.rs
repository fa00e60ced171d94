//! The hub as a part of the server: it starts with the kernel, serves its endpoints beside A2A, and ends with the drain.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use switchboard_engine::{Directory, Engine, Hosted};
use switchboard_host::StartError;
use switchboard_host::serve::{Fleet, FleetFactory, Lifecycle, ServerParts};
use switchboard_server::Front;

use crate::alerts::AlertStates;
use crate::api::{ApiFront, MessageCounts};
use crate::ceremonies::{Ceremonies, FIRE_KIND, FireJobs, NOTIFY_KIND, NotifyJobs};
use crate::channels::{Channels, joined_bytes};
use crate::consumers::Consumers;
use crate::experiments::Experiments;
use crate::feed::TraceCache;
use crate::health::{Pricing, Sums};
use crate::jobs::{ESCALATE_KIND, EscalateJobs, JobKind};
use crate::metric_definitions;
use crate::projector::{Failure, Projector};
use crate::registry::{AgentSources, Registry};
use crate::remote::serve;
use crate::routes::{MATCH_KIND, MatchJobs, Routes};
use crate::routing::{Drops, RoutingDirectory, RoutingRules, drops};
use crate::tasks::ask::{ASK, Ask};
use crate::tasks::channel::mailboxes::Mailboxes;
use crate::tasks::channel::{Channel, ChannelOptions};
use crate::tasks::channel_plan::CHANNEL;
use crate::tasks::fanout::{Fanout, FanoutOptions};
use crate::tasks::fanout_plan::FANOUT;

/// The hub of a server.
pub struct Hub {
    parts: ServerParts,
    registry: Arc<Registry>,
    /// What routing has refused; nothing where the hub does not route.
    drops: Option<Arc<Drops>>,
    /// Those that the agent of channels opens.
    mailboxes: Arc<Mailboxes>,
}

/// What endpoints and readers of the log share.
pub(crate) struct HubState {
    pub(crate) parts: ServerParts,
    pub(crate) registry: Arc<Registry>,
    pub(crate) engine: Engine,
    /// Which work each task belongs to.
    pub(crate) traces: TraceCache,
    /// What tokens cost where an agent does not say.
    pub(crate) pricing: Pricing,
    pub(crate) messages: MessageCounts,
    pub(crate) consumers: Arc<Consumers>,
    /// As the projector has committed them.
    pub(crate) health: RwLock<Sums>,
    pub(crate) alerts: RwLock<AlertStates>,
    pub(crate) failures: RwLock<BTreeMap<String, VecDeque<Failure>>>,
    pub(crate) experiments: Experiments,
    pub(crate) ceremonies: Arc<Ceremonies>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) channels: Arc<Channels>,
    /// What routing has refused; nothing where the hub does not route.
    pub(crate) drops: Option<Arc<Drops>>,
}

impl Hub {
    /// One for a server that is being started.
    pub fn new(parts: ServerParts, registry: Arc<Registry>) -> Self {
        Self { parts, registry, drops: None, mailboxes: Arc::default() }
    }

    /// The same, journaling what routing has refused.
    #[must_use]
    pub fn with_drops(self, drops: Arc<Drops>) -> Self {
        Self { drops: Some(drops), ..self }
    }

    /// The same with the mailboxes of its agent of channels.
    #[must_use]
    pub fn with_mailboxes(self, mailboxes: Arc<Mailboxes>) -> Self {
        Self { mailboxes, ..self }
    }
}

/// The agents of a workspace with a hub between them.
pub fn configured(mut sources: AgentSources) -> FleetFactory {
    Box::new(move |parts| {
        Box::pin(async move {
            let fanout = &parts.config.hub.fanout;
            let options = FanoutOptions { max: fanout.max.get(), inline: fanout.inline.length() };
            sources.own.push(Hosted::new(FANOUT, Fanout::new(options).with_clock(Arc::clone(&parts.clock))));
            let mailboxes = Arc::<Mailboxes>::default();
            let options = ChannelOptions { joined: joined_bytes(&parts), inline: fanout.inline.length() };
            let channel = Channel::new(options, Arc::clone(&mailboxes)).with_clock(Arc::clone(&parts.clock));
            sources.own.push(Hosted::new(CHANNEL, channel));
            sources.own.push(Hosted::new(ASK, Ask));
            let registry = Registry::open(parts.clone(), sources).await?;
            let drops = Drops::new(Arc::clone(&parts.clock)).with_callers(Arc::clone(&parts.callers));
            let drops = Arc::new(drops);
            let rules = RoutingRules::configured(&parts.config.hub);
            let agents: Arc<dyn Directory> = Arc::clone(&registry) as _;
            let directory = RoutingDirectory::new(agents, rules, Arc::clone(&registry) as _, Arc::clone(&drops));
            let directory = Arc::new(directory);
            directory.follow(&parts.reloads);
            let programs = Box::new(registry.programs());
            let first_served = registry.take_first_served();
            let hub = Box::new(Hub::new(parts, registry).with_drops(drops).with_mailboxes(mailboxes));
            let lifecycles: Vec<Box<dyn Lifecycle>> = vec![programs, hub];
            Ok(Fleet { directory: Some(directory), lifecycles, first_served, ..Fleet::default() })
        })
    })
}

impl Lifecycle for Hub {
    fn start<'a>(&'a self, engine: &'a Engine) -> BoxFuture<'a, Result<Vec<Arc<dyn Front>>, StartError>> {
        Box::pin(async move {
            self.registry.start(engine);
            let consumers = Arc::<Consumers>::default();
            let workspace = self.registry.workspace();
            let channels = Channels::open(&self.parts, &workspace, Arc::clone(&self.mailboxes)).await;
            let ceremonies = Ceremonies::open(&self.parts, workspace.clone()).await.map_err(StartError::Store)?;
            let routes = Routes::open(&self.parts, workspace).await.map_err(StartError::Store)?;
            let traces = TraceCache::new(Arc::clone(&self.parts.store));
            let experiments = Experiments::load(&*self.parts.store).await.map_err(StartError::Store)?;
            let state = Arc::new(HubState {
                parts: self.parts.clone(),
                registry: Arc::clone(&self.registry),
                engine: engine.clone(),
                traces,
                pricing: Pricing::configured(&self.parts.config),
                messages: MessageCounts::default(),
                consumers: Arc::clone(&consumers),
                health: RwLock::default(),
                alerts: RwLock::default(),
                failures: RwLock::default(),
                experiments,
                ceremonies: Arc::clone(&ceremonies),
                routes: Arc::clone(&routes),
                channels: Arc::clone(&channels),
                drops: self.drops.clone(),
            });
            metric_definitions::describe_metrics();
            let matches: Arc<dyn JobKind> = Arc::new(MatchJobs { hub: Arc::clone(&state) });
            let escalations: Arc<dyn JobKind> = Arc::new(EscalateJobs { hub: Arc::clone(&state) });
            let fires: Arc<dyn JobKind> = Arc::new(FireJobs { hub: Arc::clone(&state) });
            let notices: Arc<dyn JobKind> = Arc::new(NotifyJobs { hub: Arc::clone(&state) });
            let kinds =
                vec![(MATCH_KIND, matches), (ESCALATE_KIND, escalations), (FIRE_KIND, fires), (NOTIFY_KIND, notices)];
            serve::start(&self.parts, &self.registry, engine, &consumers, kinds);
            routes.start(engine);
            channels.start(engine);
            ceremonies.start(engine);
            let projector = Projector::open(&state).await.map_err(StartError::Hub)?;
            engine.spawn(projector.run());
            if let Some(drops) = &self.drops {
                engine.on_refusal(drops::of_refusals(Arc::clone(drops)));
                let store = Arc::clone(&self.parts.store);
                // Agents that drain call others, which may be refused.
                engine.spawn(Arc::clone(drops).run(store, engine.drained().clone()));
            }
            let front: Arc<dyn Front> = Arc::new(ApiFront { hub: state });
            Ok(vec![front])
        })
    }

    /// What writes at its end runs under the kernel's drain, so nothing is left here.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

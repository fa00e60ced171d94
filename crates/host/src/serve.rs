//! Starts a server from a configuration: listener, store, engine, HTTP server and control socket.
//!
//! [`Serving::start`] opens everything and serves nothing yet, so that the program can print the start-up banner first;
//! [`Serving::run`] serves until the stop signal and then drains.

mod banner;
mod data_dir;
mod error;
mod fleet;
mod listen;
#[cfg(feature = "metrics")]
mod metrics_exporter;
mod network_file_system;
mod open_files;
mod outbound;
mod port_holder;
mod reload;
mod settings;
mod signals;

pub use banner::{StartupBanner, reachable};
pub use data_dir::{RESTORE, create as create_data_dir, open_problem};
pub use error::StartError;
pub use fleet::{FirstServed, Fleet, FleetFactory, Lifecycle, ServerParts};
pub use reload::{ReloadListeners, ReloadReport, Reloader, WorkspaceReader};
pub use signals::{Signals, stop_signal};

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use switchboard_egress::Egress;
use switchboard_engine::clock::{Clock, SystemClock};
use switchboard_engine::store::ServerStore;
use switchboard_engine::{Address, Caller, Engine, FixedDirectory};
use switchboard_server::{Front, Options, Server, Tls};
use switchboard_store::{CheckError, SqliteStore};
use switchboard_webhooks::CallbackReceiver;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Workspace};
use crate::control::{ControlHandler, ControlListener, DeliveryHold, Status};
use crate::keys::{KeyRing, KeyService};
use crate::serve::outbound::Outbound;

/// What to serve.
pub struct Plan {
    /// The settings and the data directory.
    pub workspace: Workspace,
    /// Makes the agents, once the data directory is open.
    pub fleet: FleetFactory,
    /// Reads the workspace again while the server runs.
    pub read_again: WorkspaceReader,
}

/// A server that is ready to serve.
pub struct Serving {
    listener: TcpListener,
    engine: Engine,
    outbound: Outbound,
    lifecycles: Vec<Box<dyn Lifecycle>>,
    options: Options,
    ring: Arc<KeyRing>,
    control: ControlListener,
    handler: Arc<ControlHandler>,
    /// For the handler of SIGHUP.
    pub reloader: Arc<Reloader>,
    /// The start-up banner.
    pub banner: StartupBanner,
    /// What is not wrong but probably not meant.
    pub warnings: Vec<String>,
}

impl Serving {
    /// Opens everything a server needs. The listener comes first: clients that connect from now on wait in its backlog
    /// and are served as soon as the rest is open, long before recovery is done.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let Plan { workspace, fleet, read_again } = plan;
        let (config, data_dir) = (&workspace.config, workspace.data_dir());
        let tls = open_tls(config)?;
        let (listener, address) = listen::listen(config.server.bind.0, &data_dir)?;
        let data_dir = data_dir::create(&data_dir)?;
        let store = open_store(config, &data_dir, address)?;
        let damaged = quick_check(&data_dir)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let loopback = address.ip().is_loopback();
        let keys = store.list_keys().await.map_err(StartError::Store)?;
        let usable = keys.iter().filter(|key| key.is_usable(clock.now())).count();
        if !loopback && usable == 0 {
            store.close().await.map_err(StartError::Store)?;
            return Err(StartError::NoKeys { address: config.server.bind.0, data_dir });
        }
        let ring = Arc::new(KeyRing::new(loopback, Arc::clone(&clock), &keys));
        let egress = Egress::new(settings::egress(config)).map_err(StartError::Egress)?;
        let callbacks = CallbackReceiver::new(store.clone(), store.secret(), Arc::clone(&clock));
        let reloads = ReloadListeners::default();
        let parts = ServerParts {
            data_dir: data_dir.clone(),
            config: Arc::new(config.clone()),
            clock: Arc::clone(&clock),
            store: Arc::clone(&store),
            callers: Arc::clone(&ring) as _,
            egress: egress.clone(),
            callbacks: callbacks.clone(),
            reloads: reloads.clone(),
            base_url: config.server.base_url(address).as_str().to_owned(),
            local_url: banner::local_url(&config.server, address),
        };
        let Fleet { hosted, directory, lifecycles, first_served } = match fleet(parts).await {
            Ok(fleet) => fleet,
            Err(error) => {
                store.close().await.map_err(StartError::Store)?;
                return Err(error);
            }
        };
        let directory = directory.unwrap_or_else(|| {
            let default_agent = config.server.default_agent.as_ref().map(|name| name.as_str().into());
            Arc::new(FixedDirectory::new(hosted, default_agent))
        });
        let agents = directory.agents();
        let mut banner = StartupBanner::new(&workspace, address, &data_dir, &agents, usable, ring.is_open());
        banner.first_served = first_served;
        let listed = Arc::clone(&directory);
        if directory.resolve(&Address::Root, &Caller::local(), None).is_ok() {
            banner.root_card = Some(format!("{}/.well-known/agent-card.json", banner.base_url));
        }
        let engine = Engine::start(store.clone(), directory, Arc::clone(&clock), settings::engine(config));
        let engine = engine.await.map_err(StartError::Store)?;
        engine.set_callers(Arc::clone(&ring) as _);
        let outbound = Outbound::open(config, egress, callbacks, &engine, &store).await?;
        let control = ControlListener::open(&data_dir).map_err(StartError::Control)?;
        let key_service = KeyService::new(store, clock, Some(Arc::clone(&ring)));
        let reloader = Arc::new(Reloader::new(&workspace, read_again, outbound.egress.clone(), reloads));
        let status_ring = Arc::clone(&ring);
        let is_tls = tls.is_some();
        let url = banner.local_url.clone();
        let certificate = config.server.tls.files().and_then(|(certificate, _)| std::path::absolute(certificate).ok());
        let status = move || Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: address.to_string(),
            tls: is_tls,
            url: url.clone(),
            certificate: certificate.clone(),
            agents: listed.agents().iter().map(|hosted| hosted.name.to_string()).collect(),
            keys_required: !status_ring.is_open(),
        };
        let warned = warnings(config, address, &data_dir);
        let options = settings::server(config, address, tls);
        let waits = (!outbound.webhooks.is_enabled()).then_some(DeliveryHold::Disabled);
        let handler =
            ControlHandler::new(key_service, outbound.webhooks.service(), data_dir.clone()).with_delivery_hold(waits);
        Ok(Self {
            handler: Arc::new(handler.with_server(status, Arc::clone(&reloader), engine.clone())),
            listener,
            engine,
            outbound,
            lifecycles,
            options,
            ring,
            control,
            reloader,
            banner,
            warnings: workspace.warnings.into_iter().chain(warned).chain(damaged).collect(),
        })
    }

    /// Serves until the stop signal, then lets running tasks end within the drain time.
    pub async fn run(self, stop: CancellationToken) -> Result<(), StartError> {
        let Self { listener, engine, outbound, lifecycles, options, ring, control, handler, .. } = self;
        let fronts = match start_all(&lifecycles, &engine).await {
            Ok(fronts) => fronts,
            Err(error) => {
                engine.shutdown().await.map_err(StartError::Store)?;
                stop_all(&lifecycles).await;
                return Err(error);
            }
        };
        // Commands are answered until the very end of the drain, so that a backup or a revocation is still possible.
        let done = CancellationToken::new();
        let control = tokio::spawn(control.run(handler, done.clone()));
        let drained = async {
            stop.cancelled().await;
            engine.shutdown().await
        };
        let options = Options { open: ring.is_open(), ..options };
        let Outbound { webhooks, callbacks, .. } = outbound;
        webhooks.start();
        let server = Server::new(engine.clone(), options, Arc::clone(&ring) as _).open_until(ring.keyed());
        let server = server.with_webhooks(webhooks).with_callbacks(callbacks).fronts(fronts);
        let served = async {
            let served = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => server.run(listener, stop.clone().cancelled_owned()).await,
                Err(error) => Err(error),
            };
            // A failed listener stops the engine too.
            stop.cancel();
            served
        };
        let (served, drained) = tokio::join!(served, drained);
        stop_all(&lifecycles).await;
        done.cancel();
        if let Err(error) = control.await {
            tracing::error!(%error, "the control socket ended badly");
        }
        served.map_err(StartError::Serving)?;
        drained.map_err(StartError::Store)
    }
}

async fn start_all(lifecycles: &[Box<dyn Lifecycle>], engine: &Engine) -> Result<Vec<Arc<dyn Front>>, StartError> {
    let mut fronts = Vec::new();
    for lifecycle in lifecycles {
        fronts.extend(lifecycle.start(engine).await?);
    }
    Ok(fronts)
}

/// Stops them, the last one first. One that was not started has nothing to stop.
async fn stop_all(lifecycles: &[Box<dyn Lifecycle>]) {
    for lifecycle in lifecycles.iter().rev() {
        lifecycle.stop().await;
    }
}

fn open_tls(config: &Config) -> Result<Option<Arc<Tls>>, StartError> {
    let Some((certificate, key)) = config.server.tls.files() else { return Ok(None) };
    Tls::open(certificate, key).map(|tls| Some(Arc::new(tls))).map_err(StartError::Tls)
}

fn open_store(
    config: &Config,
    data_dir: &std::path::Path,
    address: SocketAddr,
) -> Result<Arc<dyn ServerStore>, StartError> {
    let options = settings::store(config, address);
    let store = SqliteStore::open(data_dir, options).map_err(|error| open_problem(data_dir, error))?;
    Ok(Arc::new(store))
}

/// Runs the quick check, whose cost does not grow with the file. A damaged file is not served, because every write
/// could make it worse; a damaged task affects no other.
fn quick_check(data_dir: &std::path::Path) -> Result<Option<String>, StartError> {
    let problems = switchboard_store::quick_check(data_dir).map_err(|error| StartError::DataUnusable {
        directory: data_dir.to_owned(),
        problem: error.to_string(),
        next: if matches!(error, CheckError::Damaged(_)) { RESTORE } else { "switchboard db check looks for damage" },
    })?;
    let next = "switchboard db check says what else is wrong";
    Ok(problems
        .first()
        .map(|first| format!("the data is damaged, {} problems, the first: {first}: {next}", problems.len())))
}

fn warnings(config: &Config, address: SocketAddr, data_dir: &std::path::Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if address.ip().is_unspecified() && config.server.public_base_url.is_none() {
        warnings.push(format!(
            "agent cards say {}, which no client elsewhere can call: set server.publicBaseUrl to the address the \
             world uses",
            config.server.url_at(address).as_str()
        ));
    }
    let public_url = config.server.public_base_url.as_ref().map(|url| url.as_str());
    if let Some(url) = public_url.filter(|url| config.server.tls.files().is_some() && url.starts_with("http://")) {
        warnings.push(format!(
            "agent cards say {url}, and this server speaks nothing but TLS: write https:// in server.publicBaseUrl, \
             unless something in front of it takes plain HTTP"
        ));
    }
    if let Some(kind) = network_file_system::kind_of(data_dir) {
        warnings.push(format!(
            "the data directory {} is on a network file system ({kind}), where locks and write order cannot be relied \
             on: move it to a local disk with --data-dir or store.dataDir",
            data_dir.display()
        ));
    }
    if let Err(error) = switchboard_egress::check_ssl_cert_file() {
        warnings.push(format!(
            "{error}: webhooks and agents at https addresses cannot be called until SSL_CERT_FILE names a file of \
             certificates in PEM"
        ));
    }
    warnings.extend(open_files::raise(config.limits.connections.get(), config.limits.remote_tasks.get()));
    warnings
}

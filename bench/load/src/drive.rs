//! The closed loop: every connection has one request under way until the time is over; then each finishes the one
//! it began. A paced run sends at given moments instead. The clock starts when all connections are open and stops at
//! the last reply.

use anyhow::Context;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::request::RequestWriter;
use crate::target::Target;
use crate::work::Work;

/// How long a request may run on after the end before it counts as an error.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) latencies_us: Vec<u32>,
    pub(crate) units: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) elapsed: Duration,
}

/// A steady rate instead of as much as possible: each connection has its moments.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Between two requests of one connection.
    interval: Duration,
    connections: u32,
}

impl Pace {
    /// So many requests a second over so many connections.
    pub(crate) fn new(per_second: f64, connections: u32) -> Self {
        let interval = f64::from(connections.max(1)) / per_second.max(0.01);
        Self { interval: Duration::from_secs_f64(interval.min(3600.0)), connections: connections.max(1) }
    }

    /// When a connection has to send the first time.
    fn first(self, start: Instant, connection: u64) -> Instant {
        let share = u32::try_from(connection).unwrap_or_default() % self.connections;
        start + self.interval * share / self.connections
    }
}

pub(crate) async fn run(
    target: &Target,
    work: Work,
    connections: u32,
    duration: Duration,
    pace: Option<Pace>,
) -> anyhow::Result<Outcome> {
    let work = Arc::new(work);
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(target).await.with_context(|| format!("no server at {}", target.address))?);
    }
    let start = Instant::now();
    let end = start + duration;
    let mut workers = JoinSet::new();
    for (index, connection) in (0u64..).zip(open) {
        // Numbers that no two connections share and that fit a JSON number.
        let first_id = index << 32;
        let moments = pace.map(|pace| Moments { next: pace.first(start, index), interval: pace.interval });
        workers.spawn(worker(target.clone(), Arc::clone(&work), connection, first_id, end, moments));
    }
    let mut total = Outcome::default();
    while let Some(outcome) = workers.join_next().await {
        let outcome = outcome.context("a connection's loop ended early")?;
        total.latencies_us.extend(outcome.latencies_us);
        total.units += outcome.units;
        total.errors += outcome.errors;
        total.first_error = total.first_error.or(outcome.first_error);
    }
    total.elapsed = start.elapsed();
    Ok(total)
}

/// When one connection has to send.
struct Moments {
    next: Instant,
    interval: Duration,
}

impl Moments {
    /// Waits for the next moment, and says since when the request is under way: since its moment if that was missed
    /// because the one before took too long, else since now, for the timer's lateness is not the server's.
    async fn wait(&mut self) -> Instant {
        let planned = self.next;
        self.next += self.interval;
        if planned <= Instant::now() {
            return planned;
        }
        tokio::time::sleep_until(planned.into()).await;
        Instant::now()
    }
}

async fn worker(
    target: Target,
    work: Arc<Work>,
    mut connection: Connection,
    first_id: u64,
    end: Instant,
    mut moments: Option<Moments>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut writer = RequestWriter::new(&target);
    let mut id = first_id;
    let mut began = Instant::now();
    while began < end {
        if let Some(moments) = &mut moments {
            began = moments.wait().await;
            if began >= end {
                break;
            }
        }
        id += 1;
        let request = work.perform(&mut connection, &mut writer, id);
        let result = match tokio::time::timeout_at((end + PATIENCE).into(), request).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Late(PATIENCE.as_secs())),
        };
        let finished = Instant::now();
        match result {
            Ok(units) => {
                outcome.units += units;
                outcome.latencies_us.push((finished - began).as_micros().try_into().unwrap_or(u32::MAX));
            }
            Err(failure) => {
                outcome.errors += 1;
                outcome.first_error.get_or_insert(failure.to_string());
                // Whatever is still on its way belongs to the failed request.
                match Connection::open(&target).await {
                    Ok(fresh) => connection = fresh,
                    Err(_) => break,
                }
            }
        }
        began = finished;
    }
    outcome
}

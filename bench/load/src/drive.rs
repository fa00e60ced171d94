//! The closed loop: every connection has one request under way until the time is over; then each finishes the one
//! it began. The clock starts when all connections are open and stops at the last reply.

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

pub(crate) async fn run(target: &Target, work: Work, connections: u32, duration: Duration) -> anyhow::Result<Outcome> {
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
        workers.spawn(worker(target.clone(), Arc::clone(&work), connection, first_id, end));
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

async fn worker(target: Target, work: Arc<Work>, mut connection: Connection, first_id: u64, end: Instant) -> Outcome {
    let mut outcome = Outcome::default();
    let mut writer = RequestWriter::new(&target);
    let mut id = first_id;
    let mut began = Instant::now();
    while began < end {
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

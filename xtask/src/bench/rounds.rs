//! The rates: in each round all servers are started afresh and stay up, first pinned and then not, and every work goes over
//! all of them before the next one begins, so that what disturbs the machine disturbs all of them.

use crate::bench::Programs;
use crate::bench::load::{self, Rate};
use crate::bench::plan::{Plan, Work};
use crate::bench::results::Results;
use crate::bench::server::{Kind, Placement, Server, ServerOptions};

pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Results> {
    let mut results = Results::default();
    for round in 1..=plan.rounds {
        println!("\nround {round} of {}", plan.rounds);
        for placement in [Placement::Pinned, Placement::Unpinned] {
            run_placed(plan, programs, placement, &mut results)?;
        }
    }
    Ok(results)
}

fn run_placed(plan: &Plan, programs: &Programs, placement: Placement, results: &mut Results) -> anyhow::Result<()> {
    let options = ServerOptions { placement, ..ServerOptions::default() };
    let servers: Vec<Server> =
        plan.kinds.iter().map(|kind| Server::start(*kind, programs, options)).collect::<anyhow::Result<_>>()?;
    for work in plan.works.iter().filter(|work| work.placement == placement) {
        for server in servers.iter().filter(|server| work.suits(server.kind())) {
            match measure(plan, programs, work, server) {
                Ok(rate) => {
                    print(work, server.kind(), &rate);
                    results.add(work.name, server.kind(), rate);
                }
                Err(error) => results.fail(&work.title, server.kind(), &error),
            }
        }
    }
    Ok(())
}

fn measure(plan: &Plan, programs: &Programs, work: &Work, server: &Server) -> anyhow::Result<Rate> {
    let mut options = vec![
        "--url".to_owned(),
        server.url(),
        "--connections".to_owned(),
        work.connections.to_string(),
        "--seconds".to_owned(),
        plan.seconds.to_string(),
    ];
    options.extend(work.options.iter().cloned());
    load::run_placed(programs, work.placement, work.mode, &options, &[])
}

fn print(work: &Work, kind: Kind, rate: &Rate) {
    let Rate { rate: per_second, p50_ms, p99_ms, errors, .. } = rate;
    let server = kind.name();
    println!(
        "  {:<58} {server:<22} {per_second:>9.0}/s  p50 {p50_ms:>8.3} ms  p99 {p99_ms:>8.3} ms  {errors} errors",
        work.title
    );
}

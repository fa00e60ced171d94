//! What `/metrics` shows of a server, and that `docs/metrics.md` tells of all of it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::program::Workspace;
use crate::server::Server;

const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// Takes down what crates tell of their metrics.
#[derive(Default)]
struct Notebook(Mutex<BTreeSet<(String, String)>>);

impl Notebook {
    fn note(&self, name: &KeyName, meaning: &SharedString) {
        let new = self.0.lock().unwrap().insert((name.as_str().to_owned(), meaning.to_string()));
        assert!(new, "{name:?} is told of twice");
    }
}

impl Recorder for Notebook {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note(&name, &meaning);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note(&name, &meaning);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, meaning: SharedString) {
        self.note(&name, &meaning);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Every metric of every crate, and what it tells.
fn defined() -> BTreeSet<(String, String)> {
    let notebook = Notebook::default();
    metrics::with_local_recorder(&notebook, || {
        switchboard_server::describe_metrics();
        switchboard_store::describe_metrics();
        switchboard_cli_agents::describe_metrics();
        switchboard_hub::describe_metrics();
    });
    notebook.0.into_inner().unwrap()
}

/// The cells of the page's rows: name, kind, labels, meaning.
fn rows() -> Vec<[&'static str; 4]> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        <[&str; 4]>::try_from(cells).unwrap_or_else(|cells| panic!("four cells are wanted: {cells:?}"))
    })
    .collect()
}

#[test]
fn the_page_of_metrics_tells_of_each_one_in_its_own_words() {
    let told: BTreeSet<_> =
        rows().iter().map(|[name, _, _, meaning]| (name.to_string(), meaning.to_string())).collect();
    let wanted = defined();
    assert_eq!(told, wanted, "edit docs/metrics.md: one row a metric, with the words of its definition");
    assert_eq!(rows().len(), wanted.len(), "a metric has two rows in docs/metrics.md");
}

#[test]
fn the_metrics_of_a_server_are_those_of_the_page_and_at_rest_nothing_waits() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    assert_eq!(server.message("echo", "send", "hi", "").status, 200);
    assert_eq!(server.message("probe", "send", "err", "").status, 200);
    let shown = server.get("/metrics", "").text();
    let rows = rows();
    for line in shown.lines().filter(|line| line.starts_with("# TYPE ")) {
        let [_, _, name, kind] = <[&str; 4]>::try_from(line.split(' ').collect::<Vec<_>>()).unwrap();
        let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name} is not on the page"));
        assert_eq!(kind, row[1], "{name}");
        let sample = shown.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?;
            // A distribution is told by several lines; this one has its labels and nothing else.
            let rest = if kind == "gauge" || kind == "counter" { rest } else { rest.strip_prefix("_count")? };
            rest.starts_with(['{', ' ']).then_some(rest)
        });
        let sample = sample.unwrap_or_else(|| panic!("no sample of {name} in {shown}"));
        let labels = sample.split(['{', ',', '}']).filter_map(|part| Some(part.split_once('=')?.0));
        assert_eq!(labels.collect::<Vec<_>>().join(", "), row[2], "{name}{sample}");
    }
    for part in [
        "a2a_agent_up{agent=\"echo\"} 1",
        "a2a_agent_up{agent=\"guide\"} 1",
        "a2a_tasks{state=\"completed\"} 1",
        "a2a_tasks{state=\"failed\"} 1",
        "a2a_tasks{state=\"working\"} 0",
        "switchboard_eviction_held 0",
        "switchboard_store_queue_depth 0",
    ] {
        assert!(shown.lines().any(|line| line == part), "{part} is not in {shown}");
    }
    assert!(shown.contains("a2a_request_duration_seconds_bucket{method=\"SendMessage\",le=\"0.001\"}"), "{shown}");
    server.stop();
}

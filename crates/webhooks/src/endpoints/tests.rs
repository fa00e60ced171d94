//! Everything that waits has its turn, whatever happens around it.

use std::collections::{HashSet, VecDeque};

use super::endpoint::MOST_WAITING;
use super::*;

const NOW: Timestamp = Timestamp(1_000_000);
const DEAD: &str = "http://dead.test";

fn route(webhook: i64, owner: &str, endpoint: &str) -> WebhookRoute {
    WebhookRoute { webhook: WebhookKey(webhook), owner: owner.into(), endpoint: endpoint.to_owned() }
}

fn all_started(endpoints: &mut Endpoints, now: Timestamp) -> Vec<Started> {
    std::iter::from_fn(|| endpoints.start(now)).collect()
}

/// Ends the running jobs, and those that may start then, until none is left; returns all of them.
fn finish_all(endpoints: &mut Endpoints, running: Vec<Started>, most: usize) -> HashSet<Job> {
    let (mut running, mut done) = (VecDeque::from(running), HashSet::new());
    while let Some(started) = running.pop_front() {
        let health = if &*started.endpoint == DEAD { Health::Bad } else { Health::Good };
        endpoints.end(&started, health, false, NOW);
        assert!(done.insert(started.job), "once each");
        running.extend(all_started(endpoints, NOW));
        assert!(running.len() <= most);
    }
    done
}

/// An endpoint that was paused after its first failures, with so many jobs of one caller.
fn paused(jobs: i64, more: bool) -> Endpoints {
    let mut endpoints = Endpoints::new(Options { pause_after: 1, ..Options::default() });
    for number in 0..jobs {
        endpoints.add(route(number, "ann", DEAD));
    }
    for started in all_started(&mut endpoints, NOW) {
        endpoints.end(&started, Health::Bad, more, NOW);
    }
    assert!(endpoints.start(NOW).is_none());
    endpoints
}

fn nothing_is_left(endpoints: &Endpoints) {
    assert!(endpoints.endpoints.is_empty() && endpoints.jobs.is_empty());
    assert!(endpoints.ready.is_empty() && endpoints.running.held() == 0 && endpoints.pauses.is_empty());
}

#[test]
fn many_deliveries_of_several_callers_to_several_endpoints_all_have_their_turn() {
    for (parallel, count, each) in [(256, 16, 120), (32, 10, 100), (2, 3, 7)] {
        let mut endpoints = Endpoints::new(Options { parallel, ..Options::default() });
        let mut key = 0;
        for owner in ["ann", "bob"] {
            for index in 0..count * each {
                key += 1;
                endpoints.add(route(key, owner, &format!("http://{}.test", index % count)));
            }
        }
        let running = all_started(&mut endpoints, NOW);
        let done = finish_all(&mut endpoints, running, parallel);
        assert_eq!(done.len(), usize::try_from(key).unwrap());
        nothing_is_left(&endpoints);
    }
}

#[test]
fn one_caller_with_many_endpoints_leaves_places_for_others() {
    let mut endpoints = Endpoints::new(Options { parallel: 64, ..Options::default() });
    for number in 0..1_000 {
        endpoints.add(route(number, "hog", &format!("http://{number}.test")));
    }
    let hogs = all_started(&mut endpoints, NOW);
    assert_eq!(hogs.len(), 16);
    endpoints.add(route(5_000, "ann", "http://ann.test"));
    let ann = all_started(&mut endpoints, NOW);
    assert_eq!((ann.len(), ann[0].job), (1, WebhookKey(5_000)));
    // Each that ends makes room for one more of the same caller.
    assert_eq!(finish_all(&mut endpoints, hogs, 16).len(), 1_000);
    endpoints.end(&ann[0], Health::Good, false, NOW);
    nothing_is_left(&endpoints);
}

#[test]
fn what_moves_away_and_what_is_paused_uses_up_no_turn_of_others() {
    let mut endpoints = Endpoints::new(Options { parallel: 64, pause_after: 1, ..Options::default() });
    for number in 0..16 {
        endpoints.add(route(number, "ann", &format!("http://slow{number}.test")));
    }
    let slow = all_started(&mut endpoints, NOW);
    assert_eq!(slow.len(), 16, "all of its places");
    endpoints.add(route(100, "ann", "http://healthy.test"));
    for number in 0..40 {
        endpoints.add(route(200 + number, "ann", DEAD));
    }
    for number in 0..200 {
        endpoints.add(route(300, "ann", &format!("http://moving{number}.test")));
    }
    let done = finish_all(&mut endpoints, slow, 16);
    assert!(done.contains(&WebhookKey(100)) && done.contains(&WebhookKey(300)), "{done:?}");
    assert_eq!(endpoints.endpoints.len(), 1, "only the failing one is left");
}

#[test]
fn a_caller_that_fails_keeps_no_other_from_the_same_endpoint() {
    let mut endpoints = paused(300, true);
    endpoints.add(route(1_000, "bob", DEAD));
    let mut now = NOW;
    let mut tries = Vec::new();
    while tries.last() != Some(&"bob".into()) {
        assert!(tries.len() < 3, "{tries:?}");
        now = endpoints.end_pauses(now).unwrap_or(now);
        assert_eq!(endpoints.end_pauses(now), None);
        let probe = all_started(&mut endpoints, now);
        assert_eq!(probe.len(), 1, "one try");
        tries.push(probe[0].owner.clone());
        let health = if tries.last() == Some(&"bob".into()) { Health::Good } else { Health::Bad };
        endpoints.end(&probe[0], health, health == Health::Bad, now);
    }
}

#[test]
fn a_dead_endpoint_takes_the_place_of_a_few() {
    let mut endpoints = Endpoints::new(Options::default());
    for number in 0..50_000 {
        endpoints.add(route(number, "ann", DEAD));
    }
    assert_eq!(endpoints.jobs.len(), MOST_WAITING);
    let (mut endpoints, ann) = (paused(50_000, false), "ann".into());
    assert_eq!(endpoints.jobs.len(), MOST_WAITING_PAUSED);
    assert!(!endpoints.needs_refill(DEAD, &ann), "not while it is paused");
    let until = endpoints.end_pauses(NOW).unwrap();
    assert_eq!(endpoints.end_pauses(until), None);
    let probe = all_started(&mut endpoints, until);
    assert_eq!(probe.len(), 1, "one try");
    assert_eq!(endpoints.end(&probe[0], Health::Good, false, until), Change::Recovered);
    assert!(endpoints.needs_refill(DEAD, &ann));
}

#[test]
fn a_pause_ends_when_an_operator_says_so_and_when_the_clock_is_set_back() {
    let mut endpoints = paused(1, true);
    assert!(endpoints.end_pauses(NOW).is_some_and(|until| until > NOW));
    endpoints.add(route(2, "bob", DEAD));
    endpoints.try_now(route(3, "ann", DEAD), NOW);
    assert_eq!(endpoints.end_pauses(NOW), None);
    let probe = all_started(&mut endpoints, NOW);
    assert_eq!((probe.len(), probe[0].job), (1, WebhookKey(3)), "before what waits");
    endpoints.end(&probe[0], Health::Bad, true, NOW);
    let long_ago = Timestamp(0);
    assert_eq!(endpoints.end_pauses(long_ago), None);
    assert_eq!(all_started(&mut endpoints, long_ago).len(), 1);
}

#[test]
fn a_paused_endpoint_is_forgotten_with_nothing_left_though_the_store_has_more() {
    // Of forty, some are left to the store; then all of them are deleted, so that no endpoint is called any more.
    for (jobs, more_in_store) in [(1, false), (40, true)] {
        let mut endpoints = paused(jobs, false);
        assert_eq!(endpoints.take_removed(), (Vec::new(), false));
        let mut now = NOW;
        for _ in 0..jobs {
            now = endpoints.end_pauses(now).unwrap_or(now);
            endpoints.end_pauses(now);
            for started in all_started(&mut endpoints, now) {
                endpoints.end(&started, Health::Unknown, false, now);
            }
        }
        assert_eq!(endpoints.take_removed(), (vec![DEAD.into()], more_in_store));
        nothing_is_left(&endpoints);
    }
}

#[test]
fn news_of_what_is_under_way_is_not_lost_and_what_moves_waits_at_its_new_endpoint() {
    let mut endpoints = Endpoints::new(Options::default());
    endpoints.add(route(1, "ann", "http://a.test"));
    let started = endpoints.start(NOW).unwrap();
    endpoints.add(route(1, "ann", "http://b.test"));
    assert!(endpoints.start(NOW).is_none(), "one at a time");
    endpoints.end(&started, Health::Good, false, NOW);
    assert_eq!(&*endpoints.start(NOW).unwrap().endpoint, "http://b.test");
    endpoints.add(route(2, "ann", "http://a.test"));
    endpoints.add(route(2, "ann", "http://c.test"));
    let moved = all_started(&mut endpoints, NOW);
    assert_eq!((moved.len(), &*moved[0].endpoint), (1, "http://c.test"));
}

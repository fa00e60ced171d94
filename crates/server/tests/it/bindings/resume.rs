//! Going on after a broken stream: exactly after the last event seen, or from the task as it is.

use serde_json::json;

use super::client::Frame;
use super::dialects::{ALL, Operation, TestDialect};
use super::world::World;

fn id_of(frame: &Frame) -> &str {
    frame.id.as_deref().unwrap()
}

#[tokio::test]
async fn an_ended_task_is_replayed_after_the_cursor() {
    let world = World::start().await;
    for dialect in ALL {
        let frames = dialect.stream(&world, "hello").await.rest().await;
        let id = dialect.event(&frames[0]).1["id"].as_str().unwrap().to_owned();
        for seen in 0..frames.len() {
            let ask = dialect.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", id_of(&frames[seen]));
            assert_eq!(ask.events().await.rest().await, frames[seen + 1..], "{dialect:?} after {seen}");
        }
    }
}

#[tokio::test]
async fn a_running_task_goes_on_after_the_cursor() {
    let world = World::start().await;
    for dialect in ALL {
        let mut first = dialect.stream(&world, "gate").await;
        let task = first.next().await.unwrap();
        let id = dialect.event(&task).1["id"].as_str().unwrap().to_owned();
        let working = first.next().await.unwrap();
        world.gate.add_permits(1);
        let one = first.next().await.unwrap();
        assert_eq!(dialect.story(&[working.clone(), one.clone()]), ["statusUpdate working", "artifactUpdate"]);
        let after = |seen: &Frame| {
            dialect.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", id_of(seen)).events()
        };
        let mut second = after(&working).await;
        assert_eq!(second.next().await.unwrap(), one, "{dialect:?}");
        let third = after(&one).await;
        world.gate.add_permits(2);
        let rest = first.rest().await;
        assert_eq!(dialect.story(&rest), ["artifactUpdate", "artifactUpdate", "statusUpdate completed"]);
        assert_eq!(second.rest().await, rest);
        assert_eq!(third.rest().await, rest);
    }
}

/// The numbers of a stream, after making sure that whatever is left out is said to be.
fn numbers(frames: &[Frame], mut last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for frame in frames {
        let number = id_of(frame).split_once('.').unwrap().1.parse().unwrap();
        let expected = (number > last + 1).then_some(last);
        assert_eq!(frame.after, expected, "{frames:?}");
        numbers.push(number);
        last = number;
    }
    numbers
}

#[tokio::test]
async fn numbers_of_internal_events_are_skipped_on_the_wire() {
    let world = World::start().await;
    for dialect in ALL {
        let asked = dialect.stream(&world, "ask").await.rest().await;
        let id = dialect.event(&asked[0]).1["id"].as_str().unwrap().to_owned();
        let question = asked.last().unwrap().clone();
        assert!(asked[0].after.is_none(), "the task is where the numbers begin: {asked:?}");
        let first = numbers(&asked[1..], 1);
        // The answer is an event that no client is told.
        let params = json!({"message": dialect.answer("Rome", &id)});
        let answered = dialect.ask(&world, "", Operation::Stream(params)).events().await.rest().await;
        let begins = id_of(&answered[0]).split_once('.').unwrap().1.parse().unwrap();
        let rest = numbers(&answered[1..], begins);
        let ask = dialect.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", id_of(&question));
        let replayed = ask.events().await.rest().await;
        assert_eq!(numbers(&replayed, *first.last().unwrap()), rest, "{dialect:?}");
        assert!(replayed[0].after.is_some(), "{dialect:?}: {replayed:?}");
    }
}

#[tokio::test]
async fn an_unknown_cursor_is_answered_with_the_task() {
    let world = World::start().await;
    for dialect in ALL {
        let ended = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
        let id = ended["id"].as_str().unwrap();
        for bad in ["nonsense", "0.0", "999999.1", "1.999999", "1", "-1.2"] {
            let ask = dialect.ask(&world, "", Operation::Subscribe(id)).header("last-event-id", bad);
            let frames = ask.events().await.rest().await;
            assert_eq!(dialect.story(&frames), ["task completed"], "{dialect:?} after {bad:?}");
            assert_eq!(dialect.event(&frames[0]).1, ended);
        }
        let mut running = dialect.stream(&world, "hold").await;
        let id = dialect.event(&running.next().await.unwrap()).1["id"].as_str().unwrap().to_owned();
        assert_eq!(dialect.story(&[running.next().await.unwrap()]), ["statusUpdate working"]);
        let ask = dialect.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", "999999.1");
        let mut resumed = ask.events().await;
        assert_eq!(dialect.story(&[resumed.next().await.unwrap()]), ["task working"], "{dialect:?}");
        dialect.ask(&world, "", Operation::Cancel(&id)).reply().await;
        assert_eq!(dialect.story(&resumed.rest().await), ["statusUpdate canceled"]);
    }
}

#[tokio::test]
async fn an_empty_cursor_is_none() {
    let world = World::start().await;
    let dialect = TestDialect::RestV1;
    let ended = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
    let ask = dialect.ask(&world, "", Operation::Subscribe(ended["id"].as_str().unwrap())).header("last-event-id", "");
    let reply = ask.reply().await;
    assert_eq!(dialect.error(&reply), (400, 0, "UNSUPPORTED_OPERATION".to_owned()));
}

//! Event streams as bytes: what the grammar allows, what peers do besides, and that no cut of the bytes matters.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use switchboard_a2a::sse::{Event, EventReader, ReadError};

use crate::capture;

const LIMIT: usize = 1 << 20;

/// Feeds the pieces and ends the stream; what was read, and why no more.
pub(crate) fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<ReadError>) {
    let mut reader = EventReader::new(limit);
    let mut events = Vec::new();
    let mut drain = |reader: &mut EventReader| {
        loop {
            match reader.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return None,
                Err(error) => return Some(error),
            }
        }
    };
    let mut failure = None;
    for piece in pieces {
        reader.feed(piece);
        failure = drain(&mut reader);
    }
    reader.finish();
    failure = failure.or(drain(&mut reader));
    (events, failure)
}

fn whole(text: &str) -> Vec<Event> {
    let (events, failure) = read(LIMIT, [text.as_bytes()]);
    assert_eq!(failure, None, "{text:?}");
    events
}

fn event(data: &str) -> Event {
    Event { data: data.to_owned(), ..Event::default() }
}

#[test]
fn every_stream_of_the_sdks_reads_the_same_however_it_is_cut() {
    let mut streams = 0;
    for capture in capture::all("client-").into_iter().chain(capture::all("server-")) {
        for exchange in &capture.exchanges {
            if !exchange.response_head.to_lowercase().contains("text/event-stream") {
                continue;
            }
            let body = &exchange.response_body;
            let expected = read(LIMIT, [&body[..]]);
            let json = |event: &Event| serde_json::from_str::<serde_json::Value>(&event.data).unwrap();
            let errors = expected.0.iter().filter(|event| json(event).get("error").is_some()).count();
            assert_eq!(expected.0.len(), exchange.results().len() + errors, "{}", capture.name);
            assert_eq!(expected.1, None, "{}", capture.name);
            assert_eq!(read(LIMIT, body.chunks(1)), expected, "{} byte by byte", capture.name);
            for cut in 0..body.len() {
                assert_eq!(read(LIMIT, [&body[..cut], &body[cut..]]), expected, "{} cut at {cut}", capture.name);
            }
            streams += 1;
        }
    }
    assert!(streams > 70, "only {streams} streams");
}

#[test]
fn fields_are_read_as_the_grammar_says() {
    let full = [Event {
        name: Some("task/status".to_owned()),
        data: "one\n two\n\nthree".to_owned(),
        id: Some("4.17".to_owned()),
        after: Some(12),
        retry: Some(Duration::from_millis(1500)),
    }];
    let lines = [
        "event: task/status",
        "after: 12",
        "id:4.17",
        "data: one",
        "data:  two",
        "data",
        "data:three",
        "retry: 1500",
        "",
    ];
    for end in ["\n", "\r\n", "\r"] {
        let stream = lines.map(|line| format!("{line}{end}")).concat();
        assert_eq!(whole(&stream), full, "{end:?}");
        assert_eq!(whole(&format!("\u{feff}{stream}")), full, "{end:?}");
        assert_eq!(whole(&format!(": hello{end}{end}:{end}{stream}")), full, "{end:?}");
    }
    assert_eq!(whole("data: a\r\n\r\ndata: b\n\ndata: c\r\r"), [event("a"), event("b"), event("c")]);
    assert_eq!(whole("data: a\n\u{feff}data: not at the start\n\n"), [event("a")]);
    assert_eq!(whole("Data: a\ncolour: red\nevent: alone\n\n: only talk\n\n\n\n"), []);
    assert_eq!(whole("data\n\n"), [event("")]);
    assert_eq!(
        whole("event:\nid: a\0b\nafter: all\nretry: soon\nretry: 99999999999999999999\ndata: x\n\n"),
        [event("x")]
    );
    assert_eq!(whole("event: message\ndata: x\n\n")[0].name.as_deref(), Some("message"));
    let come_back = Event { retry: Some(Duration::from_secs(1)), ..Event::default() };
    assert_eq!(whole("retry: 1000\n\n"), [come_back]);
    assert_eq!(whole("data: {}\n\n[DONE]\n\n"), [event("{}"), event("[DONE]")]);
}

#[test]
fn an_event_is_given_at_its_blank_line_and_the_last_one_at_the_end() {
    let mut reader = EventReader::new(LIMIT);
    reader.feed(b"data: a\r\n\r");
    assert_eq!(reader.next_event(), Ok(Some(event("a"))), "the line feed may never come");
    reader.feed(b"\ndata: b");
    assert_eq!(reader.next_event(), Ok(None));
    reader.finish();
    assert_eq!(reader.next_event(), Ok(Some(event("b"))));
    assert_eq!(reader.next_event(), Ok(None));
    assert_eq!(whole("data: a\ndata: b\n"), [event("a\nb")]);
    assert_eq!(whole(": bye"), []);
    assert_eq!(whole(""), []);
}

#[test]
fn an_event_beyond_the_limit_is_an_error_that_names_it() {
    let fits = format!("data:{}\n\n", "x".repeat(15));
    let too_large = Some(ReadError::TooLarge { limit: 20 });
    assert_eq!(read(20, [fits.repeat(3).as_bytes()]), (vec![event(&"x".repeat(15)); 3], None));
    assert_eq!(read(20, [format!("\u{feff}{fits}").as_bytes()]).1, None, "the mark is not the event's");
    assert_eq!(read(20, [format!("{fits}data:{}", "x".repeat(16)).as_bytes()]).0.len(), 1);
    for large in ["data:xxxxxxxxxxxxxxxx", "data: x\ndata: x\ndata: x\n", "unknown: xxxxxxxxxxxxxx"] {
        let (events, failure) = read(20, [large.as_bytes(), b"\n\ndata: y\n\n"]);
        assert_eq!((events.len(), failure), (0, too_large), "{large}");
    }
    let talk = format!(":{}\n", "x".repeat(100)).repeat(10);
    assert_eq!(read(20, [talk.as_bytes(), fits.as_bytes()]).0.len(), 1, "comments are no part of an event");
    let message = ReadError::TooLarge { limit: 20 }.to_string();
    assert!(message.contains("20 bytes"), "{message}");
}

#[test]
fn bytes_that_are_no_text_are_an_error_after_what_came_before() {
    let (events, failure) = read(LIMIT, [b"data: a\n\ndata: \xff\n\ndata: b\n\n".as_slice()]);
    assert_eq!((events, failure), (vec![event("a")], Some(ReadError::NotUtf8)));
    assert_eq!(read(LIMIT, [b"\xef\xbb".as_slice()]).1, Some(ReadError::NotUtf8));
    assert_eq!(read(LIMIT, [b": \xff\ndata: a\n\n".as_slice()]), (vec![event("a")], None));
    let split = read(LIMIT, [b"data: \xe2\x82".as_slice(), b"\xac\n\n"]);
    assert_eq!(split, (vec![event("€")], None));
}

/// Streams made of what matters to the reader, and of anything.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data:",
        b"data: ",
        b"data",
        b"event: ",
        b"id: ",
        b"retry: ",
        b"12",
        b":",
        b" ",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xe2\x82\xac",
        b"\xff",
        b"[DONE]",
        b"{}",
        b"x",
        b"\0",
    ];
    let word = prop_oneof![9 => prop::sample::select(words).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 1..4)];
    vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_changes_the_events(bytes in stream(), cuts in vec(any::<prop::sample::Index>(), 0..6), limit in 8usize..64) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        let expected = read(limit, [&bytes[..]]);
        prop_assert_eq!(read(limit, pieces), expected.clone());
        prop_assert_eq!(read(limit, bytes.chunks(1)), expected);
    }
}

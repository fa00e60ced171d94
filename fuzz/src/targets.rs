//! One target per decoder, and the table of them. A new one is a file, a line here, a corpus folder and a file in
//! `libfuzzer/`; the tests below say which of these is missing.

pub mod address;
pub mod card;
pub mod configuration;
pub mod declared;
pub mod dialogue;
pub mod event;
pub mod fold;
pub mod jsonrpc_envelope;
pub mod jsonrpc_response;
pub mod list;
pub mod message;
pub mod page_token;
pub mod params;
pub mod push;
pub mod rest;
pub mod send_answer;
pub mod sse;
mod stable;
pub mod stream_frame;
pub mod task;
pub mod texts;

/// A function that must not panic, whatever the bytes are.
pub struct Target {
    /// As on the command line, and the name of its corpus folder.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]),
}

/// All of them.
pub const ALL: &[Target] = &[
    Target { name: "address", run: address::target },
    Target { name: "card", run: card::target },
    Target { name: "configuration", run: configuration::target },
    Target { name: "declared", run: declared::target },
    Target { name: "dialogue", run: dialogue::target },
    Target { name: "event", run: event::target },
    Target { name: "fold", run: fold::target },
    Target { name: "jsonrpc_envelope", run: jsonrpc_envelope::target },
    Target { name: "jsonrpc_response", run: jsonrpc_response::target },
    Target { name: "list", run: list::target },
    Target { name: "message", run: message::target },
    Target { name: "page_token", run: page_token::target },
    Target { name: "params", run: params::target },
    Target { name: "push", run: push::target },
    Target { name: "rest", run: rest::target },
    Target { name: "send_answer", run: send_answer::target },
    Target { name: "sse", run: sse::target },
    Target { name: "stream_frame", run: stream_frame::target },
    Target { name: "task", run: task::target },
    Target { name: "texts", run: texts::target },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_target_holds_for_its_own_corpus_and_has_a_libfuzzer_twin() {
        let libfuzzer = Path::new(env!("CARGO_MANIFEST_DIR")).join("libfuzzer");
        let manifest = std::fs::read_to_string(libfuzzer.join("Cargo.toml")).unwrap();
        for target in ALL {
            let inputs = crate::corpus::load(target.name).unwrap();
            inputs.iter().for_each(|input| (target.run)(input));
            let twin = format!("fuzz_targets/{}.rs", target.name);
            assert!(libfuzzer.join(&twin).exists(), "{twin} is missing");
            assert!(manifest.contains(&twin), "{twin} is not in Cargo.toml");
        }
    }

    /// A corpus that no decoder accepts would only ever test the first line of each.
    #[test]
    fn the_corpora_get_past_the_parser() {
        use switchboard_a2a::{Dialect, Operation, RestParts, decode, decode_rest};
        let accepted = |name: &str, accepts: &dyn Fn(&[u8]) -> bool| {
            let inputs = crate::corpus::load(name).unwrap();
            assert!(inputs.iter().filter(|input| accepts(input)).count() * 2 > inputs.len(), "{name}");
        };
        accepted("task", &|input| decode::decode_task(Dialect::V1, input).is_ok());
        accepted("message", &|input| decode::decode_message(Dialect::V1, input).is_ok());
        accepted("stream_frame", &|input| decode::decode_stream(Dialect::V1, input).is_ok());
        accepted("send_answer", &|input| decode::decode_send(Dialect::V1, input).is_ok());
        accepted("card", &|input| switchboard_a2a::card::AgentCard::decode(input).is_ok());
        accepted("event", &|input| switchboard_engine::event::Event::decode(input).is_ok());
        accepted(
            "jsonrpc_response",
            &|input| matches!(switchboard_a2a::jsonrpc::parse_response(input, 64), Ok(response) if response.outcome.is_ok()),
        );
        accepted("sse", &|input| {
            let mut reader = switchboard_a2a::sse::EventReader::new(1 << 20);
            reader.feed(input);
            matches!(reader.next_event(), Ok(Some(event)) if event.decode(Dialect::V1).is_ok())
        });
        accepted("declared", &|input| {
            let text = String::from_utf8_lossy(input);
            switchboard_cli_agents::adapters::Declared::parse(&text, "adapter.yaml").is_ok()
        });
        accepted("params", &|input| {
            let parts = RestParts { body: input, ..RestParts::default() };
            decode_rest(Dialect::V1, Operation::SendMessage, parts).is_ok()
                || decode_rest(Dialect::V1, Operation::GetTask, parts).is_ok()
                || decode_rest(Dialect::V1, Operation::ListTasks, parts).is_ok()
        });
    }
}

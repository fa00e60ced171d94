//! Files of v0.3 REST that are base64 twice, as Python's SDK writes and expects them.

use switchboard_a2a::rest_files::{
    DetectedEncoding, add_layer, frame_from_v1, remove_layer, remove_layer_if_all, remove_required_layer,
};
use switchboard_a2a::{
    Artifact, Dialect, Message, Operation, Part, PartContent, Request, RestParts, Role, SendResponse, StreamResponse,
    Task, TaskArtifactUpdate, TaskState, TaskStatus, decode, decode_rest, encode,
};

use crate::capture;

fn file(content: &[u8]) -> Part {
    Part::new(PartContent::Raw(content.to_vec()))
}

fn message(parts: &[Part]) -> Message {
    Message { parts: parts.to_vec(), message_id: "m".into(), ..Message::text(Role::User, "") }
}

/// What an SDK sent in the captures: the file `hello`.
fn sent_by(sdk: &str, name: &str) -> Message {
    let capture = capture::one(&format!("{sdk}/{name}.http"));
    let parts = RestParts { body: &capture.exchanges[0].request_body, ..RestParts::default() };
    let request = decode_rest(Dialect::V03Rest, Operation::SendMessage, parts).unwrap();
    let Request::Send(request) = request else { panic!("{request:?}") };
    request.message
}

#[test]
fn files_of_pythons_sdk_have_a_second_layer_and_those_of_javascripts_have_not() {
    let hello = [PartContent::Raw(b"hello".to_vec())];
    for (sdk, name, evidence) in [
        ("python-0.3.26", "client-rest-send-file-bytes", DetectedEncoding::Twice),
        ("python-1.3.0", "client-compat03-rest-send-file-bytes", DetectedEncoding::Twice),
        ("js-0.3.14", "client-rest-send-file-bytes", DetectedEncoding::Once),
        ("js-1.3.0", "client-compat03-rest-send-file-bytes", DetectedEncoding::Once),
        ("python-0.3.26", "client-rest-send-text", DetectedEncoding::NoFiles),
    ] {
        let mut message = sent_by(sdk, name);
        assert_eq!(remove_layer_if_all(&mut message), evidence, "{sdk}");
        let files: Vec<_> = message.parts.into_iter().map(|part| part.content).collect();
        assert!(evidence == DetectedEncoding::NoFiles || files == hello, "{sdk}: {files:?}");
    }
}

#[test]
fn a_second_layer_on_an_answer_is_what_pythons_server_writes() {
    let capture = capture::one("python-0.3.26/client-rest-send-file-bytes.http");
    let mut answer = decode::decode_send(Dialect::V03Rest, &capture.exchanges[0].response_body).unwrap();
    let as_it_came = answer.clone();
    remove_layer(&mut answer);
    let SendResponse::Task(task) = &answer else { panic!("{answer:?}") };
    let content: Vec<_> = task.artifacts[0].parts.iter().map(|part| &part.content).collect();
    assert_eq!(content[1], &PartContent::Raw(b"hello".to_vec()));
    assert_eq!(task.history[0].parts[0].content, PartContent::Raw(b"hello".to_vec()));
    add_layer(&mut answer);
    assert_eq!(answer, as_it_came);
}

#[test]
fn one_file_without_a_second_layer_says_that_none_has_one() {
    // Four letters are valid base64 by chance.
    let mut mixed = message(&[file(b"test"), file(b"no base64!")]);
    let before = mixed.clone();
    assert_eq!(remove_layer_if_all(&mut mixed), DetectedEncoding::Once);
    assert_eq!(mixed, before);
    // Neither another alphabet nor missing padding nor stray bits are what an encoder writes.
    for odd in [&b"aGk_Pg=="[..], b"aGk/Pg", b"aGl=", b"aGVs\nbG8="] {
        assert_eq!(remove_layer_if_all(&mut message(&[file(odd)])), DetectedEncoding::Once, "{odd:?}");
    }
    let mut empty = message(&[file(b""), Part::text("aGVsbG8=")]);
    assert_eq!(remove_layer_if_all(&mut empty), DetectedEncoding::NoFiles);
    assert_eq!(empty, message(&[file(b""), Part::text("aGVsbG8=")]));
    let mut all = message(&[file(b""), file(b"aGVsbG8="), file(b"dGVzdA==")]);
    assert_eq!(remove_layer_if_all(&mut all), DetectedEncoding::Twice);
    assert_eq!(all, message(&[file(b""), file(b"hello"), file(b"test")]));
}

#[test]
fn a_layer_that_is_required_is_read_leniently_and_missed_by_its_path() {
    let mut lenient = message(&[file(b"aGk_Pg"), file(b"")]);
    remove_required_layer(&mut lenient).unwrap();
    assert_eq!(lenient, message(&[file(b"hi?>"), file(b"")]));
    for content in [&b"no base64!"[..], &[0xff]] {
        let error = remove_required_layer(&mut message(&[Part::text("x"), file(content)])).unwrap_err();
        assert_eq!(error.violations[0].field, "message.content[1].file.fileWithBytes");
        assert!(error.violations[0].description.contains("v03.restFiles: twice"), "{error:?}");
    }
}

#[test]
fn the_layer_is_on_every_file_wherever_it_stands() {
    let parts = vec![Part::text("text"), file(&[0, 255])];
    let said = || Message { parts: parts.clone(), ..Message::text(Role::Agent, "") };
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state: TaskState::Completed, message: Some(said()), timestamp: None },
        artifacts: vec![Artifact::new(parts.clone())],
        history: vec![said()],
        metadata: None,
    };
    let once = encode::encode_task(Dialect::V03Rest, &task);
    let mut frame = StreamResponse::Task(task.clone());
    add_layer(&mut frame);
    let twice = String::from_utf8(encode::encode_stream(Dialect::V03Rest, &frame, false)).unwrap();
    assert_eq!(twice.matches(r#""fileWithBytes":"QVA4PQ==""#).count(), 3, "{twice}");
    assert_eq!(String::from_utf8(once).unwrap().matches(r#""fileWithBytes":"AP8=""#).count(), 3);
    remove_layer(&mut frame);
    assert_eq!(frame, StreamResponse::Task(task));
}

#[test]
fn a_stored_frame_is_written_anew_only_if_it_has_a_file() {
    let update = |part: Part| {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Artifact::new(vec![part]),
            append: false,
            last_chunk: true,
            metadata: None,
        })
    };
    let line = |part: Part| serde_json::to_vec(&update(part)).unwrap();
    let text = Part::text(r#"{"raw":"AP8="}"#);
    assert_eq!(frame_from_v1(&line(text), false).unwrap(), None);
    let written = frame_from_v1(&line(file(&[0, 255])), false).unwrap().unwrap();
    let mut read = decode::decode_stream(Dialect::V03Rest, &written).unwrap();
    remove_layer(&mut read);
    let StreamResponse::ArtifactUpdate(read) = read else { panic!("{read:?}") };
    assert_eq!(read.artifact.parts, [file(&[0, 255])]);
    assert!(frame_from_v1(br#"{"raw":1}"#, false).is_err());
}

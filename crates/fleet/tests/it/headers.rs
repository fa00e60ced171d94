//! Headers of a configuration that would break the requests they are sent with.

use switchboard_fleet::config::agent_files::read_item;

#[test]
fn headers_that_the_client_sets_itself_are_refused_with_the_reason() {
    let framing = ["Host", "content-length", "Transfer-Encoding", "Expect"];
    let of_one_connection = ["Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection"];
    let item =
        |key: &str, value: &str| format!(r#"{{"name": "far", "url": "https://far.example.com", "{key}": {value}}}"#);
    for header in framing.into_iter().chain(of_one_connection) {
        let refused = read_item("body", &item("headers", &format!(r#"{{"{header}": "1"}}"#))).unwrap_err();
        let wrong = format!("{} is set by the client itself, for each request", header.to_lowercase());
        let [problem] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!((problem.key.as_str(), &problem.wrong), ("headers", &wrong));
        let refused = read_item("body", &item("hmacHeader", &format!("\"{header}\""))).unwrap_err();
        assert_eq!((refused[0].key.as_str(), &refused[0].wrong), ("hmacHeader", &wrong));
    }
    let refused = read_item("body", &item("headers", r#"{"Idempotency-Key": "1"}"#)).unwrap_err();
    assert!(refused[0].wrong.contains("they would count as one and the same"), "{refused:?}");
    assert!(read_item("body", &item("headers", r#"{"X-Host": "1", "X-Team": "a"}"#)).is_ok());
}

//! Builds requests into one buffer that is used again for every request of a connection.

use std::io::Write;

use crate::target::Target;

pub(crate) struct RequestWriter {
    /// Everything up to the content length, which is the same for every request.
    head: Vec<u8>,
    body: Vec<u8>,
    bytes: Vec<u8>,
    /// Makes message ids differ between runs against the same server.
    run: u64,
}

impl RequestWriter {
    pub(crate) fn new(target: &Target) -> Self {
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\na2a-version: 1.0\r\ncontent-length: ",
            target.path, target.address
        );
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self { head: head.into_bytes(), body: Vec::new(), bytes: Vec::new(), run: since_epoch.as_millis() as u64 }
    }

    /// `SendMessage` or `SendStreamingMessage` with one text part.
    pub(crate) fn message(&mut self, method: &str, id: u64, text: &str, webhook: Option<&str>) -> &[u8] {
        let configuration = match webhook {
            Some(url) => format!(r#","configuration":{{"taskPushNotificationConfig":{{"url":"{url}"}}}}"#),
            None => String::new(),
        };
        self.configured_message(method, id, text, &configuration)
    }

    /// `SendMessage` that is answered as soon as its task has begun.
    pub(crate) fn immediate_message(&mut self, id: u64, text: &str) -> &[u8] {
        self.configured_message("SendMessage", id, text, r#","configuration":{"returnImmediately":true}"#)
    }

    fn configured_message(&mut self, method: &str, id: u64, text: &str, configuration: &str) -> &[u8] {
        let run = self.run;
        self.finish(format_args!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"message":{{"messageId":"{run:x}-{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}{configuration}}}}}"#
        ))
    }

    /// A method that takes a task's id.
    pub(crate) fn task(&mut self, method: &str, id: u64, task: &str) -> &[u8] {
        self.finish(format_args!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"id":"{task}"}}}}"#))
    }

    pub(crate) fn list(&mut self, id: u64, page_size: usize, since: Option<&str>) -> &[u8] {
        let filter = since.map_or(String::new(), |since| format!(r#","statusTimestampAfter":"{since}""#));
        self.finish(format_args!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks","params":{{"pageSize":{page_size}{filter}}}}}"#
        ))
    }

    fn finish(&mut self, body: std::fmt::Arguments<'_>) -> &[u8] {
        self.body.clear();
        self.bytes.clear();
        // Writing to a vector cannot fail.
        let _ = self.body.write_fmt(body);
        self.bytes.extend_from_slice(&self.head);
        let _ = write!(self.bytes, "{}\r\n\r\n", self.body.len());
        self.bytes.extend_from_slice(&self.body);
        &self.bytes
    }
}

//! Words that matter to some decoder: a random byte will hardly ever spell them.

/// Put in anywhere.
pub const WORDS: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0000", "\\ud800", "\\n", "\n", "\r\n", " ", "\u{feff}", "\u{2028}",
    "null", "true", "false", "0", "-0", "-1", "1e400", "0.10", "18446744073709551616", "-9223372036854775809",
    "9223372036854775807", "4294967296", "253402300800000", "{}", "[]", "\"\"", "{\"\":null}", "[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":{\"a\":", "\"jsonrpc\":\"2.0\",", "\"id\":1,", "\"method\":\"SendMessage\",",
    "\"method\":\"message/send\",", "\"params\":{},", "\"kind\":\"text\",", "\"kind\":\"file\",", "\"kind\":\"data\",",
    "\"kind\":\"task\",", "\"kind\":\"message\",", "\"type\":\"text\",", "\"$case\":\"text\",", "\"text\":\"t\",",
    "\"raw\":\"AA==\",", "\"url\":\"u\",", "\"data\":null,", "\"data\":{\"data\":{\"data\":1}},", "\"file\":{},",
    "\"fileWithBytes\":\"AA\",", "\"content\":[],", "\"parts\":[],", "\"role\":\"user\",", "\"role\":2,",
    "\"messageId\":\"m\",", "\"message_id\":\"m\",", "\"taskId\":\"t\",", "\"task_id\":\"t\",", "\"contextId\":\"c\",",
    "\"context_id\":\"c\",", "\"metadata\":{},", "\"metadata\":null,", "\"status\":{\"state\":3},",
    "\"state\":\"TASK_STATE_CANCELED\",", "\"state\":\"input-required\",", "\"timestamp\":\"2026-01-02T03:04:05Z\",",
    "\"timestamp\":9223372036854775807,", "\"artifacts\":[],", "\"history\":[],", "\"append\":true,",
    "\"lastChunk\":true,", "\"final\":true,", "\"statusUpdate\":", "\"artifactUpdate\":", "\"task\":", "\"message\":",
    "\"configuration\":{},", "\"blocking\":false,", "\"historyLength\":0,", "\"historyLength\":\"-1\",",
    "\"pageSize\":101,", "\"pageToken\":\"\",", "\"name\":\"tasks/t/pushNotificationConfigs/c\",", "\"parent\":\"tasks/t\",",
    "\"pushNotificationConfig\":{},", "\"authentication\":{\"schemes\":[\"Basic\"]},", "\"securitySchemes\":{},",
    "\"security\":[{}],", "\"supportedInterfaces\":[],", "\"received\":", "\"taken\":1,", "\"unread\":[],",
    "server:\n", "store:\n", "agents:\n", "  - name: a\n", "${HOME}", "${A:-${B}}", "&a ", "*a", "<<: *a\n", "---\n", "!!binary ",
    "|\n", "? ", "10GiB", "250ms", "7d", "none", "\t", "-", ".", "..", "1.1", "18446744073709551615.1",
];

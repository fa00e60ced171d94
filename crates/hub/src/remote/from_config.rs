//! How the keys of an agent with `url` in `agents.yaml` become settings here.

use switchboard_fleet::config::remote_serving::{self, CallbackBase, RemoteReplies, RemoteServing};
use switchboard_host::config::time_span::TimeSpan;

use super::settings::{RemoteSettings, RepliesAs, Resend};

impl From<&RemoteServing> for RemoteSettings {
    fn from(serving: &RemoteServing) -> Self {
        Self {
            poll: serving.poll.duration(),
            connect_within: serving.connect_within.duration(),
            lost_after: serving.lost_after.duration(),
            deadline: serving.deadline.0.map(TimeSpan::duration),
            resend: match serving.resend {
                remote_serving::Resend::Safe => Resend::Safe,
                remote_serving::Resend::Always => Resend::Always,
            },
            replies: match serving.replies {
                RemoteReplies::Task => RepliesAs::Task,
                RemoteReplies::Either => RepliesAs::Either,
            },
        }
    }
}

/// The address that an agent is told to send push notifications to: the public one unless it says otherwise. It is never
/// guessed; without one the agent is polled.
pub fn callback_base(serving: &RemoteServing, public: Option<&str>, internal: Option<&str>) -> Option<String> {
    let base = match &serving.callback_base {
        None | Some(CallbackBase::Public) => public,
        Some(CallbackBase::Internal) => internal,
        Some(CallbackBase::None) => None,
        Some(CallbackBase::Url(url)) => Some(url.as_str()),
    };
    base.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use switchboard_fleet::config::agent_files::read_item;
    use switchboard_fleet::config::agents::Entry;

    use super::*;

    /// What an agent with this key says.
    fn callback_base_of(key: &str) -> Option<CallbackBase> {
        let item = format!(r#"{{"name": "far", "url": "http://127.0.0.1", {key}}}"#);
        let Ok(Entry::Remote(agent)) = read_item("test", &item) else { panic!("{item} is a remote agent") };
        let said = agent.serving.callback_base;
        assert!(said.is_some(), "{key} says something");
        said
    }

    #[test]
    fn the_defaults_are_those_of_the_configuration_and_no_address_is_guessed() {
        let mut serving = RemoteServing::default();
        assert_eq!(RemoteSettings::from(&serving), RemoteSettings::default());
        let (public, internal) = (Some("https://public.test"), Some("http://internal.test"));
        assert_eq!(callback_base(&serving, None, internal), None);
        for (wanted, expected) in [
            (None, public),
            (Some(CallbackBase::Public), public),
            (Some(CallbackBase::Internal), internal),
            (Some(CallbackBase::None), None),
            (callback_base_of(r#""callbackBase": "https://here.test/hub""#), Some("https://here.test/hub")),
            // As some fleets write it.
            (callback_base_of(r#""external": true"#), public),
        ] {
            serving.callback_base = wanted;
            assert_eq!(callback_base(&serving, public, internal).as_deref(), expected);
        }
    }
}

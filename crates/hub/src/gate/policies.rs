//! How far people take part in each skill of an agent: what its policy says, else the stricter of what its card says and the
//! minimum for the radius.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::blast::Radius;
use switchboard_a2a::extension::hitl_mode::Mode;
use switchboard_engine::{ExpiryAction, ReviewedSkills, Reviewer};
use switchboard_fleet::config::policy::{Policy, PolicyReviewer, SkillPolicy};
use switchboard_host::config::inbox::Inbox;
use switchboard_host::config::review_mode::OnTimeout;

/// How far people take part in a skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SkillReview {
    pub(crate) mode: Mode,
    pub(crate) radius: Option<Radius>,
    pub(crate) reviewer: Reviewer,
    pub(crate) veto_ttl: Duration,
    pub(crate) ttl: Duration,
    pub(crate) on_timeout: OnTimeout,
}

/// What a card asks for one of its skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CardSkill {
    pub(crate) mode: Mode,
    pub(crate) radius: Option<Radius>,
    pub(crate) veto_ttl: Option<Duration>,
}

/// The same for all skills of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReviewPolicies {
    skills: BTreeMap<String, SkillReview>,
    /// For turns that name no skill, or one that is none of the agent's: it may do any of them.
    strictest: SkillReview,
}

/// What a turn has to pass.
pub(super) struct Wanted<'a> {
    /// The skill that is asked about; nothing if none is named.
    pub(super) skill: Option<String>,
    /// Every skill that is named.
    pub(super) named: BTreeSet<String>,
    pub(super) review: &'a SkillReview,
    /// All that has to be approved is.
    pub(super) is_approved: bool,
}

impl SkillReview {
    /// Whether its turns wait before they begin.
    pub(crate) fn is_held(&self) -> bool {
        self.mode >= Mode::Veto
    }

    /// How long a question waits, and what happens then.
    pub(super) fn expiry(&self) -> (Duration, ExpiryAction) {
        match (self.mode, self.on_timeout) {
            (Mode::Veto, _) => (self.veto_ttl, ExpiryAction::Approve),
            (_, OnTimeout::Approve) => (self.ttl, ExpiryAction::Approve),
            (_, OnTimeout::Reject) => (self.ttl, ExpiryAction::Reject),
            (_, OnTimeout::Escalate) => (self.ttl, ExpiryAction::Escalate),
        }
    }

    fn of(said: &SkillPolicy, of_agent: &SkillPolicy, card: Option<&CardSkill>, inbox: &Inbox) -> Self {
        let radius = said.radius.or(of_agent.radius).map(|radius| radius.0);
        let radius = radius.or(card.and_then(|card| card.radius));
        let least = radius.map_or(Mode::Autonomous, |radius| inbox.minimum.of(radius));
        let asked = card.map_or(Mode::Autonomous, |card| card.mode);
        let mode = said.mode.or(of_agent.mode).map_or(least.max(asked), |mode| mode.0);
        let reviewer = match said.reviewer.or(of_agent.reviewer) {
            Some(PolicyReviewer::Caller) => Reviewer::Caller,
            Some(PolicyReviewer::Operator) | None => Reviewer::Operator,
        };
        let own_veto_ttl = said.veto_ttl.or(of_agent.veto_ttl).map(|time| time.duration());
        let default_veto_ttl = card.and_then(|card| card.veto_ttl).unwrap_or_default().max(inbox.veto_ttl.duration());
        Self {
            mode,
            radius,
            reviewer,
            veto_ttl: own_veto_ttl.unwrap_or(default_veto_ttl),
            ttl: said.ttl.or(of_agent.ttl).unwrap_or(inbox.gate_ttl).duration(),
            on_timeout: said.on_timeout.or(of_agent.on_timeout).unwrap_or(inbox.on_timeout),
        }
    }

    /// The strictest of all of these in everything that they say.
    fn strictest(self, all: &BTreeMap<String, Self>) -> Self {
        let mode = all.values().map(|review| review.mode).fold(self.mode, Mode::max);
        let is_as_strict = |review: &&Self| review.mode >= mode.min(Mode::Gated);
        let of_agent = Some(&self).filter(is_as_strict);
        let joined = of_agent.into_iter().chain(all.values().filter(is_as_strict)).cloned().reduce(|one, other| Self {
            mode,
            radius: one.radius.max(other.radius),
            reviewer: match (one.reviewer, other.reviewer) {
                (Reviewer::Caller, Reviewer::Caller) => Reviewer::Caller,
                _ => Reviewer::Operator,
            },
            veto_ttl: one.veto_ttl.max(other.veto_ttl),
            ttl: one.ttl.max(other.ttl),
            on_timeout: stricter(one.on_timeout, other.on_timeout),
        });
        joined.unwrap_or(self)
    }

    /// As the roster shows it.
    fn view(&self) -> Value {
        let mut view = json!({ "mode": self.mode.name(), "radius": self.radius.map(Radius::name) });
        if self.is_held() {
            view["reviewer"] = reviewer_name(self.reviewer).into();
            let (ttl, _) = self.expiry();
            view["ttlMs"] = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).into();
        }
        if self.mode >= Mode::Gated {
            view["onTimeout"] = serde_json::to_value(self.on_timeout).unwrap_or_default();
        }
        view
    }
}

impl ReviewPolicies {
    /// What a policy says of these skills, which the agent has, and what its card asks for.
    pub(crate) fn new<'a>(
        policy: &'a Policy,
        skills: impl Iterator<Item = &'a str>,
        card: &'a BTreeMap<String, CardSkill>,
        inbox: &Inbox,
    ) -> Self {
        let nothing = SkillPolicy::default();
        let names: BTreeSet<&str> =
            skills.chain(policy.skills.keys().map(String::as_str)).chain(card.keys().map(String::as_str)).collect();
        let of = |name: &str| {
            let said = policy.skills.get(name).unwrap_or(&nothing);
            SkillReview::of(said, &policy.agent, card.get(name), inbox)
        };
        let skills: BTreeMap<String, SkillReview> = names.into_iter().map(|name| (name.to_owned(), of(name))).collect();
        let strictest = SkillReview::of(&nothing, &policy.agent, None, inbox).strictest(&skills);
        Self { skills, strictest }
    }

    /// What messages to one of its tasks may not ask for by themselves.
    pub(super) fn reviewed_skills(&self) -> ReviewedSkills {
        if !self.strictest.is_held() {
            return ReviewedSkills::None;
        }
        let open = self.skills.iter().filter(|(_, review)| !review.is_held());
        ReviewedSkills::AllBut(open.map(|(name, _)| name.clone()).collect())
    }

    /// The strictest mode of all skills.
    pub(crate) fn strictest_mode(&self) -> Mode {
        self.strictest.mode
    }

    /// The mode of a skill.
    pub(crate) fn mode_of(&self, skill: &str) -> Mode {
        self.skills.get(skill).unwrap_or(&self.strictest).mode
    }

    /// What a turn has to pass that names these skills, in a task for which these were approved.
    pub(super) fn wanted(&self, named: BTreeSet<String>, approved: &BTreeSet<String>) -> Wanted<'_> {
        let of = |skill: &String| self.skills.get(skill).unwrap_or(&self.strictest);
        let strictness = |skill: &&String| (of(skill).mode, of(skill).reviewer == Reviewer::Operator);
        let missing = named.iter().filter(|skill| !(of(skill).is_held() && approved.contains(*skill)));
        let missing = missing.max_by_key(strictness);
        let skill = missing.or_else(|| named.iter().max_by_key(strictness)).cloned();
        let is_approved = missing.is_none() && !named.is_empty();
        let review = skill.as_ref().map_or(&self.strictest, of);
        Wanted { skill, named, review, is_approved }
    }

    /// As the roster shows them.
    pub(crate) fn view(&self) -> Value {
        let mut view = self.strictest.view();
        let skills: serde_json::Map<_, _> =
            self.skills.iter().map(|(name, review)| (name.clone(), review.view())).collect();
        // Most agents have one policy for all, and some have a hundred skills.
        let is_one = skills.values().all(|skill| *skill == view);
        view["skills"] = if is_one { json!({}) } else { skills.into() };
        view
    }
}

fn stricter(one: OnTimeout, other: OnTimeout) -> OnTimeout {
    let strictness = |action: &OnTimeout| match action {
        OnTimeout::Approve => 0,
        OnTimeout::Escalate => 1,
        OnTimeout::Reject => 2,
    };
    if strictness(&one) >= strictness(&other) { one } else { other }
}

pub(super) fn reviewer_name(reviewer: Reviewer) -> &'static str {
    match reviewer {
        Reviewer::Caller => "caller",
        Reviewer::Operator => "operator",
    }
}

//! The rules of routing, their order, and what is refused with which names.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role};
use switchboard_engine::{Address, AgentName, AgentScope, Caller, CallerRole, Error, RoutingHints, Scopes, Skill};
use switchboard_hub::routing::{
    AgentView, Availability, Choice, Decision, Experiment, KeywordMatch, KeywordRule, RosterView, RoutingQuery,
    RoutingRules, Track, choose,
};
use switchboard_hub::tasks::fanout_plan::FanoutPlan;

fn agent(name: &str, skills: &[&str]) -> AgentView {
    let skills = skills.iter().map(|skill| (*skill).to_owned()).collect();
    let keywords = Vec::new();
    AgentView { name: name.into(), skills, keywords, track: Track::default(), availability: Availability::Up }
}

/// In this order, so that the order of configuration and that of the names differ.
fn view() -> RosterView {
    let agents = vec![agent("zoe", &["draw", "sing"]), agent("ann", &["sing"]), agent("bob", &["draw", "cook"])];
    RosterView { agents, experiments: Vec::new() }
}

fn rules() -> RoutingRules {
    RoutingRules { max_targets: 3, ..RoutingRules::default() }
}

fn message(text: &str, hints: &Value) -> Message {
    Message { metadata: Some(serde_json::from_value(hints.clone()).unwrap()), ..Message::text(Role::User, text) }
}

fn limited(names: &[&str]) -> Caller {
    let agents = AgentScope::Only(names.iter().map(|name| (*name).into()).collect());
    Caller { id: "ann".into(), scopes: Scopes { agents, role: CallerRole::None } }
}

/// A message to route, and what is routed between.
struct Ask<'a> {
    view: &'a RosterView,
    rules: &'a RoutingRules,
    caller: Caller,
    message: Message,
    last: Option<(&'static str, Option<FanoutPlan>)>,
}

impl Ask<'_> {
    fn choose(&self) -> Result<Choice, Error> {
        let hints = RoutingHints::read(&Address::Root, &self.message, None)?;
        let last_agent = self.last.as_ref().map(|(name, _)| AgentName::from(*name));
        let query = RoutingQuery {
            caller: &self.caller,
            message: &self.message,
            hints: &hints,
            last_agent: last_agent.as_ref(),
            last_fanout: self.last.as_ref().and_then(|(_, plan)| plan.as_ref()),
        };
        choose(self.view, self.rules, &query)
    }

    fn decision(&self) -> Decision {
        match self.choose() {
            Ok(Choice::Decided(decision)) => decision,
            other => panic!("no decision: {other:?}"),
        }
    }

    /// The decision in few words, or the error.
    fn told(&self) -> String {
        match self.choose() {
            Ok(Choice::Default) => "default".to_owned(),
            Ok(Choice::Decided(decision)) => words(&decision),
            Ok(Choice::DefaultInPlaceOf(decision)) => format!("default in place of {}", words(&decision)),
            Err(error) => error.to_string(),
        }
    }
}

fn json_of(decision: &Decision) -> Value {
    serde_json::from_str(decision.to_json().unwrap().as_str()).unwrap()
}

fn words(decision: &Decision) -> String {
    let told = json_of(decision);
    let text = |member: &str| told[member].as_str().unwrap_or("-").to_owned();
    let targets: Vec<&str> = told["targets"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let one = format!("{} by {} {}", text("agent"), text("by"), text("mode"));
    match targets.is_empty() {
        true => one,
        false => format!("{one} {} of {}", text("policy"), targets.join(",")),
    }
}

fn ask<'a>(view: &'a RosterView, rules: &'a RoutingRules, text: &str, hints: Value) -> Ask<'a> {
    Ask { view, rules, caller: Caller::local(), message: message(text, &hints), last: None }
}

#[test]
fn targets_must_exist_be_allowed_and_have_the_skill() {
    let (view, rules) = (view(), rules());
    let force = "; set `force` to send it there all the same";
    for (hints, expected) in [
        (json!({"targets": "zoe"}), "zoe by target single".to_owned()),
        (json!({"targets": ["ann"], "skill": "sing"}), "ann by target single".to_owned()),
        (json!({"targets": "zed"}), r#"no agent "zed" here; there is: zoe, ann, bob"#.to_owned()),
        (json!({"targets": "bbo"}), r#"no agent "bbo" here; there is: bob, zoe, ann"#.to_owned()),
        (json!({"targets": "~fanout"}), r#"no agent "~fanout" here; there is: zoe, ann, bob"#.to_owned()),
        (
            json!({"targets": "bob", "skill": "cok"}),
            format!(r#"agent bob does not offer the skill "cok"; there is: cook, draw{force}"#),
        ),
        (json!({"targets": "bob", "skill": "cok", "force": true}), "bob by target single".to_owned()),
        (json!({"targets": ["zoe", "zoe", "bob"]}), "~fanout by target fanout all of zoe,bob".to_owned()),
        (
            json!({"targets": ["bob", "zoe"], "fanout": "failover"}),
            "~fanout by target fanout failover of bob,zoe".to_owned(),
        ),
        (json!({"targets": ["ann"], "fanout": "first"}), "~fanout by target fanout first of ann".to_owned()),
        (json!({"targets": ["zoe", "zed"]}), r#"no agent "zed" here; there is: zoe, ann, bob"#.to_owned()),
        (
            json!({"targets": ["zoe", "ann"], "skill": "draw"}),
            format!(r#"agent ann does not offer the skill "draw"; there is: sing{force}"#),
        ),
        (json!({"targets": "all"}), "~fanout by target fanout all of zoe,ann,bob".to_owned()),
        (json!({"targets": ["ann", "all"]}), "~fanout by target fanout all of zoe,ann,bob".to_owned()),
        (json!({"targets": ["all", "bbo"]}), r#"no agent "bbo" here; there is: bob, zoe, ann"#.to_owned()),
        (
            json!({"targets": ["all", "ann"], "skill": "draw"}),
            format!(r#"agent ann does not offer the skill "draw"; there is: sing{force}"#),
        ),
        (
            json!({"targets": ["all"], "skill": "draw", "fanout": "quorum:2"}),
            "~fanout by target fanout quorum:2 of zoe,bob".to_owned(),
        ),
        (json!({"fanout": "quorum", "skill": "sing"}), "~fanout by target fanout quorum of zoe,ann".to_owned()),
        (
            json!({"targets": "all", "skill": "snig"}),
            r#"no agent here has the skill "snig"; there is: sing, draw, cook"#.to_owned(),
        ),
        (
            json!({"targets": "all", "fanout": "quorum:4"}),
            "metadata.fanout: 4 of 3 targets cannot complete: ask for fewer".to_owned(),
        ),
        (
            json!({"targets": "all", "fanout": "most"}),
            r#"metadata.fanout: "most" is not a fan-out policy: all, first, quorum, quorum:N (N at least 1) and failover are"#
                .to_owned(),
        ),
    ] {
        assert_eq!(ask(&view, &rules, "hi", hints.clone()).told(), expected, "{hints}");
    }
    let few = RoutingRules { max_targets: 2, ..rules };
    let refused = ask(&view, &few, "hi", json!({"targets": "all"})).told();
    assert_eq!(refused, "metadata.targets: 3 agents are more than hub.fanout.max (2)");

    let only = |hints: Value| Ask { caller: limited(&["ann", "bob"]), ..ask(&view, &few, "hi", hints) };
    assert!(matches!(only(json!({"targets": "zoe"})).choose(), Err(Error::Forbidden(name)) if name == "zoe"));
    assert!(matches!(only(json!({"targets": ["ann", "zoe"]})).choose(), Err(Error::Forbidden(_))));
    assert!(matches!(only(json!({"targets": ["all", "zoe"]})).choose(), Err(Error::Forbidden(name)) if name == "zoe"));
    assert_eq!(only(json!({"targets": "all"})).told(), "~fanout by target fanout all of ann,bob");
    assert_eq!(only(json!({"targets": "zed"})).told(), r#"no agent "zed" here; there is: ann, bob"#);
}

#[test]
fn a_conversation_stays_with_its_agent_while_that_is_there_and_has_the_skill() {
    let (view, rules) = (view(), rules());
    let plan = |targets: &[&str]| FanoutPlan {
        targets: targets.iter().map(|name| (*name).into()).collect(),
        policy: "first".parse().unwrap(),
    };
    for (last, hints, expected) in [
        (("bob", None), json!({}), "bob by context single"),
        (("bob", None), json!({"skill": "cook"}), "bob by context single"),
        (("ann", None), json!({"skill": "cook"}), "bob by skill single"),
        (("gone", None), json!({}), "default"),
        (("ann", None), json!({"targets": "zoe"}), "zoe by target single"),
        (("~fanout", Some(plan(&["bob", "zoe", "gone"]))), json!({}), "~fanout by context fanout first of bob,zoe"),
        (("~fanout", Some(plan(&["bob", "ann"]))), json!({"skill": "cook"}), "~fanout by context fanout first of bob"),
        (("~fanout", Some(plan(&["gone"]))), json!({}), "default"),
        (("~fanout", None), json!({}), "default"),
    ] {
        let asked = Ask { last: Some(last), ..ask(&view, &rules, "hi", hints.clone()) };
        assert_eq!(asked.told(), expected, "{hints}");
    }
    let forbidden = Ask { caller: limited(&["ann"]), last: Some(("bob", None)), ..ask(&view, &rules, "hi", json!({})) };
    assert_eq!(forbidden.told(), "default");
}

/// The agents that a hundred conversations get.
fn served(view: &RosterView, skill: &str) -> BTreeSet<String> {
    let rules = rules();
    let serve = |conversation: usize| {
        let context = Some(format!("conversation-{conversation}").into());
        let mut asked = ask(view, &rules, "hi", json!({ "skill": skill }));
        asked.message.context_id = context.clone();
        let first = asked.told();
        asked.message = Message { context_id: context, ..message("again", &json!({ "skill": skill })) };
        assert_eq!(asked.told(), first, "the conversation decides, not the message");
        first
    };
    (0..100).map(serve).collect()
}

#[test]
fn a_skill_picks_by_weight_and_agents_that_fail_or_cannot_be_reached_are_left_out() {
    let mut view = view();
    let (bob, zoe) = ("bob by skill single".to_owned(), "zoe by skill single".to_owned());
    assert_eq!(served(&view, "draw"), BTreeSet::from([bob.clone(), zoe.clone()]));
    let failing = Track { outcomes: 5, success_rate: 0.0, cost_per_success: 0.0 };
    view.agents[0].track = failing;
    assert_eq!(served(&view, "draw"), BTreeSet::from([bob.clone()]));
    view.agents[0].track.outcomes = 4;
    assert_eq!(served(&view, "draw").len(), 2, "too few outcomes to judge by");
    view.agents[0].availability = Availability::Down;
    assert_eq!(served(&view, "draw"), BTreeSet::from([bob]));
    view.agents[2].track = failing;
    assert_eq!(served(&view, "draw"), BTreeSet::from([zoe]), "with no weight at all it is the first");

    let weight = |track, availability| AgentView { track, availability, ..agent("a", &[]) }.weight();
    let track = Track { outcomes: 10, success_rate: 0.8, cost_per_success: 0.6 };
    assert!((weight(track, Availability::Up) - 0.5).abs() < 1e-9);
    assert!((weight(track, Availability::Probing) - 0.05).abs() < 1e-9);
    assert!((weight(Track::default(), Availability::Probing) - 0.1).abs() < 1e-9);
}

#[test]
fn an_experiment_shares_a_skill_between_two_agents_until_one_has_won() {
    let mut view = view();
    view.agents.push(agent("eve", &["draw"]));
    let experiment =
        Experiment { skill: "draw".to_owned(), control: "zoe".into(), challenger: "eve".into(), winner: None };
    view.experiments = vec![experiment.clone()];
    let (zoe, eve) = ("zoe by experiment single".to_owned(), "eve by experiment single".to_owned());
    assert_eq!(served(&view, "draw"), BTreeSet::from([zoe.clone(), eve.clone()]));
    assert!(served(&view, "sing").iter().all(|told| told.contains("by skill")));
    view.experiments = vec![Experiment { winner: Some("eve".into()), ..experiment.clone() }];
    assert_eq!(served(&view, "draw"), BTreeSet::from([eve]));
    view.experiments = vec![experiment];
    view.agents[3].availability = Availability::Down;
    assert_eq!(served(&view, "draw"), BTreeSet::from([zoe]), "one that is down gets nothing");
    view.agents[0].availability = Availability::Down;
    assert_eq!(served(&view, "draw"), BTreeSet::from(["bob by skill single".to_owned()]));
}

fn keyword(text: &str, by: KeywordMatch, agent: Option<&str>, skill: Option<&str>) -> KeywordRule {
    KeywordRule { text: text.to_owned(), by, agent: agent.map(Into::into), skill: skill.map(str::to_owned) }
}

#[test]
fn an_unknown_skill_goes_to_the_default_agent_or_is_refused() {
    let view = view();
    let keywords = vec![keyword("hi", KeywordMatch::Word, Some("ann"), None)];
    let with_keyword = RoutingRules { keywords, ..rules() };
    assert_eq!(ask(&view, &with_keyword, "hi", json!({"skill": "fly"})).told(), "default", "it asked for a skill");
    let refusing = RoutingRules { refuse_unknown_skills: true, ..with_keyword };
    let refused = ask(&view, &refusing, "hi", json!({"skillHint": "drwa"})).told();
    assert_eq!(refused, r#"no agent here has the skill "drwa"; there is: draw, sing, cook"#);
    let limited = Ask { caller: limited(&["ann"]), ..ask(&view, &refusing, "hi", json!({"skill": "draw"})) };
    assert_eq!(limited.told(), r#"no agent here has the skill "draw"; there is: sing"#);
}

#[test]
fn the_first_keyword_that_matches_picks_an_agent_or_a_skill() {
    let view = view();
    let keywords = vec![
        keyword("ship it", KeywordMatch::Word, Some("bob"), None),
        keyword("Art", KeywordMatch::Word, Some("zoe"), Some("draw")),
        keyword("sing", KeywordMatch::Substring, None, Some("sing")),
        keyword("straße", KeywordMatch::Word, Some("gone"), None),
        keyword("straße", KeywordMatch::Word, Some("ann"), None),
        keyword("", KeywordMatch::Substring, Some("zoe"), None),
    ];
    let rules = RoutingRules { keywords, ..rules() };
    for (text, expected) in [
        ("Please SHIP IT now", "bob by keyword single"),
        ("ship it: art", "bob by keyword single"),
        ("reship it, ship items", "default"),
        ("modern art.", "zoe by keyword single"),
        ("start the party", "default"),
        ("Auf der Straße", "ann by keyword single"),
        ("nothing", "default"),
    ] {
        assert_eq!(ask(&view, &rules, text, json!({})).told(), expected, "{text}");
    }
    let found = ask(&view, &rules, "it is missing", json!({})).told();
    assert!(["zoe by keyword single", "ann by keyword single"].contains(&found.as_str()), "{found}");
    let limited = Ask { caller: limited(&["ann"]), ..ask(&view, &rules, "ship it and sing", json!({})) };
    assert_eq!(limited.told(), "ann by keyword single", "a rule for an agent that the caller may not call is skipped");
}

#[test]
fn words_of_skills_pick_them_after_the_rules_of_the_operator() {
    let mut view = view();
    let mut cook = Skill::new("cook", "Cook", "Cooks");
    cook.keywords = vec!["dinner".to_owned(), "ship it".to_owned()];
    view.agents[2].keywords = KeywordRule::of_skill(&cook).collect();
    let rules = RoutingRules { keywords: vec![keyword("ship it", KeywordMatch::Word, Some("ann"), None)], ..rules() };
    for (text, expected) in
        [("What is for DINNER?", "bob by keyword single"), ("dinners", "default"), ("ship it", "ann by keyword single")]
    {
        assert_eq!(ask(&view, &rules, text, json!({})).told(), expected, "{text}");
    }
    let decision = ask(&view, &rules, "dinner", json!({})).decision();
    assert_eq!(decision.skill.as_deref(), Some("cook"), "the agent hears which skill it was");
    let limited = Ask { caller: limited(&["ann"]), ..ask(&view, &rules, "dinner", json!({})) };
    assert_eq!(limited.told(), "default", "words of an agent that the caller may not call");
}

#[test]
fn the_decision_says_what_it_was_made_by() {
    let (view, rules) = (view(), rules());
    let told = json_of(&ask(&view, &rules, "hi", json!({"skill": "cook"})).decision());
    assert_eq!(told, json!({"agent": "bob", "by": "skill", "skill": "cook", "mode": "single", "candidates": ["bob"]}));
    let told = json_of(&ask(&view, &rules, "hi", json!({"skill": "draw"})).decision());
    assert_eq!((&told["candidates"], &told["weight"]), (&json!(["zoe", "bob"]), &json!(1.0)));
    let decision = ask(&view, &rules, "hi", json!({"targets": ["ann", "bob"]})).decision();
    let stored = decision.to_json().unwrap();
    assert_eq!(stored.read::<FanoutPlan>().unwrap(), decision.fanout.unwrap(), "the agent of the fan-out reads it");
}

/// The view in which these agents are down.
fn view_without(down: &[&str]) -> RosterView {
    let mut view = view();
    for agent in view.agents.iter_mut().filter(|agent| down.contains(&agent.name.as_str())) {
        agent.availability = Availability::Down;
    }
    view
}

#[test]
fn a_keyword_for_an_agent_that_is_down_is_passed_by_if_another_one_can_serve() {
    let keywords = vec![
        keyword("help", KeywordMatch::Word, Some("zoe"), None),
        keyword("help", KeywordMatch::Word, Some("bob"), None),
        keyword("cook", KeywordMatch::Word, None, Some("cook")),
    ];
    let rules = RoutingRules { keywords, ..rules() };
    let (view, both) = (view_without(&["zoe"]), view_without(&["zoe", "bob"]));
    let told = json_of(&ask(&view, &rules, "help", json!({})).decision());
    assert_eq!((&told["agent"], &told["by"], &told["leftOut"]), (&json!("bob"), &json!("keyword"), &json!(["zoe"])));
    assert_eq!(ask(&both, &rules, "help", json!({})).told(), "default in place of zoe by keyword single");
    assert_eq!(ask(&both, &rules, "cook", json!({})).told(), "default in place of bob by keyword single");
    assert_eq!(ask(&both, &rules, "hi", json!({})).told(), "default");
}

#[test]
fn all_leaves_out_who_is_down_and_failover_tries_them_last_but_who_is_named_is_asked() {
    let rules = rules();
    let (one, two, all) = (view_without(&["zoe"]), view_without(&["zoe", "ann"]), view_without(&["zoe", "ann", "bob"]));
    for (view, hints, expected, left_out) in [
        (&one, json!({"targets": "all"}), "all of ann,bob", json!(["zoe"])),
        (&two, json!({"fanout": "first"}), "first of bob", json!(["zoe", "ann"])),
        (&one, json!({"targets": "all", "skill": "draw"}), "all of bob", json!(["zoe"])),
        (&all, json!({"targets": "all"}), "all of zoe,ann,bob", Value::Null),
        // Too few would be left to complete.
        (&one, json!({"targets": "all", "fanout": "quorum:3"}), "quorum:3 of zoe,ann,bob", Value::Null),
        (&one, json!({"targets": "all", "fanout": "quorum:2"}), "quorum:2 of ann,bob", json!(["zoe"])),
        (&one, json!({"targets": ["zoe", "bob", "ann"], "fanout": "failover"}), "failover of bob,ann,zoe", Value::Null),
        (&one, json!({"targets": ["zoe", "bob"]}), "all of zoe,bob", Value::Null),
    ] {
        let decision = ask(view, &rules, "hi", hints.clone()).decision();
        assert_eq!(words(&decision), format!("~fanout by target fanout {expected}"), "{hints}");
        assert_eq!(json_of(&decision)["leftOut"], left_out, "{hints}");
    }
    assert_eq!(ask(&one, &rules, "hi", json!({"targets": "zoe"})).told(), "zoe by target single");
    let plan: FanoutPlan = serde_json::from_value(json!({"targets": ["zoe", "bob"], "policy": "failover"})).unwrap();
    let again = Ask { last: Some(("~fanout", Some(plan))), ..ask(&one, &rules, "hi", json!({})) };
    assert_eq!(again.told(), "~fanout by context fanout failover of bob,zoe");
}

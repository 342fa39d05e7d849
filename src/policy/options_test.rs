use super::{OPTIONS, Policy, Value, Window, option};

fn changed(policy: &Policy, change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = policy.clone();
    change(&mut policy);
    policy
}

#[test]
fn options_are_found_by_their_names() {
    for known in OPTIONS {
        assert_eq!(option(known.name).map(|it| it.name), Some(known.name));
    }
    assert!(OPTIONS.is_sorted_by_key(|option| option.name));
    assert!(option("").is_none());
    assert!(option("Hidden").is_none());
}

#[test]
fn null_is_what_a_policy_has_unless_told() {
    let plain = Policy::parse(r#"{"default_ttl": 3600}"#).unwrap();
    for known in OPTIONS {
        let (set, reset) = match known.value {
            Value::Default | Value::Built => continue,
            Value::Seconds(put) => {
                let set = changed(&plain, |policy| put(policy, Some(7)));
                (set.clone(), changed(&set, |policy| put(policy, None)))
            }
            Value::Window(put) => {
                let window = Window::parse("22:00-06:00").ok();
                let set = changed(&plain, |policy| put(policy, window));
                (set.clone(), changed(&set, |policy| put(policy, None)))
            }
            Value::Boolean(put) => {
                // One of the two is the default.
                let yes = changed(&plain, |policy| put(policy, Some(true)));
                let no = changed(&plain, |policy| put(policy, Some(false)));
                assert!((yes == plain) != (no == plain), "{}", known.name);
                let set = if yes == plain { no } else { yes };
                (set.clone(), changed(&set, |policy| put(policy, None)))
            }
            Value::Text(put) => {
                let set = changed(&plain, |policy| put(policy, Some("text")));
                (set.clone(), changed(&set, |policy| put(policy, None)))
            }
        };
        assert_ne!(set, plain, "{}", known.name);
        assert_eq!(reset, plain, "{}", known.name);
    }
}

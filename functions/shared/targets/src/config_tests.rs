use serde_json::json;

use super::*;

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:geocode";

/// The error for this target as the only one, named `geocode`.
fn error_for(target: serde_json::Value) -> String {
    let error = parse(&json!({ "geocode": target }).to_string(), &[]).expect_err("the target is invalid");
    let message = error.to_string();
    assert!(message.starts_with("ROWMILL_JOB_TARGETS: `geocode` "), "{message}");
    message
}

#[test]
fn missing_fields_get_their_defaults() {
    let json = format!(
        r#"{{"geocode": {{"invoke": "{FUNCTION}", "batchItems": 7, "outputs": true}},
            "notify": {{"webhook": "https://example.com/hook", "timeoutSeconds": 20, "concurrency": 4}}}}"#
    );
    let configs = parse(&json, &["import"]).unwrap();
    let [geocode, notify] = &configs[..] else { panic!("two targets") };
    assert_eq!((geocode.name.as_str(), notify.name.as_str()), ("geocode", "notify"));
    assert_eq!(geocode.calls, TargetCalls { batch_items: 7, concurrency: 1, outputs: true, cancel: false });
    assert_eq!((&geocode.kind, geocode.timeout.as_secs()), (&TargetKind::Function(FUNCTION.into()), 30));
    assert_eq!(notify.calls, TargetCalls { batch_items: 100, concurrency: 4, outputs: false, cancel: false });
    let endpoint = Endpoint::new("https://example.com/hook", false).unwrap();
    assert_eq!(notify.kind, TargetKind::Webhook { endpoint, host_concurrency: 10 });
    assert_eq!(notify.timeout.as_secs(), 20);
    assert_eq!(notify.input, InputKind::File);
}

#[test]
fn a_target_whose_calls_may_be_dropped_says_so() {
    let json = json!({ "notify": { "webhook": "https://example.com/hook", "cancel": true } }).to_string();
    assert!(parse(&json, &[]).unwrap()[0].calls.cancel);
    let of_async = error_for(json!({ "invoke": FUNCTION, "async": true, "cancel": true }));
    assert!(of_async.contains("`cancel`, which is not valid with `async`"), "{of_async}");
    let of_workers = error_for(json!({ "workers": {}, "cancel": true }));
    assert!(of_workers.contains("`cancel`, which is not valid with `workers`"), "{of_workers}");
}

#[test]
fn a_target_may_take_no_input() {
    let json = r#"{"report": {"webhook": "https://example.com/hook", "input": "none"}}"#;
    assert_eq!(parse(json, &[]).unwrap()[0].input, InputKind::None);
    let wrong = error_for(json!({ "invoke": FUNCTION, "input": "dataset" }));
    assert!(wrong.contains("expected one of `file`, `files`, `none`"), "{wrong}");
}

#[test]
fn an_empty_setting_means_no_targets() {
    assert_eq!(parse("", &[]).unwrap(), []);
    assert_eq!(parse("  \n", &[]).unwrap(), []);
    assert_eq!(parse("{}", &[]).unwrap(), []);
    for json in ["[]", "null", "{", "\"geocode\"", "{} {}"] {
        assert!(matches!(parse(json, &[]), Err(ConfigError::NotJson(_))), "{json}");
    }
}

#[test]
fn a_name_must_be_valid_and_not_taken() {
    let with_name = |name: &str| parse(&json!({ name: {"invoke": FUNCTION} }).to_string(), &["import", "validate"]);
    assert!(["geocode", "a", "geo-2", &"g".repeat(64)].iter().all(|name| with_name(name).is_ok()));
    for name in ["", "Geocode", "2geo", "-geo", "geo code", "geo/code", "geö", &"g".repeat(65)] {
        let problem = with_name(name).unwrap_err();
        assert!(matches!(problem, ConfigError::Target { problem: Problem::Name, .. }), "{name}: {problem}");
    }
    let taken = with_name("import").unwrap_err();
    assert!(taken.to_string().contains("`import` is the name of a built-in job type"), "{taken}");
    let twice = format!(r#"{{"geo": {{"invoke": "{FUNCTION}"}}, "geo": {{"invoke": "{FUNCTION}"}}}}"#);
    assert!(matches!(parse(&twice, &[]), Err(ConfigError::Target { problem: Problem::Repeated, .. })));
}

#[test]
fn the_minimum_of_a_client_is_a_version() {
    let minimum = |version: serde_json::Value| json!({ "workers": { "minimumClient": version } });
    for wrong in [json!("1.4"), json!("v1.4.0"), json!("1.4.0-rc.1"), json!("")] {
        assert!(error_for(minimum(wrong)).contains("`workers.minimumClient` of three numbers"));
    }
    let parsed = parse(&json!({ "render": minimum(json!("1.4.0")) }).to_string(), &[]).unwrap();
    assert_eq!(parsed[0].tasks.unwrap().minimum_client, "1.4.0".parse().ok());
}

#[test]
fn a_target_is_either_a_function_or_a_webhook() {
    assert!(error_for(json!({})).contains("must have `invoke`"));
    assert!(error_for(json!({ "invoke": FUNCTION, "webhook": "https://example.com/" })).contains("more than one"));
    assert!(error_for(json!({ "invoke": FUNCTION, "workers": {} })).contains("more than one"));
    assert!(error_for(json!({ "invoke": FUNCTION, "batchitems": 1 })).contains("unknown field `batchitems`"));
    assert!(error_for(json!({ "invoke": FUNCTION, "batchItems": "1" })).contains("is invalid"));
    assert!(error_for(json!("https://example.com/")).contains("is invalid"));
    for (field, value) in [("hostConcurrency", json!(1)), ("allowPrivate", json!(true)), ("redirectHosts", json!([]))] {
        assert!(error_for(json!({ "invoke": FUNCTION, field: value })).contains(field));
    }
}

#[test]
fn a_function_is_named_by_its_arn() {
    let good = ["", ":live", ":7", ":$LATEST"].map(|suffix| format!("{FUNCTION}{suffix}"));
    for arn in good.iter().map(String::as_str).chain(["arn:aws-cn:lambda:cn-north-1:1:function:x"]) {
        assert!(parse(&json!({ "geocode": {"invoke": arn} }).to_string(), &[]).is_ok(), "{arn}");
    }
    let bad = [
        "geocode",
        "",
        "arn:aws:lambda:eu-west-1:123456789012:function:",
        "arn:aws:lambda:eu-west-1:123456789012:function:*",
        "arn:aws:lambda:eu-west-1:123456789012:layer:x",
        "arn:aws:sqs:eu-west-1:123456789012:function:x",
        "arn:aws:lambda:eu-west-1:123456789012:function:a:b:c",
        "https://example.com/",
    ];
    for arn in bad {
        assert!(error_for(json!({ "invoke": arn })).contains("`invoke`"), "{arn}");
    }
}

#[test]
fn a_webhook_must_use_https_unless_it_is_local_and_allow_private_is_set() {
    let webhook = |url: &str, allow_private: bool| json!({ "webhook": url, "allowPrivate": allow_private });
    let local = json!({ "geocode": webhook("http://127.0.0.1:8080/", true) });
    assert!(parse(&local.to_string(), &[]).is_ok());
    assert!(error_for(webhook("http://127.0.0.1:8080/", false)).contains("https://"));
    assert!(error_for(webhook("http://10.0.0.1/", true)).contains("https://"));
    assert!(error_for(webhook("https://10.0.0.1/", false)).contains("allowPrivate"));
    let message = error_for(webhook("https://user:sesame@example.com/", false));
    assert!(message.contains("password") && !message.contains("sesame"), "{message}");
    assert!(error_for(webhook("example.com", false)).contains("not a URL"));
}

#[test]
fn redirect_hosts_are_a_short_list_of_hosts() {
    let webhook = |hosts: serde_json::Value| json!({ "webhook": "https://example.com/", "redirectHosts": hosts });
    let good = json!({ "geocode": webhook(json!(["a.example", "b.example:8443"])) });
    let [config] = &parse(&good.to_string(), &[]).unwrap()[..] else { panic!("one target") };
    let TargetKind::Webhook { endpoint, .. } = &config.kind else { panic!("a webhook") };
    let hosts = ["a.example".to_owned(), "b.example:8443".to_owned()];
    let expected = Endpoint::new("https://example.com/", false).unwrap().with_redirect_hosts(&hosts);
    assert_eq!(endpoint, &expected.unwrap());
    for host in ["https://a.example/", "10.0.0.1", ""] {
        assert!(error_for(webhook(json!([host]))).contains("`redirectHosts` that are public hosts"), "{host}");
    }
    assert!(error_for(webhook(json!("a.example"))).contains("is invalid"));
    assert!(error_for(webhook(json!(vec!["a.example"; 17]))).contains("more than 16"));
}

#[test]
fn an_error_for_a_number_out_of_range_names_the_range() {
    let bounds = [("batchItems", 1000), ("concurrency", 16), ("timeoutSeconds", 60), ("hostConcurrency", 16)];
    for (field, max) in bounds {
        let with = |value: i64| json!({ "webhook": "https://example.com/", field: value });
        for good in [1, max] {
            assert!(parse(&json!({ "geocode": with(good) }).to_string(), &[]).is_ok(), "{field}: {good}");
        }
        for bad in [0, max + 1] {
            let message = error_for(with(bad));
            assert!(message.contains(&format!("`{field}` from 1 to {max}")), "{message}");
        }
        assert!(error_for(with(-1)).contains("is invalid"));
    }
}

#[test]
fn a_table_has_a_name_and_the_attributes_of_its_key() {
    let json = r#"{"orders": {"table": "shop-orders", "key": ["customer", "order"], "keyPrefix": "{owner}#"}, "small": {"table": "abc", "key": ["id"]}}"#;
    let configs = parse(json, &[]).unwrap();
    let key = |names: &[&str], prefix: &str| TableKey {
        attributes: names.iter().map(|name| (*name).to_owned()).collect(),
        prefix: prefix.to_owned(),
    };
    let kinds: Vec<&TargetKind> = configs.iter().map(|config| &config.kind).collect();
    let orders = TargetKind::Table { name: "shop-orders".into(), key: key(&["customer", "order"], "{owner}#") };
    assert_eq!(kinds, [&orders, &TargetKind::Table { name: "abc".into(), key: key(&["id"], "") }]);

    for (target, problem) in [
        (json!({ "table": "ab", "key": ["id"] }), "not the name of a DynamoDB table"),
        (json!({ "table": "arn:aws:dynamodb:eu-west-1:123456789012:table/orders", "key": ["id"] }), "not the name"),
        (json!({ "table": "orders" }), "must have a `key`"),
        (json!({ "table": "orders", "key": [] }), "must have a `key`"),
        (json!({ "table": "orders", "key": ["id", ""] }), "must have a `key`"),
        (json!({ "table": "orders", "key": ["id", "id"] }), "must have a `key`"),
        (json!({ "table": "orders", "key": ["a", "b", "c"] }), "must have a `key`"),
        (json!({ "table": "orders", "key": ["id"], "keyPrefix": "x".repeat(201) }), "at most 200 bytes"),
        (json!({ "table": "orders", "key": ["id"], "keyPrefix": "{owner}" }), "`{owner}` is followed by `#`"),
        (json!({ "table": "orders", "key": ["id"], "keyPrefix": "a/{owner}/" }), "`{owner}` is followed by `#`"),
        (json!({ "table": "orders", "key": ["id"], "keyPrefix": "{owner}#{owner}" }), "`{owner}` is followed by `#`"),
        (json!({ "table": "orders", "key": ["id"], "batchItems": 5 }), "`batchItems`, which is not valid with `table`"),
        (json!({ "table": "orders", "key": ["id"], "outputs": true }), "`outputs`, which is not valid with `table`"),
        (json!({ "table": "orders", "key": ["id"], "invoke": FUNCTION }), "more than one of"),
        (json!({ "invoke": FUNCTION, "key": ["id"] }), "`key`, which is only valid with `table`"),
        (json!({ "workers": {}, "keyPrefix": "a" }), "`keyPrefix`, which is only valid with `table`"),
    ] {
        let error = error_for(target);
        assert!(error.contains(problem), "{error}");
    }
}

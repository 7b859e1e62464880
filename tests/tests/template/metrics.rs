//! The metrics: their documentation, and what the dashboard and the alarms name of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rowmill_aws::observe::metrics::{DIMENSION, Metric, NAMESPACE, Unit};
use serde_json::{Value, json};

use crate::parameters::is_documented;
use crate::{properties, template};

const DOCUMENT: &str = "docs/metrics.md";
const AROUND: [&str; 2] = ["<!-- metrics: begin -->", "<!-- metrics: end -->"];

fn table() -> String {
    let mut table = String::from("\n| metric | unit | written by | meaning |\n|---|---|---|---|\n");
    for metric in Metric::ALL {
        let unit = match metric.unit() {
            Unit::Count => "count",
            Unit::Seconds => "seconds",
        };
        let sources: Vec<String> = metric.sources().iter().map(|source| code_if_function(source)).collect();
        writeln!(table, "| `{}` | {unit} | {} | {} |", metric.name(), sources.join(", "), metric.meaning()).unwrap();
    }
    table
}

fn code_if_function(source: &str) -> String {
    if source.contains(' ') { source.to_owned() } else { format!("`{source}`") }
}

/// The metrics of a widget of the dashboard: namespace, name, and what its dimension names.
fn shown() -> Vec<(String, String, String)> {
    let template = template();
    let body = properties(&template, "Dashboard")["DashboardBody"]["Fn::Sub"].as_str().unwrap().to_owned();
    let body: Value = serde_json::from_str(&body).expect("the body of the dashboard is JSON");
    let text = |metric: &Value, place: usize| metric[place].as_str().unwrap().to_owned();
    let widgets = body["widgets"].as_array().unwrap().iter();
    let metrics = widgets.flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap().clone());
    metrics.map(|metric| (text(&metric, 0), text(&metric, 1), text(&metric, 3))).collect()
}

#[test]
fn the_documented_metrics_match_the_register() {
    is_documented(DOCUMENT, AROUND, &table());
}

#[test]
fn every_source_of_a_metric_is_a_function() {
    let functions: BTreeSet<String> = template().functions().unwrap().into_iter().map(|f| f.package).collect();
    for metric in Metric::ALL {
        let unknown = |source: &&&str| !functions.contains(**source) && **source != "all functions";
        assert_eq!(metric.sources().iter().find(unknown), None, "{}", metric.name());
    }
}

#[test]
fn the_dashboard_shows_metrics_of_the_register_and_every_queue() {
    let shown = shown();
    let registered: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    for (_, name, of) in shown.iter().filter(|(namespace, ..)| namespace == NAMESPACE) {
        assert!(registered.contains(name.as_str()) && of == "${AWS::StackName}", "{name} of {of}");
    }
    let template = template();
    for (queue, _) in template.resources_of("AWS::SQS::Queue") {
        let of_queue = format!("${{{queue}.QueueName}}");
        assert!(shown.iter().any(|(.., of)| *of == of_queue), "the dashboard does not show {queue}");
    }
}

#[test]
fn every_alarm_on_a_metric_of_rowmill_names_one_of_the_register() {
    let (template, mut found) = (template(), 0);
    for (name, alarm) in template.resources_of("AWS::CloudWatch::Alarm") {
        let alarm = &alarm["Properties"];
        if alarm["Namespace"] == NAMESPACE {
            let metric = Metric::ALL.iter().find(|metric| alarm["MetricName"] == metric.name());
            assert!(metric.is_some(), "{name} watches a metric that nobody writes");
            let of_stack = json!([{ "Name": DIMENSION, "Value": { "Ref": "AWS::StackName" } }]);
            assert_eq!(alarm["Dimensions"], of_stack, "{name}");
            found += 1;
        }
    }
    assert!(found >= 5, "{found} alarms");
}

#[test]
fn top_reads_metrics_of_the_register() {
    use rowmill::top::{metrics, read};
    assert_eq!((read::NAMESPACE, read::DIMENSION), (NAMESPACE, DIMENSION));
    let registered: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    for name in metrics() {
        assert!(registered.contains(name), "{name}");
    }
}

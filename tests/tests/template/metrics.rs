//! The metrics: who writes them, and what the command reads of them.

use std::collections::BTreeSet;

use rowmill_aws::observe::metrics::{DIMENSION, Metric, NAMESPACE};

#[test]
fn every_source_of_a_metric_is_a_function() {
    let functions: Vec<&str> = rowmill_template::functions().into_iter().map(|function| function.name).collect();
    for metric in Metric::ALL {
        let unknown = |source: &&&str| !functions.contains(*source) && **source != "all functions";
        assert_eq!(metric.sources().iter().find(unknown), None, "{}", metric.name());
    }
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

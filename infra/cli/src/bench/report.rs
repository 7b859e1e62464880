//! The result of a benchmark as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rowmill_api::cost::JobCost;
use rowmill_core::model::cost::PriceList;
use serde_json::{Value, json};

use super::cost::FunctionUsage;
use super::{Measurement, Said, Workload};
use crate::terminal::{bytes, count, span, table};

/// The runs of a benchmark, summarized by medians.
#[derive(Debug)]
pub struct Report<'a> {
    pub workload: &'a Workload,
    pub file_bytes: u64,
    /// The runs, at least one.
    pub runs: &'a [Measurement],
}

impl Report<'_> {
    /// Median time from creation to the end.
    fn job(&self) -> Duration {
        median(self.runs.iter().map(|run| run.job))
    }

    fn upload(&self) -> Duration {
        median(self.runs.iter().map(|run| run.upload))
    }

    fn rows_per_second(&self) -> f64 {
        self.workload.rows as f64 / self.job().as_secs_f64().max(0.001)
    }

    /// The usage of the run with the median number of requests. It is one real run, so its parts add up.
    fn usage(&self) -> Option<&FunctionUsage> {
        let mut usages: Vec<&FunctionUsage> = self.runs.iter().filter_map(|r| r.usage.as_ref()).collect();
        usages.sort_by_key(|usage| usage.requests_sent());
        usages.get(usages.len().saturating_sub(1) / 2).copied()
    }

    fn per_thousand(&self, requests: u64) -> f64 {
        requests as f64 * 1000.0 / self.workload.rows as f64
    }

    fn per_million(&self) -> f64 {
        1e6 / self.workload.rows as f64
    }

    pub fn to_text(&self) -> String {
        let rate = format!("{} rows/s end to end", count(self.rows_per_second() as u64));
        let of_runs = match self.runs.len() {
            1 => String::new(),
            runs => format!(", medians of {runs} runs"),
        };
        let kind = self.workload.bench_type.word();
        let mut text = format!("{kind}, {} rows{of_runs}: {rate}\n", count(self.workload.rows));
        let upload = format!("{} for {}", span(self.upload()), bytes(self.file_bytes));
        let times = [("upload", upload), ("job", span(self.job()))];
        let mut lines: Vec<_> = times.map(|(k, v)| vec![format!("  {k}"), v]).into();
        if self.runs.len() > 1 {
            let all: Vec<String> = self.runs.iter().map(|run| span(run.job)).collect();
            lines.push(vec!["  jobs".to_owned(), all.join(", ")]);
        }
        text += &table(&lines, &[]);
        match self.usage() {
            Some(usage) => text + &self.requests(usage) + &self.memory(usage) + &self.cost(usage) + &self.said(),
            None => {
                text + "The functions' logs are not available: requests by function are not known.\n" + &self.said()
            }
        }
    }

    fn requests(&self, usage: &FunctionUsage) -> String {
        let total = self.per_thousand(usage.requests_sent());
        let mut text = format!("\nAWS requests per 1,000 rows: {total:.2}\n");
        let services: Vec<&String> = usage.requests.keys().collect();
        let mut heading = vec!["  function".to_owned(), "invocations".to_owned()];
        heading.extend(services.iter().map(|service| (*service).clone()));
        let mut rows = vec![heading];
        let functions: BTreeSet<&String> = usage.invocations.keys().collect();
        for function in functions {
            let mut row = vec![format!("  {function}"), count(usage.invocations[function])];
            row.extend(services.iter().map(|service| {
                let requests = usage.requests[*service].get(function).copied().unwrap_or(0);
                format!("{:.2}", self.per_thousand(requests))
            }));
            rows.push(row);
        }
        let right: Vec<usize> = (1..=services.len() + 1).collect();
        text += &table(&rows, &right);
        let mappings = self.per_thousand(usage.mapping_requests);
        text += &format!(
            "  long polls aside; receives and deletes of the event source mappings, estimated: {mappings:.2}\n"
        );
        let (read, write) = (usage.read_units, usage.write_units);
        text + &format!("DynamoDB units: {read:.1} read, {write:.1} written\n")
    }

    fn memory(&self, usage: &FunctionUsage) -> String {
        let mut text = "\nPeak memory of a process\n".to_owned();
        let rows = usage.peak_rss_bytes.iter();
        let rows: Vec<_> = rows.map(|(function, peak)| vec![format!("  {function}"), bytes(*peak)]).collect();
        text += &table(&rows, &[1]);
        text
    }

    fn cost(&self, usage: &FunctionUsage) -> String {
        let cost = usage.cost().times(self.per_million());
        let mut text = format!("\nAWS list price per 1,000,000 rows: ${:.4}\n", cost.total());
        let parts = [
            ("DynamoDB", cost.dynamodb),
            ("SQS", cost.sqs),
            ("SQS, event source mappings", cost.sqs_mappings),
            ("S3", cost.s3),
            ("Lambda", cost.lambda),
        ];
        let rows = parts.map(|(name, dollars)| vec![format!("  {name}"), format!("${dollars:.4}")]);
        text += &table(&rows, &[1]);
        let PriceList { region, since, .. } = PriceList::US_EAST_1;
        text + &format!("  {region} since {since}, arm64, no free tier; Lambda time as on this machine\n")
    }

    /// Estimate and truth of the run that took the median time, side by side.
    fn said(&self) -> String {
        let median = self.job();
        let said = self.runs.iter().find(|run| run.job == median).map(|run| &run.said);
        let Some(Said { estimate: Some(estimate), truth: Some(truth) }) = said else { return String::new() };
        let line = |name: &str, of: fn(&JobCost) -> f64, digits: usize| {
            let (before, after) = (of(estimate), of(truth));
            let off = match after > 0.0 {
                true => format!("{:+.0} %", (before / after - 1.0) * 100.0),
                false => String::new(),
            };
            vec![format!("  {name}"), format!("{before:.digits$}"), format!("{after:.digits$}"), off]
        };
        let rows = [
            ["  the job", "estimate", "truth", "off"].map(str::to_owned).to_vec(),
            line("dollars", |cost| cost.usd, 9),
            line("requests", |cost| cost.requests as f64, 0),
            line("DynamoDB units written", |cost| cost.write_units, 1),
            line("DynamoDB units read", |cost| cost.read_units, 1),
            line("S3 reads", |cost| cost.s3_reads as f64, 0),
            line("S3 writes", |cost| cost.s3_writes as f64, 0),
            line("SQS requests", |cost| cost.sqs_requests as f64, 0),
            line("Lambda requests", |cost| cost.lambda_requests as f64, 0),
            line("Lambda GB-seconds", |cost| cost.lambda_gb_seconds, 3),
        ];
        format!("\nEstimate and truth, as the API says them\n{}", table(&rows, &[1, 2, 3]))
    }

    /// The result as JSON, including every run.
    pub fn to_json(&self) -> Value {
        let usage = self.usage();
        let seconds = |time: Duration| time.as_secs_f64();
        json!({
            "jobType": self.workload.bench_type.word(),
            "rows": self.workload.rows,
            "quoted": self.workload.quoted,
            "schema": self.workload.schema,
            "watchers": self.workload.watchers,
            "fileBytes": self.file_bytes,
            "rowsPerSecond": self.rows_per_second(),
            "jobSeconds": seconds(self.job()),
            "uploadSeconds": seconds(self.upload()),
            "requestsPerThousandRows": usage.map(|usage| self.per_thousand(usage.requests_sent())),
            "usage": usage,
            "costPerMillionRows": usage.map(|usage| usage.cost().times(self.per_million())),
            "totalCostPerMillionRows": usage.map(|usage| usage.cost().total() * self.per_million()),
            "runs": self.runs.iter().map(|run| json!({
                "jobSeconds": seconds(run.job),
                "uploadSeconds": seconds(run.upload),
                "estimate": run.said.estimate,
                "cost": run.said.truth,
                "peakRssBytes": run.usage.as_ref().map(peaks),
            })).collect::<Vec<_>>(),
        })
    }
}

fn peaks(usage: &FunctionUsage) -> &BTreeMap<String, u64> {
    &usage.peak_rss_bytes
}

/// The median. For an even number of times the lower of the two middle ones, so that it is a measured time.
fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::BenchType;

    fn run(seconds: u64, requests: u64) -> Measurement {
        let usage = FunctionUsage {
            requests: [("s3".to_owned(), [("process-items".to_owned(), requests)].into())].into(),
            invocations: [("process-items".to_owned(), 20)].into(),
            mapping_requests: 40,
            write_units: 200.0,
            peak_rss_bytes: [("process-items".to_owned(), 30 << 20)].into(),
            ..FunctionUsage::default()
        };
        let of =
            |write_halves| Some(JobCost::of(&rowmill_core::model::cost::Usage { write_halves, ..Default::default() }));
        let said = Said { estimate: of(440), truth: of(400) };
        Measurement { upload: Duration::from_millis(500), job: Duration::from_secs(seconds), said, usage: Some(usage) }
    }

    const WORKLOAD: Workload =
        Workload { bench_type: BenchType::Validate, rows: 100_000, quoted: false, schema: None, watchers: 0 };

    fn report(runs: &[Measurement]) -> Report<'_> {
        Report { workload: &WORKLOAD, file_bytes: 6_000_034, runs }
    }

    #[test]
    fn the_text_gives_speed_requests_memory_and_cost() {
        let runs = [run(4, 200), run(2, 100), run(10, 300)];
        let text = report(&runs).to_text();
        for part in [
            "validate, 100,000 rows, medians of 3 runs: 25,000 rows/s end to end\n",
            "  upload  0.5 s for 5.72 MiB\n",
            "  jobs    4.0 s, 2.0 s, 10 s\n",
            "AWS requests per 1,000 rows: 2.00\n",
            "  function       invocations    s3\n  process-items           20  2.00\n",
            "estimated: 0.40\n",
            "DynamoDB units: 0.0 read, 200.0 written\n",
            "  process-items  30.00 MiB\n",
            "  DynamoDB                    $0.0013\n",
            "  DynamoDB units written        220.0        200.0  +10 %\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn without_logs_the_speed_is_all_there_is() {
        let runs = [Measurement { usage: None, ..run(5, 0) }];
        let text = report(&runs).to_text();
        assert!(text.starts_with("validate, 100,000 rows: 20,000 rows/s end to end\n"), "{text}");
        assert!(text.contains("by function are not known.\n\nEstimate and truth"), "{text}");
        assert_eq!(report(&runs).to_json()["usage"], Value::Null);
    }

    #[test]
    fn the_json_has_the_same_numbers() {
        let json = report(&[run(4, 200)]).to_json();
        assert_eq!(json["rowsPerSecond"], 25_000.0);
        assert_eq!(json["requestsPerThousandRows"], 2.0);
        assert_eq!(json["runs"][0]["peakRssBytes"]["process-items"], 30 << 20);
        let total = json["totalCostPerMillionRows"].as_f64().unwrap();
        let parts = json["costPerMillionRows"].as_object().unwrap();
        let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
        assert!((total - sum).abs() < 1e-12);
    }
}

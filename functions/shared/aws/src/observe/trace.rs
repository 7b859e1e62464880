//! Trace ids: one for each job, from the request that created it to its last commit.
//!
//! The id comes with the request that creates a job: a valid `traceparent` (W3C) of the client, else the trace of X-Ray
//! that API Gateway or Lambda began. It is stored in the job row. A process that reads the row [remembers](learn) it
//! for a while, so that every line of the log about the job has it as `trace.id`, and messages about the job carry it
//! to X-Ray. No decision depends on it, so the rest of the code does not know it.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::num::NonZeroUsize;
use std::sync::LazyLock;

use lambda_http::http::HeaderMap;
use lru::LruCache;
use parking_lot::Mutex;
use rowmill_core::model::ids::JobGuid;
use tokio::task::futures::TaskLocalFuture;

/// Number of jobs whose traces a process remembers.
const JOBS_REMEMBERED: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Maximum number of traces named in the line at the end of an invocation.
const TOUCHED_MAX: usize = 20;

/// The name of a trace: 16 bytes, not all zero, as 32 hexadecimal digits in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TraceId(String);

impl TraceId {
    pub fn of_digits(digits: &str) -> Option<Self> {
        let is_hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_id = digits.len() == 32 && is_hexadecimal && digits.bytes().any(|byte| byte != b'0');
        is_id.then(|| Self(digits.to_owned()))
    }

    /// The id in a `traceparent` header (W3C Trace Context): `00-<trace id>-<parent id>-<flags>`. A later version may
    /// have more parts.
    pub fn of_traceparent(header: &str) -> Option<Self> {
        let parts: Vec<&str> = header.trim().splitn(5, '-').collect();
        let [version, trace, parent, flags, ..] = parts[..] else { return None };
        let is_version = version.len() == 2 && version != "ff" && (version != "00" || parts.len() == 4);
        (is_version && parent.len() == 16 && flags.len() == 2).then(|| Self::of_digits(trace)).flatten()
    }

    /// The id in a trace header of X-Ray: `Root=1-<8 digits>-<24 digits>;…`.
    pub fn of_xray(header: &str) -> Option<Self> {
        let root = header.split(';').find_map(|part| part.trim().strip_prefix("Root=1-"))?;
        let (time, rest) = root.split_once('-')?;
        (time.len() == 8).then(|| Self::of_digits(&format!("{time}{rest}"))).flatten()
    }

    /// The id of a job that came without a trace: that of the job.
    pub fn of_job(job: JobGuid) -> Self {
        Self(job.0.simple().to_string())
    }

    /// The trace header by which X-Ray knows the trace.
    pub fn to_xray(&self) -> String {
        let (time, rest) = self.0.split_at(8);
        format!("Root=1-{time}-{rest}")
    }
}

impl Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

tokio::task_local! {
    static CURRENT: Option<TraceId>;
}

/// The trace of a request: that of the client if it sent a valid one, else that of the gateway, else that of Lambda.
pub fn of_request(headers: &HeaderMap, lambda_trace: Option<&str>) -> Option<TraceId> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let of_client = header("traceparent").and_then(TraceId::of_traceparent);
    let of_gateway = || header("x-amzn-trace-id").and_then(TraceId::of_xray);
    of_client.or_else(of_gateway).or_else(|| lambda_trace.and_then(TraceId::of_xray))
}

/// Works within a trace: jobs that the work creates belong to it.
pub fn within<F: Future>(trace: Option<TraceId>, work: F) -> TaskLocalFuture<Option<TraceId>, F> {
    CURRENT.scope(trace, work)
}

pub fn of_new_job(job: JobGuid) -> TraceId {
    CURRENT.try_with(Clone::clone).ok().flatten().unwrap_or_else(|| TraceId::of_job(job))
}

/// The traces that this process knows.
struct Known {
    by_job: LruCache<String, TraceId>,
    /// Those of the jobs that were read or created since the last line.
    touched: BTreeSet<TraceId>,
}

static KNOWN: LazyLock<Mutex<Known>> =
    LazyLock::new(|| Mutex::new(Known { by_job: LruCache::new(JOBS_REMEMBERED), touched: BTreeSet::new() }));

pub fn learn(job: JobGuid, trace: TraceId) {
    let mut known = KNOWN.lock();
    if known.touched.len() < TOUCHED_MAX {
        known.touched.insert(trace.clone());
    }
    known.by_job.put(job.to_string(), trace);
}

/// The trace of a job, by the name of the job, if this process knows it.
pub fn of_job(job: &str) -> Option<TraceId> {
    KNOWN.lock().by_job.get(job).cloned()
}

/// The traces of the jobs that were read or created since the last call, at most 20.
pub fn take_touched() -> Vec<TraceId> {
    std::mem::take(&mut KNOWN.lock().touched).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const DIGITS: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_traceparent_is_read_only_if_it_is_valid() {
        let read = |header: &str| TraceId::of_traceparent(header).map(|trace| trace.to_string());
        let expected = Some(DIGITS.to_owned());
        assert_eq!(read(&format!("00-{DIGITS}-00f067aa0ba902b7-01")), expected);
        assert_eq!(read(&format!("01-{DIGITS}-00f067aa0ba902b7-01-later")), expected, "a later version");
        let zero = "0".repeat(32);
        for wrong in [
            String::new(),
            DIGITS.to_owned(),
            format!("00-{DIGITS}-00f067aa0ba902b7"),
            format!("00-{DIGITS}-00f067aa0ba902b7-01-more"),
            format!("ff-{DIGITS}-00f067aa0ba902b7-01"),
            format!("00-{zero}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", DIGITS.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", &DIGITS[1..]),
            format!("00-{DIGITS}x-00f067aa0ba902b7-01"),
            format!("00-{DIGITS}-1-01"),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_trace_of_x_ray_is_the_same_trace_in_both_forms() {
        let header = "Self=1-67891234-12456789abcdef012345678;Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Sampled=1";
        let trace = TraceId::of_xray(header).unwrap();
        assert_eq!(trace.to_string(), DIGITS);
        assert_eq!(trace.to_xray(), "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736");
        for wrong in ["", "Root=1-4bf9-2f35", "Root=2-4bf92f35-77b34da6a3ce929d0e0e4736", "Sampled=1"] {
            assert_eq!(TraceId::of_xray(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_client_comes_before_the_gateway_and_the_gateway_before_lambda() {
        let xray = |digit: char| format!("Root=1-{}-{}", digit.to_string().repeat(8), digit.to_string().repeat(24));
        let mut headers = HeaderMap::new();
        let of = |headers: &HeaderMap| of_request(headers, Some(&xray('c'))).map(|trace| trace.0);
        assert_eq!(of(&headers), Some("c".repeat(32)));
        headers.insert("x-amzn-trace-id", xray('b').parse().unwrap());
        assert_eq!(of(&headers), Some("b".repeat(32)));
        headers.insert("traceparent", "00-nonsense-00f067aa0ba902b7-01".parse().unwrap());
        assert_eq!(of(&headers), Some("b".repeat(32)), "an invalid one counts for none");
        headers.insert("traceparent", format!("00-{DIGITS}-00f067aa0ba902b7-01").parse().unwrap());
        assert_eq!(of(&headers), Some(DIGITS.to_owned()));
        assert_eq!(of_request(&HeaderMap::new(), None), None);
    }

    #[tokio::test]
    async fn a_job_belongs_to_the_trace_of_its_request_or_begins_one() {
        let job = JobGuid(Uuid::from_u128(7));
        assert_eq!(of_new_job(job), TraceId::of_job(job));
        assert_eq!(TraceId::of_digits(&TraceId::of_job(job).0), Some(TraceId::of_job(job)), "it is a trace id");
        let trace = TraceId::of_digits(DIGITS);
        assert_eq!(within(trace.clone(), async { of_new_job(job) }).await, trace.clone().unwrap());
        assert_eq!(within(None, async { of_new_job(job) }).await, TraceId::of_job(job));
        learn(job, trace.clone().unwrap());
        assert_eq!(of_job(&job.to_string()), trace);
        assert!(take_touched().contains(&trace.unwrap()));
        assert_eq!(of_job("another"), None);
    }
}

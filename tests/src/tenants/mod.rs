//! Two tenants of one local stack: one sends every hostile input in turn, the other runs jobs of 10,000 rows.
//!
//! The good tenant also runs jobs alone, before the first and after each round of hostile inputs, so that both medians
//! are measured on the same machine at the same time.

mod good;
mod hostile;
mod inputs;
mod report;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::local_stack::{AUDIENCE, ApiRequest, Issuer, JobWatch, LocalStack, PATIENCE, WRITE_SCOPE, options};
use hostile::HostileInput;
pub use report::{Beside, Report};

/// Number of jobs the good tenant runs alone at a time.
const JOBS_ALONE: usize = 5;

/// The least time between two jobs of the good tenant, so that it keeps to its own quota.
const PACE: Duration = Duration::from_millis(600);

/// A stack with an issuer, for owners with tokens.
pub struct SharedStack {
    stack: LocalStack,
    issuer: Issuer,
}

/// An owner of a stack, by its token.
struct Tenant<'a> {
    stack: &'a LocalStack,
    token: String,
}

impl SharedStack {
    /// Brings the stack up, with its state and the issuer's programs in this folder, and with the quotas of the
    /// template.
    ///
    /// # Panics
    /// With the reason, if it does not come up.
    pub async fn up(folder: &Path, parameters: &[(&str, &str)]) -> Self {
        let issuer = Issuer::start(folder).await;
        let mut all = vec![
            ("JwtIssuer", issuer.url()),
            ("JwtAudience", AUDIENCE),
            ("WriteScope", WRITE_SCOPE),
            ("PostsPerMinute", "120"),
            ("PostsPerHour", "2400"),
            ("RouteLimits", ""),
        ];
        all.extend(parameters);
        let stack = LocalStack::up(&options(folder.join("stack"), &all)).await;
        Self { stack, issuer }
    }

    async fn tenant(&self, owner: &str, time: Duration) -> Tenant<'_> {
        let end = jiff::Timestamp::now().as_second() + i64::try_from(time.as_secs()).expect("a short time") + 3600;
        let token = self.issuer.token(json!({ "sub": owner, "exp": end })).await;
        Tenant { stack: &self.stack, token }
    }

    /// Lets one tenant send whole rounds of hostile inputs for at least this time, at least one, while another one runs
    /// jobs.
    ///
    /// # Panics
    /// If a job of the good tenant does not end with exactly the right counts, or if a hostile input is answered by an
    /// error of the server.
    pub async fn run(&self, time: Duration) -> Report {
        let (good, hostile) = (self.tenant("good", time).await, self.tenant("hostile", time).await);
        let mut report = Report::default();
        // The first job starts the functions.
        let (job, _) = good.run_job().await;
        let (own, _) = hostile.run_job().await;
        let inputs = inputs::all(&job, &own);
        run_alone(&good, &mut report).await;
        let mut under_attack = Duration::ZERO;
        loop {
            // How many inputs were sent so far.
            let (began, sent) = (Instant::now(), AtomicUsize::new(0));
            let attacks = async {
                for input in &inputs {
                    report.answered(&input.name, hostile.send(input).await);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            };
            let ((), beside) = futures::join!(attacks, run_beside(&good, &inputs, &sent));
            report.beside.extend(beside);
            run_alone(&good, &mut report).await;
            under_attack += began.elapsed();
            eprintln!("{:.0} s of hostile inputs; {}", under_attack.as_secs_f64(), report.speeds());
            if under_attack >= time {
                return report;
            }
        }
    }
}

async fn run_alone(good: &Tenant<'_>, report: &mut Report) {
    for _ in 0..JOBS_ALONE {
        report.alone.push(good.run_job().await.1);
    }
}

/// Runs jobs until all inputs are sent.
async fn run_beside(good: &Tenant<'_>, inputs: &[HostileInput], sent: &AtomicUsize) -> Vec<Beside> {
    let at = || sent.load(Ordering::Relaxed);
    let mut jobs = Vec::new();
    while at() < inputs.len() {
        let from = at();
        let (_, took) = good.run_job().await;
        let mut names: Vec<_> =
            inputs[from..inputs.len().min(at() + 1)].iter().map(|input| input.name.clone()).collect();
        names.dedup();
        jobs.push(Beside { took, inputs: names });
    }
    jobs
}

impl Tenant<'_> {
    fn call(&self, method: Method, path: &str) -> ApiRequest {
        self.stack.call(method, path).token(&self.token)
    }

    fn upload(&self, content_type: &str, bytes: &[u8]) -> ApiRequest {
        self.call(Method::POST, "/api/uploads").header("content-type", content_type).body(bytes.to_vec())
    }

    /// The job when it has ended.
    async fn ended(&self, job: &Value) -> Value {
        let path = format!("/api/jobs/{}", job["jobGuid"].as_str().expect("a guid"));
        let (began, mut watch) = (Instant::now(), JobWatch::default());
        loop {
            let shown: Value = self.call(Method::GET, &path).send().await.json();
            watch.look(&shown);
            if shown["finishedAt"].is_string() {
                return shown;
            }
            assert!(began.elapsed() < PATIENCE, "the job does not end: {shown}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

//! The job type of the simulation: each row scripts its own item.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::{OutputFile, Spec};
use rowmill_core::model::task::{TaskId, TaskTerms};
use rowmill_core::ports::processor::{
    CostClass, HandedOver, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError,
};
use rowmill_core::ports::{PortError, TargetTask};
use rowmill_core::text::Record;
use serde_json::json;
use work_task::lend::Lent;

use super::batches::Holds;
use super::files::Kind;
use super::hub::{CallKind, Hub, Verdict};
use super::invariants::Invariants;

/// The name of the job type without limits of its own.
pub const SIMULATED: &str = "simulated";

/// The name of the job type that has lanes in some worlds.
pub const LANED: &str = "laned";

/// The name of the job type whose items workers process.
pub const WORKED: &str = "worked";

/// The job types `simulated`, `laned` and `worked`.
#[derive(Clone)]
pub struct Simulated {
    name: &'static str,
    hub: Hub,
    invariants: Arc<Invariants>,
    shape: ItemShape,
    holds: Holds,
    /// Of the type whose items workers process.
    tasks: Option<TaskTerms>,
    /// When the target of all items is down.
    outage: Option<Range<Timestamp>>,
    /// Number of failures of each transient item.
    failures: Arc<Mutex<BTreeMap<(JobGuid, u64), u32>>>,
    /// Tasks that services have been called with and have not begun, with the time of the call.
    calls: Arc<Mutex<Vec<(Lent, Timestamp)>>>,
}

/// The ways in which items are handed to the job type.
#[derive(Clone, Copy, Debug)]
pub struct ItemShape {
    pub concurrency: usize,
    pub batch_items: usize,
    /// True if its items count as fast, so that a batch of an isolated chunk runs together.
    pub fast: bool,
    /// True if every item suspends, so that the adversary may inject a fault.
    pub gated: bool,
}

impl Simulated {
    /// The job type `simulated` of the world with this hub.
    pub fn new(
        hub: Hub,
        invariants: Arc<Invariants>,
        shape: ItemShape,
        holds: Holds,
        outage: Option<Range<Timestamp>>,
    ) -> Self {
        Self {
            name: SIMULATED,
            hub,
            invariants,
            shape,
            holds,
            tasks: None,
            outage,
            failures: Arc::default(),
            calls: Arc::default(),
        }
    }

    /// The same under the name `laned`.
    pub fn laned(&self) -> Self {
        Self { name: LANED, ..self.clone() }
    }

    /// The same under the name `worked`, for workers.
    pub fn worked(&self, terms: TaskTerms) -> Self {
        Self { name: WORKED, tasks: Some(terms), ..self.clone() }
    }

    /// The tasks that services have been called with since the last look.
    pub fn take_calls(&self) -> Vec<(Lent, Timestamp)> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A worker begins an item: returns how long it takes.
    pub async fn begin_work(&self, item: &Item) -> Duration {
        match kind_of(item) {
            Some(Kind::Poison) => {
                self.suspend(CallKind::Poison, item).await;
                self.hub.die(self.hub.current()).await
            }
            // Longer than a lease, so that beats count.
            Some(Kind::Slow(ms)) => Duration::from_millis(ms) * 4,
            _ => Duration::ZERO,
        }
    }

    /// A worker has ended an item.
    pub fn end_work(&self, item: &Item) -> Result<(), ItemError> {
        match kind_of(item) {
            Some(Kind::Bad) => Err(ItemError::permanent("bad_value", "a bad value").in_column("kind")),
            Some(Kind::Transient(times)) if self.fails_again(item, times) => {
                Err(ItemError::transient(OUTAGE, "temporarily unavailable"))
            }
            _ => {
                self.invariants.processed(item.job_guid, item.row);
                Ok(())
            }
        }
    }
}

fn kind_of(item: &Item) -> Option<Kind> {
    match &item.record {
        Record::Cells(cells) => cells.get("kind").and_then(Kind::of_cell),
        Record::Json(_) => None,
    }
}

impl JobType for Simulated {
    fn name(&self) -> &str {
        self.name
    }

    fn tasks(&self) -> Option<TaskTerms> {
        self.tasks
    }

    fn prepare(&self, _spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ItemProcessor for Simulated {
    fn concurrency(&self) -> usize {
        self.shape.concurrency
    }

    fn batch_items(&self) -> usize {
        self.shape.batch_items
    }

    fn cost(&self) -> CostClass {
        if self.shape.fast { CostClass::Fast } else { CostClass::StoreBound }
    }

    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Some(kind) = kind_of(item) else { return Err(ItemError::permanent("no_kind", "the row names no kind")) };
        let _at_item = AtItem::begin(self, item.job_guid);
        if kind == Kind::Poison {
            self.suspend(CallKind::Poison, item).await;
            std::future::pending::<()>().await;
        }
        if kind == Kind::Holds {
            self.holds.hold(self.hub.current(), item.row);
            std::future::pending::<()>().await;
        }
        if self.shape.gated {
            self.suspend(CallKind::Item, item).await;
        }
        if self.outage.as_ref().is_some_and(|outage| outage.contains(&self.hub.now())) {
            self.invariants.reach("an item in the outage");
            return Err(ItemError::transient(OUTAGE, "the target is down"));
        }
        match kind {
            Kind::Slow(ms) => self.hub.sleep(Duration::from_millis(ms)).await,
            Kind::Bad => return Err(ItemError::permanent("bad_value", "a bad value").in_column("kind")),
            Kind::Transient(times) if self.fails_again(item, times) => {
                return Err(ItemError::transient(OUTAGE, "temporarily unavailable"));
            }
            _ => {}
        }
        self.invariants.processed(item.job_guid, item.row);
        Ok(ItemOutcome::Output(output_of(item.row)))
    }

    /// The service may be down, answer at once, or accept the items. The call and its answer may be lost.
    async fn hand_over(&self, items: &[Item], task: TargetTask) -> HandedOver {
        let (id, mood): (TaskId, u8) = (task.task_id.parse().expect("a task"), task.token.as_bytes()[6] >> 4);
        if self.outage.as_ref().is_some_and(|outage| outage.contains(&self.hub.now())) {
            self.invariants.reach("a service is down");
            return HandedOver::Answered(vec![Err(ItemError::transient(OUTAGE, "the target is down")); items.len()]);
        }
        let may_answer = |item: &Item| !matches!(kind_of(item), Some(Kind::Poison | Kind::Holds | Kind::Slow(_)));
        if mood < 2 && items.iter().all(may_answer) {
            self.invariants.reach("a service answers at once");
            return HandedOver::Answered(items.iter().map(|item| self.answer(item)).collect());
        }
        let lent = Lent {
            id,
            token: task.token,
            job_type: WORKED.to_owned(),
            params: serde_json::Map::new(),
            items: items.to_vec(),
            terms: self.tasks.expect("its tasks have terms"),
        };
        let call = async {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push((lent, self.hub.now()));
            Ok::<(), PortError>(())
        };
        let answer = match mood {
            // The call is lost.
            2 => Err(PortError::unavailable("service", "it does not get the call")),
            _ => self.hub.through(CallKind::Write, "service", || task.task_id.clone(), call).await,
        };
        match answer {
            Ok(()) if mood != 3 => {
                self.invariants.reach("a service accepts");
                HandedOver::Accepted
            }
            // Or its answer.
            _ => {
                self.invariants.reach("a service does not answer");
                // Without a beat, it counts as dead.
                self.invariants.died_at(id.job, id.chunk);
                HandedOver::Unknown(ItemError::transient(OUTAGE, "the target does not answer"))
            }
        }
    }

    fn output(&self) -> Option<OutputFile> {
        let (name, content_type) = ("output.csv".to_owned(), "text/csv".to_owned());
        Some(OutputFile { name, content_type, header: Some(OUTPUT_HEADER.to_owned()), ..OutputFile::lines() })
    }
}

/// The code of the transient error.
pub const OUTAGE: &str = "outage";

/// The first line of the output file.
pub const OUTPUT_HEADER: &str = "output";

/// The output of the item of this row.
pub fn output_of(row: u64) -> String {
    format!("output of row {row}")
}

/// The line of the output file for the item of this row. The outputs of workers are objects.
pub fn output_line(job_type: &str, row: u64) -> String {
    match job_type {
        WORKED => json!({ "row": output_of(row) }).to_string(),
        _ => output_of(row),
    }
}

/// Marks that an invocation is processing an item, until it is dropped.
struct AtItem<'a> {
    of: &'a Simulated,
    task: u64,
    job: JobGuid,
}

impl<'a> AtItem<'a> {
    fn begin(of: &'a Simulated, job: JobGuid) -> Self {
        let task = of.hub.current();
        of.hub.check(of.invariants.at_item(task, job, true));
        Self { of, task, job }
    }
}

impl Drop for AtItem<'_> {
    fn drop(&mut self) {
        self.of.hub.check(self.of.invariants.at_item(self.task, self.job, false));
    }
}

impl Simulated {
    fn answer(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.hub.check(self.invariants.may_begin(self.hub.current(), item.job_guid));
        self.end_work(item).map(|()| ItemOutcome::Output(output_line(WORKED, item.row)))
    }

    async fn suspend(&self, kind: CallKind, item: &Item) {
        let name = if kind == CallKind::Poison { "POISON item" } else { "item" };
        let (verdict, task) = self.hub.suspend(kind, name, format!("row {}", item.row)).await;
        self.hub.tell(Some(task), || format!("{name}(row {})", item.row));
        if verdict == Verdict::DieAfter {
            self.hub.die::<()>(task).await;
        }
    }

    fn fails_again(&self, item: &Item, times: u32) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failures.entry((item.job_guid, item.row)).or_default();
        *failed += 1;
        *failed <= times
    }
}

//! Invariants of lanes: at most N chunks of a job type with `concurrency` N run at once.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::Jobs;

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;

impl Invariants {
    /// An invocation begins an item: from now on until its end it takes one of the lanes of its job type. A zombie
    /// takes none: on Lambda the process of an invocation that has timed out is killed, so none goes on.
    pub fn takes_lane(&self, task: u64, job: JobGuid) -> Checked {
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        let Some(lanes) = self.type_limits.of(&row.job_type).concurrency else { return Ok(()) };
        let mut known = self.known();
        known.on_lanes.entry(task).or_insert_with(|| Some(row.job_type.clone()));
        let running = known.on_lanes.values().filter(|of| of.as_ref() == Some(&row.job_type)).count();
        if running > 1 && running == lanes as usize {
            *known.reached.entry("all lanes at work".to_owned()).or_default() += 1;
        }
        ensure(running <= lanes as usize, || {
            format!("{running} chunks of {} run at once, more than its concurrency of {lanes}", row.job_type)
        })
    }
}

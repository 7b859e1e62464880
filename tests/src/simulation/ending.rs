//! What must hold when everything has come to its end.

use std::sync::Arc;

use rowmill_core::failed_items::FailedItems;
use rowmill_core::job::Job;
use rowmill_core::ports::{JobStore, Objects, PortError};
use rowmill_core::progress::JobView;

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;
use super::oracle::RowEnd;
use super::trace::job_name;

impl Invariants {
    /// Every job has ended as it must, and says so in every way.
    pub fn at_the_end(&self) -> Checked {
        self.slots()?;
        for job in self.store.every_job() {
            self.ended(&job).map_err(|what| format!("{}: {what}", job_name(job.job_guid)))?;
        }
        Ok(())
    }

    fn ended(&self, job: &Job) -> Checked {
        ensure(job.status.is_terminal(), || format!("it has not ended: {:?}", job.status))?;
        self.job_moved(job.job_guid)?;
        let store: Arc<dyn JobStore> = Arc::clone(&self.store) as Arc<dyn JobStore>;
        let view = now(JobView::read(&*store, job)).map_err(|error| error.to_string())?;
        let known = self.known();
        let record = known.jobs.get(&job.job_guid).ok_or("an unknown job")?;
        let stop = job.stop.as_ref().map_or("nothing", |stop| stop.code.as_str());
        let how = format!("{} by {stop}", job.status.as_str());
        let (progress, items) = (view.item_progress, view.item_count);
        ensure(progress == items, || format!("{progress} of {items} items are accounted for"))?;
        if job.stop.is_none() && job.redrive.is_none() {
            let rows = record.file.rows.len() as u64;
            ensure(items == rows && !record.file.unterminated, || format!("{items} items where the file has {rows}"))?;
            ensure(view.items_skipped == 0, || format!("{} items skipped without a stop", view.items_skipped))?;
        }
        let totals = now(self.store.totals(job.job_guid, job.attempt)).map_err(|error| error.to_string())?;
        ensure(totals.is_complete(), || "its totals are not complete".into())?;
        let expected: Vec<(u64, String)> = record
            .ends
            .iter()
            .filter_map(|(row, end)| match end {
                RowEnd::Failed(code) => Some((*row, code.clone())),
                _ => None,
            })
            .collect();
        let objects: Arc<dyn Objects> = Arc::clone(&self.objects) as Arc<dyn Objects>;
        let listed =
            now(list_failed(store, objects, job)).map_err(|error| format!("listing its failed items: {error}"))?;
        ensure(listed.len() as u64 == view.items_failed, || {
            format!("{} failed items are listed, {} are counted", listed.len(), view.items_failed)
        })?;
        ensure(listed == expected, || format!("listed as failed: {listed:?}; failed: {expected:?}"))?;
        drop(known);
        let spec = now(self.store.spec(job.job_guid)).map_err(|error| error.to_string())?;
        let counts = job.counts.unwrap_or_default();
        let beyond = job.attempt == 1 && spec.tolerance.is_some_and(|tolerance| tolerance.is_exceeded(counts));
        ensure(!beyond || job.stop.is_some(), || format!("it completed with {counts:?}, beyond its tolerance"))?;
        self.reach(if job.attempt > 1 { format!("redriven, {how}") } else { how });
        Ok(())
    }
}

async fn list_failed(
    store: Arc<dyn JobStore>,
    objects: Arc<dyn Objects>,
    job: &Job,
) -> Result<Vec<(u64, String)>, PortError> {
    let mut walk = FailedItems::of(store, objects, job, 0).await?;
    let mut listed = Vec::new();
    while let Some(items) = walk.next().await? {
        listed.extend(items.into_iter().map(|item| (item.row, item.code)));
    }
    Ok(listed)
}

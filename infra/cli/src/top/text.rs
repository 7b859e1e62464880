//! A snapshot as plain tables, and the texts of its cells, which the screen shows too.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use rowmill_api::at_work::{WorkerList, WorkerView};

use super::{ActiveJob, Queue, REFUSALS, Rates, Snapshot};
use crate::terminal::{age, count, cut, span, table};

/// Stands for something that is not known.
const UNKNOWN: &str = "–";

pub const QUEUE_COLUMNS: [&str; 4] = ["queue", "waiting", "in flight", "oldest"];

pub const JOB_COLUMNS: [&str; 9] = ["job", "owner", "type", "priority", "status", "done", "items", "failed", "age"];

pub const WORKER_COLUMNS: [&str; 7] = ["worker", "type", "held", "dead", "items done", "since", "last beat"];

pub fn queue_cells(queue: &Queue) -> [String; 4] {
    let oldest = queue.oldest.map_or_else(|| UNKNOWN.to_owned(), span);
    [queue.name.clone(), count(queue.waiting), count(queue.in_flight), oldest]
}

pub fn job_cells(job: &ActiveJob, now: Timestamp) -> [String; 9] {
    let (guid, owner) = (job.job_guid.to_string(), cut(&job.owner.0, 20));
    let Some(view) = &job.view else {
        return [guid, owner]
            .into_iter()
            .chain([(); 7].map(|()| UNKNOWN.to_owned()))
            .collect::<Vec<_>>()
            .try_into()
            .expect("two cells and seven");
    };
    let age = Duration::try_from(now.duration_since(view.created_at)).unwrap_or_default();
    [
        guid,
        owner,
        cut(&view.job_type, 16),
        cut(view.priority.as_str(), 8),
        view.status.as_str().to_owned(),
        format!("{}%", view.percent),
        count(view.item_count),
        count(view.items_failed),
        span(age),
    ]
}

pub fn worker_cells(worker: &WorkerView, now: Timestamp) -> [String; 7] {
    let age_of = |at: Timestamp| age(Duration::try_from(now.duration_since(at)).unwrap_or_default());
    [
        cut(&worker.worker, 40),
        cut(&worker.job_type, 24),
        count(worker.tasks_held),
        count(worker.tasks_dead),
        format!("{} of {}", count(worker.items_done), count(worker.items)),
        age_of(worker.since),
        worker.last_beat_at.map_or_else(|| "none".to_owned(), age_of),
    ]
}

/// The stack, the time, and the workers that have tasks if there are any.
pub fn head_line(snapshot: &Snapshot) -> String {
    let head = format!("{} at {:.0}", snapshot.stack, snapshot.at);
    let Some(WorkerList { workers, complete }) = snapshot.workers.as_ref().filter(|list| !list.workers.is_empty())
    else {
        return head;
    };
    let held: u64 = workers.iter().map(|worker| worker.tasks_held).sum();
    let dead: u64 = workers.iter().map(|worker| worker.tasks_dead).sum();
    let (number, more) = (workers.len() as u64, if *complete { "" } else { " or more" });
    format!("{head}, workers: {}{more} with {} tasks held and {} dead", count(number), count(held), count(dead))
}

pub fn rates_line(rates: Rates) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.1}"));
    format!("{} items/s, {} jobs ended/s", rate(rates.items), rate(rates.jobs))
}

pub fn refusals_line(snapshot: &Snapshot) -> String {
    let Some(counted) = &snapshot.counted else { return UNKNOWN.to_owned() };
    let of = |(metric, name): (&str, &str)| format!("{name} {:.0}", counted.sum(metric));
    format!("{} in {}", REFUSALS.map(of).join(", "), span(counted.over))
}

pub fn tables(snapshot: &Snapshot, rates: Rates) -> String {
    let rows = |heading: &[&str], rows: Vec<Vec<String>>| -> Vec<Vec<String>> {
        std::iter::once(heading.iter().map(|text| (*text).to_owned()).collect()).chain(rows).collect()
    };
    let queues = snapshot.queues.iter().map(|queue| queue_cells(queue).to_vec()).collect();
    let jobs = snapshot.jobs.iter().map(|job| job_cells(job, snapshot.at).to_vec()).collect();
    let mut text = head_line(snapshot) + "\n";
    writeln!(text, "rates: {}", rates_line(rates)).ok();
    writeln!(text, "refused: {}\n", refusals_line(snapshot)).ok();
    text += &table(&rows(&QUEUE_COLUMNS, queues), &[1, 2, 3]);
    writeln!(text, "\nactive jobs: {}", snapshot.active).ok();
    if !snapshot.jobs.is_empty() {
        text += &table(&rows(&JOB_COLUMNS, jobs), &[5, 6, 7]);
    }
    let workers = snapshot.workers();
    if !workers.is_empty() {
        let workers = workers.iter().map(|worker| worker_cells(worker, snapshot.at).to_vec()).collect();
        writeln!(text, "\nworkers with tasks").ok();
        text += &table(&rows(&WORKER_COLUMNS, workers), &[2, 3, 4]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{job, snapshot};
    use super::super::{Counted, Snapshot};
    use super::*;

    #[test]
    fn the_head_tells_of_workers_if_there_are_any() {
        let workers = Some(rowmill_api::openapi::examples::workers());
        let expected = "rowmill at 2025-01-01T00:01:00Z, workers: 1 with 2 tasks held and 0 dead";
        assert_eq!(head_line(&Snapshot { workers, ..snapshot() }), expected);
        let none = Some(WorkerList { workers: Vec::new(), complete: true });
        assert_eq!(head_line(&Snapshot { workers: none, ..snapshot() }), "rowmill at 2025-01-01T00:01:00Z");
    }

    #[test]
    fn the_workers_that_have_tasks_are_printed_below_the_jobs() {
        let workers = Some(rowmill_api::openapi::examples::workers());
        let text = tables(&Snapshot { workers, ..snapshot() }, Rates::default());
        let expected = "active jobs: 0\n\nworkers with tasks\n\
            worker    type    held  dead  items done  since  last beat\n\
            render-7  render     2     0    17 of 40  0 s    0 s\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_snapshot_is_printed_as_tables() {
        let unknown = ActiveJob { view: None, ..job(2, 0) };
        let snapshot = Snapshot { jobs: vec![job(1, 500), unknown], active: 7, ..snapshot() };
        let expected = "rowmill at 2025-01-01T00:01:00Z\n\
            rates: – items/s, – jobs ended/s\n\
            refused: –\n\n\
            queue            waiting  in flight      oldest\n\
            Items              1,234         10  1 min 15 s\n\
            ItemsDeadLetter        0          1           –\n\n\
            active jobs: 7\n\
            job                                   owner   type    priority  status   done  items  failed  age\n\
            00000000-0000-0000-0000-000000000001  user-1  import  normal    running   50%  1,000       3  1 min\n\
            00000000-0000-0000-0000-000000000002  user-2  –       –         –           –      –       –  –\n";
        assert_eq!(tables(&snapshot, Rates::default()), expected);
    }

    #[test]
    fn refusals_are_shown_by_their_reason() {
        let sums = [("JobsRefused".to_owned(), 5.0), ("SystemFull".to_owned(), 4.0)].into();
        let counted = Some(Counted { over: Duration::from_secs(300), sums });
        let line = refusals_line(&Snapshot { counted, ..snapshot() });
        assert_eq!(line, "jobs 5, owner full 0, type full 0, system full 4, too many requests 0 in 5 min");
    }
}

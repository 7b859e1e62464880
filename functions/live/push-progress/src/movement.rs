//! From the changes of a batch to the news for watchers.

use std::collections::BTreeMap;

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;

/// A change of a row of a job.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// The job row, before (none if the job is new) and after.
    Job(Option<Box<Job>>, Box<Job>),
    /// Another row that the view of the job is made of.
    Counters(JobGuid),
}

/// The news of a job. Of several changes only the last state counts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Movement {
    /// The owner, if a change told it.
    pub owner: Option<Owner>,
    /// The job at the ends of attempts, one after the other.
    pub ended: Vec<Job>,
    /// True if it has changed after the last of these ends.
    pub moved: bool,
}

/// The news of each job.
pub fn movements(changes: impl IntoIterator<Item = Change>) -> BTreeMap<JobGuid, Movement> {
    let mut movements: BTreeMap<JobGuid, Movement> = BTreeMap::new();
    for change in changes {
        match change {
            Change::Counters(job) => movements.entry(job).or_default().moved = true,
            Change::Job(before, after) => {
                let movement = movements.entry(after.job_guid).or_default();
                movement.owner = Some(after.owner.clone());
                if !after.is_ended() {
                    movement.moved = true;
                } else if has_ended(before.as_deref(), &after) {
                    movement.moved = false;
                    movement.ended.push(*after);
                }
            }
        }
    }
    movements
}

/// True if the attempt ended by this change. Later changes of an ended job show nothing new.
fn has_ended(before: Option<&Job>, after: &Job) -> bool {
    before.is_none_or(|before| before.attempt != after.attempt || !before.is_ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowmill_core::model::job::states::Status;
    use rowmill_testing::fixtures;

    fn job(attempt: u32, status: Status) -> Job {
        Job { attempt, ..fixtures::job_in(status) }
    }

    fn change(before: Option<Job>, after: Job) -> Change {
        Change::Job(before.map(Box::new), Box::new(after))
    }

    fn of(changes: impl IntoIterator<Item = Change>) -> (Vec<u32>, bool) {
        let movement = movements(changes).remove(&fixtures::job().job_guid).unwrap_or_default();
        (movement.ended.iter().map(|job| job.attempt).collect(), movement.moved)
    }

    #[test]
    fn the_end_of_an_attempt_is_told_once_and_covers_what_came_before() {
        let (running, completed) = (job(1, Status::Running), job(1, Status::Completed));
        let counters = Change::Counters(running.job_guid);
        assert_eq!(of([counters.clone()]), (vec![], true));
        assert_eq!(of([change(None, job(1, Status::Waiting))]), (vec![], true));
        let end = change(Some(running), completed.clone());
        assert_eq!(of([counters.clone(), end.clone()]), (vec![1], false));
        assert_eq!(of([change(Some(completed.clone()), completed.clone())]), (vec![], false), "nothing new");
        let redriven = change(Some(completed), job(2, Status::Running));
        assert_eq!(of([end.clone(), redriven.clone(), counters.clone()]), (vec![1], true));
        let again = change(Some(job(2, Status::Running)), job(2, Status::Failed));
        assert_eq!(of([end, redriven, counters, again]), (vec![1, 2], false));
    }
}

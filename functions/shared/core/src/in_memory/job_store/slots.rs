use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

use crate::model::job::Job;
use crate::ports::{Admission, Ceilings, ENDS_KEPT, Full};

/// The slots of active jobs, and when the last jobs gave theirs back, by scope.
#[derive(Debug, Default)]
pub struct Slots {
    active: HashMap<String, i64>,
    ends: HashMap<String, VecDeque<Timestamp>>,
}

impl Slots {
    /// The number of slots taken in a scope.
    pub fn active(&self, scope: &str) -> i64 {
        self.active.get(scope).copied().unwrap_or(0)
    }

    /// Takes the slots of a job, all or none.
    pub fn take(&mut self, job: &Job, ceilings: Ceilings) -> Result<(), Full> {
        let limits = [
            (ceilings.owner, Admission::OwnerFull),
            (ceilings.job_type, Admission::TypeFull),
            (ceilings.system, Admission::SystemFull),
        ];
        let scopes = scopes(job);
        for (scope, (ceiling, admission)) in scopes.iter().zip(limits) {
            if self.active(scope) >= i64::from(ceiling) {
                let recent_ends = self.ends.get(scope).into_iter().flatten().copied().collect();
                return Err(Full { admission, recent_ends });
            }
        }
        for scope in scopes {
            *self.active.entry(scope).or_default() += 1;
        }
        Ok(())
    }

    /// Gives back the slots of a job that ends now.
    pub fn give_back(&mut self, job: &Job, now: Timestamp) {
        for scope in scopes(job) {
            let ends = self.ends.entry(scope.clone()).or_default();
            ends.push_front(now);
            ends.truncate(ENDS_KEPT);
            *self.active.entry(scope).or_default() -= 1;
        }
    }
}

fn scopes(job: &Job) -> [String; 3] {
    [format!("owner#{}", job.owner), format!("type#{}", job.job_type), "system".to_owned()]
}

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::ports::{ActiveJobs, Ceilings, ENDS_KEPT, Full, SlotsTaken};

/// The slots of active jobs, and when the last jobs gave theirs back, by scope.
#[derive(Debug, Default)]
pub struct Slots {
    active: HashMap<String, i64>,
    ends: HashMap<String, VecDeque<Timestamp>>,
    /// The ceilings with which the attempts of the jobs began.
    ceilings: HashMap<JobGuid, Ceilings>,
}

impl Slots {
    /// The number of slots taken in a scope.
    pub fn active(&self, scope: &str) -> i64 {
        self.active.get(scope).copied().unwrap_or(0)
    }

    /// Takes the slots of a job, all or none: that of its owner, and the shared ones if it has them.
    pub fn take(&mut self, job: &Job, ceilings: Ceilings) -> Result<(), Full> {
        let scopes = scopes(&job.owner, &job.job_type);
        let (wanted, needed) = match job.has_shared_slots() {
            true => (ceilings, &scopes[..]),
            false => (Ceilings { job_type: u32::MAX, system: u32::MAX, ..ceilings }, &scopes[..1]),
        };
        match self.taken(&job.owner, &job.job_type).reached(wanted) {
            Some(full) => Err(full),
            None => {
                self.ceilings.insert(job.job_guid, ceilings);
                self.add(needed);
                Ok(())
            }
        }
    }

    /// Takes the shared slots of a job, or gives them back, if only one of the two rows has them.
    pub fn follow(&mut self, seen: &Job, next: &Job) -> Result<(), Full> {
        let [_, job_type, system] = scopes(&seen.owner, &seen.job_type);
        match (seen.has_shared_slots(), next.has_shared_slots()) {
            (false, true) => {
                let ceilings = self.ceilings.get(&seen.job_guid).map(|began| Ceilings { owner: u32::MAX, ..*began });
                let full = ceilings.and_then(|ceilings| self.taken(&seen.owner, &seen.job_type).reached(ceilings));
                full.map_or(Ok(()), Err)?;
                self.add(&[job_type, system]);
            }
            (true, false) => self.remove(&[job_type, system], next.moved_at),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, scopes: &[String]) {
        scopes.iter().for_each(|scope| *self.active.entry(scope.clone()).or_default() += 1);
    }

    /// The slots taken of this owner, this type and the system.
    pub fn taken(&self, owner: &Owner, job_type: &str) -> SlotsTaken {
        let [owner, job_type, system] = scopes(owner, job_type).map(|scope| ActiveJobs {
            active: self.active(&scope).try_into().unwrap_or(0),
            recent_ends: self.ends.get(&scope).into_iter().flatten().copied().collect(),
        });
        SlotsTaken { owner, job_type, system }
    }

    /// Gives back the slots that a job has which ends now.
    pub fn give_back(&mut self, job: &Job, now: Timestamp) {
        let scopes = scopes(&job.owner, &job.job_type);
        self.remove(if job.has_shared_slots() { &scopes } else { &scopes[..1] }, now);
    }

    fn remove(&mut self, scopes: &[String], now: Timestamp) {
        for scope in scopes {
            let ends = self.ends.entry(scope.clone()).or_default();
            ends.push_front(now);
            ends.truncate(ENDS_KEPT);
            *self.active.entry(scope.clone()).or_default() -= 1;
        }
    }
}

fn scopes(owner: &Owner, job_type: &str) -> [String; 3] {
    [format!("owner#{owner}"), format!("type#{job_type}"), "system".to_owned()]
}

//! The writes of a pause, a resume, a resend and another width.

use crate::rows::{Rows, Status, Write};

impl Rows {
    /// Condition: waiting or running, no `stop`.
    pub fn pause(&mut self) {
        let job = &mut self.job;
        job.paused_from_waiting = job.status == Status::Waiting;
        job.status = Status::Paused;
        job.epoch += 1;
        (job.held, job.resend_from) = (true, None);
    }

    /// Condition: paused. It takes its shared slots again. If there are none, it stays paused, which changes nothing
    /// here.
    pub fn resume(&mut self) {
        let job = &mut self.job;
        self.shared += u8::from(job.returned);
        job.returned = false;
        job.status = if job.paused_from_waiting { Status::Waiting } else { Status::Running };
        job.paused_from_waiting = false;
        job.epoch += 1;
        job.resend_from = Some(0);
    }

    /// Condition: not ended, no `stop`. If chunks may have messages, it is a pause and a resume in one write. Returns
    /// whether it is one.
    pub fn change_width(&mut self) -> bool {
        let job = &mut self.job;
        job.has_other_width = true;
        let restarts = job.tallies > 0 && !job.held;
        if restarts {
            job.epoch += 2;
            (job.held, job.resend_from) = (true, Some(0));
        }
        restarts
    }

    /// Condition: `pausedAt` is there, the epoch unchanged since it was read. A caller whose reply was lost finds its
    /// own note.
    pub fn begin_resend(&mut self, epoch: u8, repeats: bool) -> Write {
        let job = &mut self.job;
        if job.epoch != epoch || job.resend_from.is_none() || !(job.held || repeats) {
            return Write::Refused;
        }
        job.held = false;
        Write::Applied
    }

    /// Condition: the epoch and `resendFrom` unchanged since they were read. A caller whose reply was lost finds its
    /// own note; the note of another run is not its own.
    pub fn note_resent(&mut self, epoch: u8, from: u8, next: Option<u8>, repeats: bool) -> Write {
        let job = &mut self.job;
        if (job.epoch, job.held) != (epoch, false) {
            return Write::Refused;
        }
        if job.resend_from != Some(from) {
            return if repeats && job.resend_from == next { Write::Applied } else { Write::Refused };
        }
        job.resend_from = next;
        if next.is_none() {
            job.dispatched = job.tallies;
        }
        Write::Applied
    }

    /// Condition: paused, no `slots`.
    pub fn return_shared(&mut self) {
        self.job.returned = true;
        self.shared -= 1;
    }
}

use std::time::Duration;

use crate::sdk::patience;

/// Backoff between retries after a transient refusal. Each delay is random between zero and a limit that doubles, so
/// that callers that collided do not collide again.
#[derive(Debug)]
pub struct Backoff {
    tries_left: u32,
    limit: Duration,
    longest: Duration,
    /// Maximum duration of the delays to come together.
    budget: Duration,
}

/// The first delay after a transaction conflict, which lasts some milliseconds.
const FIRST: Duration = Duration::from_millis(20);

impl Backoff {
    /// The backoff for this many retries. The first delay lasts up to `first`.
    pub const fn new(tries: u32, first: Duration) -> Self {
        Self { tries_left: tries, limit: first, longest: Duration::from_secs(1), budget: Duration::MAX }
    }

    /// The backoff after a transaction conflict or throttling inside a batch: 12 retries, four seconds on average.
    pub const fn after_conflict() -> Self {
        Self::new(12, FIRST)
    }

    /// The backoff after a conflict while a client waits: many short delays, 1.5 seconds together. Then the client is
    /// told to come back. With the requests between the delays, it has its answer within two seconds.
    pub const fn while_a_client_waits() -> Self {
        let (longest, budget) = (Duration::from_millis(100), Duration::from_millis(1500));
        Self { longest, budget, ..Self::new(40, FIRST) }
    }

    /// The backoff after a conflict while a job ends, which nobody waits for and which must not be given up: 24
    /// retries, about five seconds on average, ten at most. Behind them stand the retries of `complete-job`, and its
    /// message.
    pub const fn while_a_job_ends() -> Self {
        Self { longest: Duration::from_millis(500), ..Self::new(24, FIRST) }
    }

    /// Waits for the next retry. Returns `false` at once if none is left, unless the invocation still has
    /// [patience](patience::is_left).
    pub async fn wait(&mut self) -> bool {
        let has_tries = self.tries_left > 0 && !self.budget.is_zero();
        if !has_tries && !patience::is_left() {
            return false;
        }
        self.tries_left = self.tries_left.saturating_sub(1);
        let longest = if has_tries { self.budget } else { self.longest };
        let delay = self.limit.mul_f64(fastrand::f64()).min(longest);
        self.budget = self.budget.saturating_sub(delay);
        self.limit = (self.limit * 2).min(self.longest);
        tokio::time::sleep(delay).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_number_of_retries_is_limited() {
        let mut backoff = Backoff::new(2, Duration::from_millis(1));
        assert!(backoff.wait().await);
        assert!(backoff.wait().await);
        assert!(!backoff.wait().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_a_bounded_time_and_a_job_that_ends_for_longer() {
        let (start, mut backoff) = (tokio::time::Instant::now(), Backoff::while_a_client_waits());
        while backoff.wait().await {}
        assert!(start.elapsed() <= Duration::from_millis(1550), "{:?}", start.elapsed());
        let (mut tries, mut backoff) = (0, Backoff::while_a_job_ends());
        while backoff.wait().await {
            tries += 1;
        }
        assert_eq!(tries, 24);
    }
}

use std::time::Duration;

/// Pauses between retries after a transient refusal. Each is random between zero and a limit that doubles, so that callers
/// that collided do not collide again.
#[derive(Debug)]
pub struct Pauses {
    tries_left: u32,
    limit: Duration,
}

/// The longest single pause.
const LONGEST: Duration = Duration::from_secs(1);

impl Pauses {
    /// Pauses for this many retries. The first lasts up to `first`.
    pub const fn new(tries: u32, first: Duration) -> Self {
        Self { tries_left: tries, limit: first }
    }

    /// The pauses after a transaction conflict or throttling inside a batch: 12 retries, about four seconds on average.
    pub const fn after_conflict() -> Self {
        Self::new(12, Duration::from_millis(20))
    }

    /// Waits for the next retry. Returns `false` at once if none is left.
    pub async fn wait(&mut self) -> bool {
        if self.tries_left == 0 {
            return false;
        }
        self.tries_left -= 1;
        let pause = self.limit.mul_f64(fastrand::f64());
        self.limit = (self.limit * 2).min(LONGEST);
        tokio::time::sleep(pause).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_number_of_pauses_is_limited() {
        let mut pauses = Pauses::new(2, Duration::from_millis(1));
        assert!(pauses.wait().await);
        assert!(pauses.wait().await);
        assert!(!pauses.wait().await);
    }
}

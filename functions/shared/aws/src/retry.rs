use std::time::Duration;

/// Pauses between tries of something that was refused for a passing reason: each drawn at random from zero up to a limit
/// that doubles, so that those who collided do not meet again.
#[derive(Debug)]
pub struct Pauses {
    tries_left: u32,
    limit: Duration,
}

/// The longest single pause.
const LONGEST: Duration = Duration::from_secs(1);

impl Pauses {
    /// Pauses for this many further tries, the first one up to `first` long.
    pub const fn new(tries: u32, first: Duration) -> Self {
        Self { tries_left: tries, limit: first }
    }

    /// The pauses after a transaction conflict or throttling inside a batch: 12 tries, about four seconds in the mean.
    pub const fn after_conflict() -> Self {
        Self::new(12, Duration::from_millis(20))
    }

    /// Waits for the next try; `false` at once where there is none left.
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
    async fn pauses_come_to_an_end() {
        let mut pauses = Pauses::new(2, Duration::from_millis(1));
        assert!(pauses.wait().await);
        assert!(pauses.wait().await);
        assert!(!pauses.wait().await);
    }
}

//! Properties of a job whenever it is shown.

use serde_json::Value;

/// A job, looked at again and again.
#[derive(Debug, Default)]
pub struct JobWatch {
    percent: u64,
    version: u64,
}

impl JobWatch {
    /// Looks at a job.
    ///
    /// # Panics
    /// Where its percentage has gone back, its sums do not hold, or it is done before it has ended.
    pub fn look(&mut self, shown: &Value) {
        let number = |name: &str| shown[name].as_u64().unwrap_or_else(|| panic!("{name} in {shown}"));
        let sum = number("itemsSucceeded") + number("itemsFailed") + number("itemsSkipped");
        assert_eq!(number("itemProgress"), sum, "{shown}");
        assert!(sum <= number("itemCount"), "{shown}");
        assert!(number("percent") >= self.percent, "went back from {}: {shown}", self.percent);
        self.percent = number("percent");
        assert!(number("version") >= self.version, "went back from version {}: {shown}", self.version);
        self.version = number("version");
        assert!(self.percent < 100 || shown["finishedAt"].is_string(), "{shown}");
    }
}

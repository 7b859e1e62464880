//! Something of which there is so much a second.

/// Grants units at a rate, in the order of the requests. A request that must wait is repeated until it is granted, as a
/// throttled request is.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its name in the results.
    pub name: &'static str,
    rate: f64,
    /// When the units that are granted are used up.
    free_at: f64,
    /// The units that were granted.
    pub granted: f64,
    /// Time requests waited.
    pub waited: f64,
    growth: Option<Growth>,
}

/// A rate that doubles while it is used.
#[derive(Clone, Debug)]
struct Growth {
    every: f64,
    most: f64,
    /// When the current period began, and what was granted by then.
    since: (f64, f64),
    /// Capacity of the periods before that could have been granted.
    could_before: f64,
}

impl Resource {
    /// So many units a second.
    pub const fn new(name: &'static str, rate: f64) -> Self {
        Self { name, rate, free_at: 0.0, granted: 0.0, waited: 0.0, growth: None }
    }

    /// So many units a second at first; each period in which at least half of them are used doubles the rate, up to
    /// `most`.
    pub const fn growing(name: &'static str, rate: f64, every: f64, most: f64) -> Self {
        let growth = Growth { every, most, since: (0.0, 0.0), could_before: 0.0 };
        Self { growth: Some(growth), ..Self::new(name, rate) }
    }

    /// When so many units, asked for now, are granted.
    pub fn take(&mut self, now: f64, units: f64) -> f64 {
        if units <= 0.0 {
            return now;
        }
        let begin = self.free_at.max(now);
        self.grow(begin);
        self.free_at = begin + units / self.rate;
        self.granted += units;
        // A request for few units is granted at once if there are any.
        let at = if begin > now { self.free_at } else { now + (units - self.rate.min(units)) / self.rate };
        self.waited += at - now;
        at
    }

    fn grow(&mut self, now: f64) {
        let Some(growth) = &mut self.growth else { return };
        while now >= growth.since.0 + growth.every {
            let used = (self.granted - growth.since.1) / growth.every;
            growth.could_before += self.rate * growth.every;
            growth.since = (growth.since.0 + growth.every, self.granted);
            self.rate = self.rate.max(used * 2.0).min(growth.most);
        }
    }

    /// The part of what it could have granted until then that it has granted.
    pub fn utilization(&self, until: f64) -> f64 {
        let could = match &self.growth {
            None => self.rate * until,
            Some(growth) => growth.could_before + self.rate * (until - growth.since.0).max(0.0),
        };
        if could > 0.0 { self.granted / could } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_waited_for() {
        let mut ten = Resource::new("ten a second", 10.0);
        assert_eq!(ten.take(0.0, 10.0), 0.0, "a second's worth is there");
        assert_eq!(ten.take(0.0, 5.0), 1.5, "the next half second's worth");
        assert_eq!(ten.take(10.0, 1.0), 10.0, "what was not used is lost");
        assert!((ten.utilization(16.0) - 0.1).abs() < 1e-9);
        assert!((ten.waited - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_table_that_is_used_grows_and_one_that_is_not_does_not() {
        let mut table = Resource::growing("table", 10.0, 100.0, 35.0);
        for second in 0..400 {
            table.take(f64::from(second), 40.0);
        }
        // 10 a second for 100 s, then 20, then 35.
        assert!((table.free_at - (200.0 + (16_000.0 - 3_000.0) / 35.0)).abs() < 5.0, "{}", table.free_at);
        let mut idle = Resource::growing("table", 10.0, 100.0, 35.0);
        idle.take(0.0, 1.0);
        idle.take(1000.0, 1.0);
        assert!((idle.rate - 10.0).abs() < 1e-9);
    }
}
